package install

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"

	"github.com/updraft-dev/updraft/cmd/internal/tested"
)

const (
	// minimumKubernetes has selectable fields of custom resources; what else we
	// need, as admission policies and sidecars, is older.
	minimumKubernetes = "1.32"
	testedKubernetes  = tested.Kubernetes
	testedKnative     = tested.Knative

	servingNamespace  = "knative-serving"
	eventingNamespace = "knative-eventing"
	channelBroker     = "MTChannelBasedBroker"
	brokerClass       = "eventing.knative.dev/broker.class"
)

// needed are the kinds of Knative that Updraft has objects of, and what has them.
var needed = []struct{ groupVersion, kind, of string }{
	{"serving.knative.dev/v1", "Service", "Knative Serving"},
	{"eventing.knative.dev/v1", "Broker", "Knative Eventing"},
	{"eventing.knative.dev/v1", "Trigger", "Knative Eventing"},
	{"eventing.knative.dev/v1beta3", "EventType", "Knative Eventing"},
	{"sources.knative.dev/v1", "ApiServerSource", "Knative Eventing"},
	{"sources.knative.dev/v1", "PingSource", "Knative Eventing"},
}

// preflight looks at everything, so that all that is missing is said at once.
// objects are the manifests that are to be applied, if they are known.
func (c *cluster) preflight(ctx context.Context, objects []*unstructured.Unstructured) *findings {
	f := &findings{}
	server, err := c.client.Discovery().ServerVersion()
	if err != nil {
		f.problem("the cluster does not answer: %v", err)
		return f // nothing else could be seen
	}
	f.checkKubernetes(server.GitVersion)
	c.checkKinds(f)
	c.checkDeployments(ctx, f, "Knative Serving", servingNamespace, "controller", "webhook", "activator", "autoscaler")
	c.checkDeployments(ctx, f, "Knative Eventing", eventingNamespace, "eventing-controller", "eventing-webhook")
	c.checkBroker(ctx, f, classOf(objects))
	c.checkNetwork(ctx, f)
	c.checkOperator(ctx, f)
	c.checkCRDs(ctx, f, objects)
	c.checkSettings(ctx, f)
	c.checkRights(ctx, f, objects)
	return f
}

func (f *findings) checkKubernetes(server string) {
	got, err := version.ParseGeneric(server)
	if err != nil {
		f.note("the API server calls its version %s, which is no version of Kubernetes; %s is needed, %s is tested", server, minimumKubernetes, testedKubernetes)
		return
	}
	known := version.MustParseGeneric(testedKubernetes)
	switch {
	case got.LessThan(version.MustParseGeneric(minimumKubernetes)):
		f.problem("Kubernetes is %s, and %s is the oldest that serves what the CRDs ask for: renew the cluster", server, minimumKubernetes)
	case got.Major() != known.Major() || got.Minor() != known.Minor():
		f.note("Kubernetes is %s; Updraft is tested on %s", server, testedKubernetes)
	}
}

func (c *cluster) checkKinds(f *findings) {
	for _, n := range needed {
		served, err := c.client.Discovery().ServerResourcesForGroupVersion(n.groupVersion)
		if err != nil && !apierrors.IsNotFound(err) {
			f.problem("cannot find out whether the cluster has %s in %s: %v", n.kind, n.groupVersion, err)
			continue
		}
		if served == nil || !slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Kind == n.kind }) {
			f.problem("the cluster has no %s in %s: install %s (%s is tested), its CRDs first", n.kind, n.groupVersion, n.of, testedKnative)
		}
	}
}

// checkDeployments looks whether each is there and Available, and which version
// the first is of.
func (c *cluster) checkDeployments(ctx context.Context, f *findings, of, namespace string, names ...string) {
	var missing []string
	for i, name := range names {
		d, err := c.client.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			missing = append(missing, name)
			continue
		case err != nil:
			f.problem("cannot look at Deployment %s in %s: %v", name, namespace, err)
			continue
		case !available(d):
			f.problem("Deployment %s of %s is not Available: kubectl describe deployment %s -n %s says why", name, of, name, namespace)
		}
		if release := d.Labels["app.kubernetes.io/version"]; i == 0 && release != testedKnative && !strings.HasPrefix(release, testedKnative+".") {
			f.note("%s says that it is version %q; Updraft is tested on %s", of, release, testedKnative)
		}
	}
	if len(missing) > 0 {
		f.problem("%s has no Deployment %s in %s: install it (%s is tested)", of, strings.Join(missing, ", "), namespace, testedKnative)
	}
}

func available(d *appsv1.Deployment) bool {
	return slices.ContainsFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
		return c.Type == appsv1.DeploymentAvailable && c.Status == corev1.ConditionTrue
	})
}

// classOf is the class of the Broker that the manifests have.
func classOf(objects []*unstructured.Unstructured) string {
	for _, o := range objects {
		if class := o.GetAnnotations()[brokerClass]; o.GetKind() == "Broker" && class != "" {
			return class
		}
	}
	return channelBroker
}

// checkBroker looks at what serves Brokers of a class, and at what carries their
// events. Of classes that others make nothing can be told.
func (c *cluster) checkBroker(ctx context.Context, f *findings, class string) {
	if class != channelBroker {
		f.note("the Broker is of the class %s: whether the cluster has it, its readiness will show", class)
		return
	}
	c.checkDeployments(ctx, f, "the Broker class "+channelBroker, eventingNamespace, "mt-broker-controller", "mt-broker-ingress", "mt-broker-filter")
	settings, err := c.client.CoreV1().ConfigMaps(eventingNamespace).Get(ctx, "config-br-default-channel", metav1.GetOptions{})
	if err != nil {
		f.problem("the Broker's channel is not known, ConfigMap config-br-default-channel in %s: %v; install Eventing's mt-channel-broker.yaml", eventingNamespace, err)
		return
	}
	var channel metav1.TypeMeta
	if err := yaml.Unmarshal([]byte(settings.Data["channel-template-spec"]), &channel); err != nil || channel.Kind == "" {
		f.problem("ConfigMap config-br-default-channel in %s has no channel-template-spec that names a kind: set one, as InMemoryChannel of messaging.knative.dev/v1", eventingNamespace)
		return
	}
	served, err := c.client.Discovery().ServerResourcesForGroupVersion(channel.APIVersion)
	if err != nil || !slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Kind == channel.Kind }) {
		f.problem("the Broker's channel is a %s of %s, which the cluster does not have: install it, or name another in config-br-default-channel in %s", channel.Kind, channel.APIVersion, eventingNamespace)
		return
	}
	if channel.Kind == "InMemoryChannel" {
		c.checkDeployments(ctx, f, "the channel InMemoryChannel", eventingNamespace, "imc-controller", "imc-dispatcher")
	}
}

// layers are the controllers of the networking layers that are known, by the
// class that config-network names.
var layers = map[string]string{
	"istio.ingress.networking.knative.dev":       "net-istio-controller",
	"kourier.ingress.networking.knative.dev":     "net-kourier-controller",
	"contour.ingress.networking.knative.dev":     "net-contour-controller",
	"gateway-api.ingress.networking.knative.dev": "net-gateway-api-controller",
	"traefik.ingress.networking.knative.dev":     "traefik",
}

// checkNetwork looks whether the networking layer that Serving is told to use
// seems to be there. Without one no function is ever reached, and nothing says so.
func (c *cluster) checkNetwork(ctx context.Context, f *findings) {
	settings, err := c.client.CoreV1().ConfigMaps(servingNamespace).Get(ctx, "config-network", metav1.GetOptions{})
	if err != nil {
		f.problem("which networking layer Serving uses is not known, ConfigMap config-network in %s: %v; install Serving's configuration", servingNamespace, err)
		return
	}
	class, why := settings.Data["ingress-class"], ""
	if class == "" {
		class = settings.Data["ingress.class"]
	}
	if class == "" {
		class, why = "istio.ingress.networking.knative.dev", ", which is Serving's default,"
	}
	controller, known := layers[class]
	if !known {
		f.note("the networking layer is %s: whether its controller is there cannot be told", class)
		return
	}
	there, err := c.workloads(ctx)
	if err != nil {
		f.problem("cannot look for the controller of the networking layer: %v", err)
		return
	}
	if !slices.ContainsFunc(there, func(w workload) bool { return w.mentions(controller) && w.replicas > 0 }) {
		f.problem("config-network in %s names the networking layer %s%s and nothing like its controller (%s) runs: install it, or name in config-network the one that there is", servingNamespace, class, why, controller)
	}
}

// workload is what keeps pods running.
type workload struct {
	title, scale string
	replicas     int32
	words        []string
}

// mentions says whether a name, a label or an image has the word in it.
func (w workload) mentions(word string) bool {
	return slices.ContainsFunc(w.words, func(s string) bool { return strings.Contains(s, word) })
}

// workloads are all Deployments, StatefulSets and DaemonSets.
func (c *cluster) workloads(ctx context.Context) ([]workload, error) {
	deployments, err := c.client.AppsV1().Deployments("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	sets, err := c.client.AppsV1().StatefulSets("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	daemons, err := c.client.AppsV1().DaemonSets("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var all []workload
	for _, d := range deployments.Items {
		all = append(all, newWorkload("Deployment", d.ObjectMeta, max(desired(d.Spec.Replicas), d.Status.Replicas), d.Spec.Template.Spec))
	}
	for _, s := range sets.Items {
		all = append(all, newWorkload("StatefulSet", s.ObjectMeta, max(desired(s.Spec.Replicas), s.Status.Replicas), s.Spec.Template.Spec))
	}
	for _, d := range daemons.Items {
		all = append(all, newWorkload("DaemonSet", d.ObjectMeta, d.Status.DesiredNumberScheduled, d.Spec.Template.Spec))
	}
	return all, nil
}

func newWorkload(kind string, m metav1.ObjectMeta, replicas int32, pod corev1.PodSpec) workload {
	w := workload{
		title: fmt.Sprintf("%s %s/%s", kind, m.Namespace, m.Name), replicas: replicas,
		scale: fmt.Sprintf("kubectl scale %s %s -n %s --replicas=0", strings.ToLower(kind), m.Name, m.Namespace),
		words: []string{m.Name, m.Labels["app.kubernetes.io/name"], m.Labels["app.kubernetes.io/part-of"], m.Labels["app"]},
	}
	for _, container := range pod.Containers {
		w.words = append(w.words, container.Image)
	}
	return w
}

func desired(replicas *int32) int32 {
	if replicas == nil {
		return 1
	}
	return *replicas
}

// operators are those of the Pulumi Kubernetes Operator, running or not.
func (c *cluster) operators(ctx context.Context) ([]workload, error) {
	there, err := c.workloads(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot look for the Pulumi Kubernetes Operator: %w", err)
	}
	return slices.DeleteFunc(there, func(w workload) bool { return !w.mentions("pulumi-kubernetes-operator") }), nil
}

// checkOperator refuses another operator of the same objects: each would start
// what the other has started, and both hold the same finalizer.
func (c *cluster) checkOperator(ctx context.Context, f *findings) {
	operators, err := c.operators(ctx)
	if err != nil {
		f.problem("%v", err)
		f.operator = true // it cannot be excluded
		return
	}
	for _, o := range operators {
		if o.replicas > 0 {
			f.operator = true
			f.problem("the Pulumi Kubernetes Operator runs, %s, and acts on the same Stacks: wait until no update is in progress, then %s", o.title, o.scale)
		} else {
			f.note("the Pulumi Kubernetes Operator is installed and scaled to zero, %s: leave it so", o.title)
		}
	}
}

// checkCRDs looks at CRDs of our names that are there already: an object that is
// stored in a version that ours do not have could no longer be read.
func (c *cluster) checkCRDs(ctx context.Context, f *findings, objects []*unstructured.Unstructured) {
	for _, o := range objects {
		if o.GetKind() != "CustomResourceDefinition" {
			continue
		}
		there, err := c.dynamic.Resource(crds.GroupVersionResource).Get(ctx, o.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			f.problem("cannot look at CRD %s: %v", o.GetName(), err)
			continue
		}
		stored, _, _ := unstructured.NestedStringSlice(there.Object, "status", "storedVersions")
		for _, version := range stored {
			if !hasVersion(o, version) {
				f.problem("CRD %s has objects stored as %s, which ours does not have: rewrite them in a newer version, and take %s from status.storedVersions", o.GetName(), version, version)
			}
		}
		if !appliedByUs(there) {
			f.note("CRD %s is there, from someone else: it will be ours, and its objects stay", o.GetName())
		}
	}
}

func hasVersion(crd *unstructured.Unstructured, name string) bool {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	return slices.ContainsFunc(versions, func(v any) bool {
		version, _ := v.(map[string]any)
		return version["name"] == name
	})
}
