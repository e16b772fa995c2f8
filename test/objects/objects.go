// Package objects lists all that a cluster has, so that a test can say what an
// installation left behind or took away.
package objects

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// passing are the kinds whose objects come and go by themselves, or only tell of
// others. A Deployment has another ReplicaSet with each setting that Knative gives
// its own adapters.
var passing = []string{"Event", "Lease", "ComponentStatus", "APIService", "Pod", "ReplicaSet", "Endpoints", "EndpointSlice"}

// All are the UIDs of all objects that a cluster has, by "group/Kind
// namespace/name", but for those of kinds that come and go by themselves.
func All(ctx context.Context, config *rest.Config) (map[string]string, error) {
	server, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	lists, err := server.ServerPreferredResources()
	if err != nil {
		return nil, fmt.Errorf("cannot learn which kinds there are: %w", err)
	}
	all := map[string]string{}
	for _, list := range lists {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range list.APIResources {
			if slices.Contains(passing, r.Kind) || !slices.Contains(r.Verbs, "list") {
				continue
			}
			found, err := client.Resource(group.WithResource(r.Name)).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, fmt.Errorf("cannot list %s: %w", r.Name, err)
			}
			for i := range found.Items {
				o := &found.Items[i]
				all[fmt.Sprintf("%s/%s %s/%s", group.Group, r.Kind, o.GetNamespace(), o.GetName())] = string(o.GetUID())
			}
		}
	}
	if len(all) == 0 {
		return nil, errors.New("the cluster has nothing: that cannot be")
	}
	return all, nil
}
