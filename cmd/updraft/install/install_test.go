package install_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/updraft-dev/updraft/pkg/local/controlplane/planetest"
)

const brokerURL = "http://broker-ingress.knative-eventing.svc.cluster.local/updraft-system/updraft"

var (
	services = schema.GroupVersionResource{Group: "serving.knative.dev", Version: "v1", Resource: "services"}
	crds     = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// A cluster with nothing is told everything at once, and is left as it is.
func TestPreflightNamesAllThatIsMissing(t *testing.T) {
	w := newWorld(t)
	before := w.objects()
	w.fails([]string{
		"no Service in serving.knative.dev/v1", "no Broker in eventing.knative.dev/v1", "no Trigger in eventing.knative.dev/v1",
		"no ApiServerSource in sources.knative.dev/v1", "no EventType in eventing.knative.dev/v1beta3",
		"Knative Serving has no Deployment controller, webhook, activator, autoscaler in knative-serving",
		"Knative Eventing has no Deployment eventing-controller, eventing-webhook in knative-eventing",
		"MTChannelBasedBroker has no Deployment mt-broker-controller, mt-broker-ingress, mt-broker-filter in knative-eventing",
		"config-br-default-channel", "config-network", "10 problems",
	}, "install", "-f", w.manifests)
	if diff := cmp.Diff(before, w.objects()); diff != "" {
		t.Errorf("preflight changed the cluster (-before +after):\n%s", diff)
	}
}

// Preflight looks for what the manifests take, whose images need not be built yet.
func TestPreflightLooksForTheBrokerOfTheManifests(t *testing.T) {
	w := newWorld(t)
	sources := string(kustomize(t))
	w.write([]byte(sources))
	w.fails([]string{"names an image by its source"}, "install", "-f", w.manifests)
	if out, _ := w.updraft("preflight", "-f", w.manifests); !strings.Contains(out, "MTChannelBasedBroker has no Deployment") {
		t.Error("the class of config is not looked for")
	}
	w.write([]byte(strings.ReplaceAll(sources, "MTChannelBasedBroker", "Kafka")))
	if out, _ := w.updraft("preflight", "-f", w.manifests); strings.Contains(out, "MTChannelBasedBroker") || !strings.Contains(out, "the Broker is of the class Kafka") {
		t.Error("another class than that of the manifests is looked for")
	}
}

// TestLifeOfAnInstallation goes from an empty cluster to an empty cluster.
// Knative's controllers are stand-ins, see standInKnative and standInControllers.
func TestLifeOfAnInstallation(t *testing.T) {
	w := newWorld(t, knativeCRDs(t))
	w.standInKnative()
	before := w.objects()
	sub := func(name string, do func(w *world)) {
		t.Helper()
		if !t.Run(name, func(t *testing.T) {
			inner := *w
			inner.t = t
			do(&inner)
		}) {
			t.FailNow() // the steps build on each other
		}
	}
	well := func(*unstructured.Unstructured) string { return "" }

	sub("preflight finds nothing missing", func(w *world) {
		if out := w.succeeds("preflight", "-f", w.manifests); strings.Contains(out, "Problem") || strings.Contains(out, "Note") {
			w.t.Errorf("it says:\n%s", out)
		}
	})
	sub("each problem is named", problems)
	sub("manifests whose images are sources are refused", func(w *world) {
		w.write(kustomize(w.t))
		w.fails([]string{"make install"}, "install", "-f", w.manifests)
		w.write(resolved(w.t))
	})
	sub("beside the other operator nothing is installed", func(w *world) {
		w.namespace("pko")
		w.deployment("pko", "controller-manager", "pulumi/pulumi-kubernetes-operator:v2.0.0")
		says := []string{"Deployment pko/controller-manager", "kubectl scale deployment controller-manager -n pko --replicas=0"}
		w.fails(says, "preflight")
		w.fails(says, "install", "-f", w.manifests, "--despite-problems")
		w.scale("pko", "controller-manager", 0)
		if out := w.succeeds("preflight"); !strings.Contains(out, "leave it so") {
			w.t.Errorf("preflight does not tell of the operator that is scaled to zero:\n%s", out)
		}
		w.gone("pko")
		if diff := cmp.Diff(before, w.objects()); diff != "" {
			w.t.Errorf("what was refused changed the cluster (-before +after):\n%s", diff)
		}
	})
	sub("what does not become ready is said with its reason", func(w *world) {
		defer w.standInControllers(brokerURL, func(o *unstructured.Unstructured) string {
			if o.GetName() == "updraft-status" && o.GetKind() == "Service" {
				return "RevisionFailed"
			}
			return ""
		})()
		w.fails([]string{"Service updraft-status: RevisionFailed as the test wants"}, "install", "-f", w.manifests, "--timeout", "3s")
	})
	sub("a Broker elsewhere is said with what to set", func(w *world) {
		defer w.standInControllers("http://kafka-broker.test/updraft", well)()
		// The Broker's status of the step before is taken for a moment.
		planetest.Eventually(w.t, "the Broker has moved", func() error {
			_, err := w.updraft("install", "-f", w.manifests)
			if err == nil || !strings.Contains(err.Error(), `{"data":{"broker-url":"http://kafka-broker.test/updraft"}}`) {
				return apierrors.NewBadRequest("it has not")
			}
			return nil
		})
	})
	stop := w.standInControllers(brokerURL, well)
	defer stop()
	sub("install", func(w *world) {
		planetest.Eventually(w.t, "the Broker is back", func() error {
			_, err := w.updraft("install", "-f", w.manifests)
			return err
		})
		out := w.succeeds("install", "-f", w.manifests)
		for _, text := range []string{
			"CustomResourceDefinition updates.auto.pulumi.com, workspaces.auto.pulumi.com, programs.pulumi.com, stacks.pulumi.com ready after",
			"Service updraft-stack, updraft-update, updraft-status, updraft-source, updraft-sweep, updraft-gateway ready after", "Updraft is installed",
		} {
			if !strings.Contains(out, text) {
				w.t.Errorf("install does not say %q:\n%s", text, out)
			}
		}
	})
	sub("install again changes nothing and keeps settings", installAgain)
	sub("a newer version takes away what it does not have", newerVersion)
	w.namespace("team")
	sub("uninstall is refused while something is in use", func(w *world) {
		w.make(`{"apiVersion":"pulumi.com/v1","kind":"Stack","metadata":{"name":"app","namespace":"team"},"spec":{"stack":"dev"}}`, stacks)
		now := w.objects()
		w.fails([]string{"Stack team/app", "--keep"}, "uninstall")
		if diff := cmp.Diff(now, w.objects()); diff != "" {
			w.t.Errorf("an uninstall that was refused changed the cluster (-before +after):\n%s", diff)
		}
	})
	sub("uninstall --keep keeps CRDs and what users applied", func(w *world) {
		w.succeeds("uninstall", "--keep")
		left := map[string]bool{}
		for object := range w.objects() {
			if _, was := before[object]; !was {
				left[object] = true
			}
		}
		want := map[string]bool{"/Namespace /team": true, "/ServiceAccount team/default": true, "/ConfigMap team/kube-root-ca.crt": true, "pulumi.com/Stack team/app": true}
		for _, crd := range []string{"stacks.pulumi.com", "programs.pulumi.com", "workspaces.auto.pulumi.com", "updates.auto.pulumi.com"} {
			want["apiextensions.k8s.io/CustomResourceDefinition /"+crd] = true
		}
		if diff := cmp.Diff(want, left); diff != "" {
			w.t.Errorf("what is left (-want +got):\n%s", diff)
		}
	})
	sub("install finds the Stacks that were kept", func(w *world) { w.succeeds("install", "-f", w.manifests) })
	sub("a Program alone holds up uninstall too", func(w *world) {
		w.make(`{"apiVersion":"pulumi.com/v1","kind":"Program","metadata":{"name":"app","namespace":"team"},"program":{}}`, programs)
		w.unmake("team", "app", stacks)
		w.fails([]string{"Program team/app"}, "uninstall")
		w.unmake("team", "app", programs)
	})
	sub("uninstall leaves the CRDs to another operator", func(w *world) {
		w.namespace("pko")
		w.deployment("pko", "pulumi-kubernetes-operator", "registry.test/operator")
		w.scale("pko", "pulumi-kubernetes-operator", 0)
		if out := w.succeeds("uninstall"); !strings.Contains(out, "CRDs kept: Deployment pko/pulumi-kubernetes-operator") {
			w.t.Errorf("uninstall says:\n%s", out)
		}
		w.gone("pko")
	})
	sub("uninstall leaves what was there before", func(w *world) {
		w.gone("team")
		w.succeeds("install", "-f", w.manifests)
		w.succeeds("uninstall")
		if diff := cmp.Diff(before, w.objects()); diff != "" {
			w.t.Errorf("objects (-before +after):\n%s", diff)
		}
	})
	sub("uninstall of nothing is no error", func(w *world) { w.succeeds("uninstall") })
}

var programs = schema.GroupVersionResource{Group: "pulumi.com", Version: "v1", Resource: "programs"}

// problems are provoked one by one, each in a cluster that has all else.
func problems(w *world) {
	for what, c := range map[string]struct {
		provoke, restore func()
		says             string
	}{
		"a Deployment that is not Available": {
			provoke: func() { w.available("knative-serving", "activator", corev1.ConditionFalse) },
			restore: func() { w.available("knative-serving", "activator", corev1.ConditionTrue) },
			says:    "Deployment activator of Knative Serving is not Available",
		},
		"no channel": {
			provoke: func() {
				w.patchConfigMap("knative-eventing", "config-br-default-channel", `{"data":{"channel-template-spec":"apiVersion: messaging.knative.dev/v1beta1\nkind: KafkaChannel"}}`)
			},
			restore: func() {
				w.patchConfigMap("knative-eventing", "config-br-default-channel", `{"data":{"channel-template-spec":"apiVersion: messaging.knative.dev/v1\nkind: InMemoryChannel"}}`)
			},
			says: "KafkaChannel of messaging.knative.dev/v1beta1",
		},
		"a networking layer that is not there": {
			provoke: func() {
				w.patchConfigMap("knative-serving", "config-network", `{"data":{"ingress-class":"contour.ingress.networking.knative.dev"}}`)
			},
			restore: func() {
				w.patchConfigMap("knative-serving", "config-network", `{"data":{"ingress-class":"kourier.ingress.networking.knative.dev"}}`)
			},
			says: "net-contour-controller",
		},
		"no networking layer": {
			provoke: func() { w.patchConfigMap("knative-serving", "config-network", `{"data":{"ingress-class":null}}`) },
			restore: func() {
				w.patchConfigMap("knative-serving", "config-network", `{"data":{"ingress-class":"kourier.ingress.networking.knative.dev"}}`)
			},
			says: "which is Serving's default, and nothing like its controller (net-istio-controller) runs",
		},
		"CRDs with objects of a version that ours do not have": {
			provoke: func() {
				if err := w.plane.Apply(w.t.Context(), oldCRD(w.t)); err != nil {
					w.t.Fatal(err)
				}
			},
			restore: func() { w.unmake("", "programs.pulumi.com", crds) },
			says:    "CRD programs.pulumi.com has objects stored as v0",
		},
	} {
		c.provoke()
		out, err := w.updraft("preflight", "-f", w.manifests)
		if err == nil || strings.Count(out, "Problem") != 1 || !strings.Contains(out, c.says) {
			w.t.Errorf("%s: want one problem that says %q, got %v:\n%s", what, c.says, err, out)
		}
		c.restore()
	}
	w.t.Run("a caller without rights", func(t *testing.T) {
		inner := *w
		inner.t = t
		inner.as(t, "somebody")
		inner.fails([]string{"you may not", "create clusterroles.rbac.authorization.k8s.io", "patch customresourcedefinitions.apiextensions.k8s.io", "create tokenreviews.authentication.k8s.io", "cluster-admin"},
			"preflight", "-f", w.manifests)
	})
}

// oldCRD is one of our names in a version that was never ours.
func oldCRD(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "crd.yaml")
	content := `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: programs.pulumi.com}
spec:
  group: pulumi.com
  names: {kind: Program, listKind: ProgramList, plural: programs, singular: program}
  scope: Namespaced
  versions:
  - {name: v0, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func installAgain(w *world) {
	w.patchConfigMap("updraft-system", "config-updraft", `{"data":{"default-timeout":"2h"}}`)
	generations := func() map[string]int64 {
		all := map[string]int64{}
		for _, kind := range controlled {
			for _, o := range must(w.admin.dynamic.Resource(kind).List(w.t.Context(), metav1.ListOptions{})).Items {
				all[o.GetKind()+" "+o.GetName()] = o.GetGeneration()
			}
		}
		return all
	}
	now, was := w.objects(), generations()
	w.patchConfigMap("updraft-system", "config-updraft", `{"data":{"default-timeout":"soon","sweep-period":"1m"}}`)
	w.fails([]string{`"soon" is no duration`, "sweep-period of ConfigMap config-updraft in updraft-system has no effect"}, "install", "-f", w.manifests)
	w.patchConfigMap("updraft-system", "config-observability", `{"data":{"tracing-protocol":"smoke","runtime-profiling":"enabled"}}`)
	w.patchConfigMap("updraft-system", "config-logging", `{"data":{"loglevel.updraft-stack":"debug"}}`)
	w.fails([]string{`tracing-protocol: "smoke" is none of`, "runtime-profiling of ConfigMap config-observability in updraft-system has no effect"}, "preflight")
	w.patchConfigMap("updraft-system", "config-observability", `{"data":{"tracing-protocol":null,"runtime-profiling":null}}`)
	w.patchConfigMap("updraft-system", "config-logging", `{"data":{"loglevel.updraft-stack":"loud"}}`)
	w.fails([]string{`loglevel.updraft-stack: "loud" is none of`}, "preflight")
	w.patchConfigMap("updraft-system", "config-logging", `{"data":{"loglevel.updraft-stack":null}}`)
	for key, value := range defaults(w.t) {
		w.patchConfigMap("updraft-system", "config-updraft", `{"data":{"`+key+`":"`+value+`"}}`)
	}
	w.patchConfigMap("updraft-system", "config-updraft", `{"data":{"default-timeout":"2h","sweep-period":null}}`)
	if out := w.succeeds("preflight"); strings.Contains(out, "no effect") {
		w.t.Errorf("a key that has an effect is said to have none:\n%s", out)
	}
	w.succeeds("install", "-f", w.manifests)
	if diff := cmp.Diff(now, w.objects()); diff != "" {
		w.t.Errorf("objects (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(was, generations()); diff != "" {
		w.t.Errorf("generations (-before +after):\n%s", diff)
	}
	settings := must(w.admin.client.CoreV1().ConfigMaps("updraft-system").Get(w.t.Context(), "config-updraft", metav1.GetOptions{}))
	if settings.Data["default-timeout"] != "2h" {
		w.t.Errorf("a setting is gone: %v", settings.Data)
	}
	if settings.Data["broker-url"] != brokerURL {
		w.t.Errorf("functions send to %s unless told otherwise, and the Broker of %s is at %s", settings.Data["broker-url"], "MTChannelBasedBroker", brokerURL)
	}
}

func newerVersion(w *world) {
	const old = `---
apiVersion: v1
kind: ConfigMap
metadata: {name: config-old, namespace: updraft-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: updraft-old}
`
	w.make(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"an-admins","namespace":"updraft-system","labels":{"app.kubernetes.io/part-of":"updraft"}}}`,
		schema.GroupVersionResource{Version: "v1", Resource: "configmaps"})
	now := w.objects()
	w.write(append(resolved(w.t), []byte(old)...))
	w.succeeds("install", "-f", w.manifests)
	if len(w.objects()) != len(now)+2 {
		w.t.Error("the older version does not have its objects")
	}
	w.write(bytes.ReplaceAll(resolved(w.t), []byte("registry.test/stack@sha256:0"), []byte("registry.test/stack@sha256:1")))
	out := w.succeeds("install", "-f", w.manifests)
	if !strings.Contains(out, "ConfigMap config-old deleted") || !strings.Contains(out, "ClusterRole updraft-old deleted") {
		w.t.Errorf("install says:\n%s", out)
	}
	planetest.Eventually(w.t, "what is not ours, and what is of this version, stays", func() error {
		if diff := cmp.Diff(now, w.objects()); diff != "" {
			return apierrors.NewBadRequest(diff)
		}
		return nil
	})
	service := must(w.admin.dynamic.Resource(services).Namespace("updraft-system").Get(w.t.Context(), "updraft-stack", metav1.GetOptions{}))
	containers, _, _ := unstructured.NestedSlice(service.Object, "spec", "template", "spec", "containers")
	if image := containers[0].(map[string]any)["image"].(string); !strings.Contains(image, "sha256:1") {
		w.t.Errorf("the function still has %s", image)
	}
	w.write(resolved(w.t))
}

func (w *world) patchConfigMap(namespace, name, patch string) {
	w.t.Helper()
	_, err := w.admin.client.CoreV1().ConfigMaps(namespace).Patch(w.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) make(object string, kind schema.GroupVersionResource) {
	w.t.Helper()
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON([]byte(object)); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.admin.dynamic.Resource(kind).Namespace(o.GetNamespace()).Create(w.t.Context(), o, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) unmake(namespace, name string, kind schema.GroupVersionResource) {
	w.t.Helper()
	client := w.admin.dynamic.Resource(kind).Namespace(namespace)
	if err := client.Delete(w.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
	planetest.Eventually(w.t, name+" is gone", func() error {
		if _, err := client.Get(w.t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return apierrors.NewBadRequest("it is there")
		}
		return nil
	})
}

// gone deletes a namespace and waits until it is.
func (w *world) gone(namespace string) {
	w.t.Helper()
	w.unmake("", namespace, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
}
