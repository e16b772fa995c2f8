// Package deps only keeps the requirements in go.mod while the tree is being built.
package deps

import (
	_ "github.com/cloudevents/sdk-go/v2/client"
	_ "github.com/cloudevents/sdk-go/v2/protocol/http"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/kelseyhightower/envconfig"
	_ "github.com/pulumi/pulumi/sdk/v3/go/auto"
	_ "github.com/robfig/cron/v3"
	_ "github.com/spf13/cobra"
	_ "golang.org/x/sys/unix"
	_ "k8s.io/apimachinery/pkg/util/strategicpatch"
	_ "k8s.io/client-go/dynamic"
	_ "k8s.io/client-go/kubernetes"
	_ "knative.dev/eventing/pkg/adapter/apiserver"
	_ "knative.dev/eventing/pkg/adapter/mtping"
	_ "knative.dev/eventing/pkg/apis/eventing/v1"
	_ "knative.dev/eventing/pkg/eventfilter/subscriptionsapi"
	_ "knative.dev/eventing/pkg/kncloudevents"
	_ "sigs.k8s.io/controller-runtime/pkg/envtest"
	_ "sigs.k8s.io/yaml"
)
