package install_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/updraft-dev/updraft/cmd/updraft/install"
	"github.com/updraft-dev/updraft/pkg/local/controlplane"
	"github.com/updraft-dev/updraft/pkg/local/controlplane/planetest"
	"github.com/updraft-dev/updraft/test/objects"
)

// knative are the CRDs that an installation needs, of the modules that we build
// against, but without webhooks: nobody would answer them here. PingSource is in
// every plane.
var knative = map[string][]string{
	"knative.dev/serving": {"config/core/300-resources/service.yaml"},
	"knative.dev/eventing": {
		"config/core/resources/broker.yaml", "config/core/resources/trigger.yaml", "config/core/resources/apiserversource.yaml",
		"config/core/resources/eventtype.yaml",
		"config/channels/in-memory-channel/resources/in-memory-channel.yaml",
	},
}

func knativeCRDs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for module, files := range knative {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
		if err != nil {
			t.Fatalf("cannot find %s: %v", module, err)
		}
		for _, file := range files {
			content, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), file))
			if err != nil {
				t.Fatal(err)
			}
			var crd map[string]any
			if err := yaml.Unmarshal(content, &crd); err != nil {
				t.Fatal(err)
			}
			delete(crd["spec"].(map[string]any), "conversion")
			if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), must(yaml.Marshal(crd)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// world is a cluster to install onto.
type world struct {
	t          *testing.T
	plane      *controlplane.Plane
	admin      account
	kubeconfig string
	manifests  string
}

func newWorld(t *testing.T, crds ...string) *world {
	t.Helper()
	plane := planetest.Start(t, crds...)
	w := &world{t: t, plane: plane, admin: adminOf(plane), kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"), manifests: filepath.Join(t.TempDir(), "updraft.yaml")}
	if err := os.WriteFile(w.kubeconfig, plane.Kubeconfig(), 0o600); err != nil {
		t.Fatal(err)
	}
	w.write(resolved(t))
	return w
}

// resolved is what ko makes of config/: each source is an image.
func resolved(t *testing.T) []byte {
	t.Helper()
	digest := "@sha256:" + strings.Repeat("0", 64)
	text := strings.ReplaceAll(string(kustomize(t)), "ko://github.com/updraft-dev/updraft/cmd/", "registry.test/")
	for _, name := range []string{"stack", "update", "status", "source", "sweep", "agent"} {
		text = strings.ReplaceAll(text, "registry.test/"+name+"\n", "registry.test/"+name+digest+"\n")
	}
	return []byte(text)
}

func (w *world) write(manifests []byte) {
	w.t.Helper()
	if err := os.WriteFile(w.manifests, manifests, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// updraft runs a command to its end.
func (w *world) updraft(args ...string) (string, error) {
	w.t.Helper()
	for _, command := range install.Commands() {
		if command.Name() != args[0] {
			continue
		}
		var out bytes.Buffer
		command.SetArgs(append(args[1:], "--kubeconfig", w.kubeconfig))
		command.SetOut(&out)
		command.SilenceUsage, command.SilenceErrors = true, true
		err := command.ExecuteContext(w.t.Context())
		w.t.Logf("updraft %s: %v\n%s", strings.Join(args, " "), err, out.String())
		return out.String(), err
	}
	w.t.Fatalf("no command %s", args[0])
	return "", nil
}

func (w *world) succeeds(args ...string) string {
	w.t.Helper()
	out, err := w.updraft(args...)
	if err != nil {
		w.t.Fatalf("updraft %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// fails holds that a command fails and says all of this.
func (w *world) fails(says []string, args ...string) {
	w.t.Helper()
	out, err := w.updraft(args...)
	if err == nil {
		w.t.Fatalf("updraft %s succeeds:\n%s", strings.Join(args, " "), out)
	}
	for _, text := range says {
		if !strings.Contains(out+err.Error(), text) {
			w.t.Errorf("updraft %s does not say %q:\n%s%v", strings.Join(args, " "), text, out, err)
		}
	}
}

// as makes the kubeconfig that of somebody else, until the test ends.
func (w *world) as(t *testing.T, user string) {
	t.Helper()
	config := must(clientcmd.Load(w.plane.Kubeconfig()))
	for _, info := range config.AuthInfos {
		info.Impersonate = user
	}
	before := must(os.ReadFile(w.kubeconfig))
	if err := clientcmd.WriteToFile(*config, w.kubeconfig); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.WriteFile(w.kubeconfig, before, 0o600) })
}

// standInKnative makes what preflight looks for: Deployments that claim to be
// Available, and Knative's settings. Nothing runs.
func (w *world) standInKnative() {
	w.t.Helper()
	for namespace, names := range map[string][]string{
		"knative-serving":  {"controller", "webhook", "activator", "autoscaler", "net-kourier-controller"},
		"knative-eventing": {"eventing-controller", "eventing-webhook", "mt-broker-controller", "mt-broker-ingress", "mt-broker-filter", "imc-controller", "imc-dispatcher"},
	} {
		w.namespace(namespace)
		for _, name := range names {
			w.deployment(namespace, name, "registry.test/"+name)
			w.available(namespace, name, corev1.ConditionTrue)
		}
	}
	w.configMap("knative-serving", "config-network", "ingress-class", "kourier.ingress.networking.knative.dev")
	w.configMap("knative-eventing", "config-br-default-channel", "channel-template-spec", "apiVersion: messaging.knative.dev/v1\nkind: InMemoryChannel\n")
}

func (w *world) namespace(name string) {
	w.t.Helper()
	_, err := w.admin.client.CoreV1().Namespaces().Create(w.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) configMap(namespace, name, key, value string) {
	w.t.Helper()
	_, err := w.admin.client.CoreV1().ConfigMaps(namespace).Create(w.t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{key: value}}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) deployment(namespace, name, image string) {
	w.t.Helper()
	labels := map[string]string{"app.kubernetes.io/version": "1.22.0"}
	_, err := w.admin.client.AppsV1().Deployments(namespace).Create(w.t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: image}}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) available(namespace, name string, status corev1.ConditionStatus) {
	w.t.Helper()
	client := w.admin.client.AppsV1().Deployments(namespace)
	d := must(client.Get(w.t.Context(), name, metav1.GetOptions{}))
	d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: status}}
	must(client.UpdateStatus(w.t.Context(), d, metav1.UpdateOptions{}))
}

func (w *world) scale(namespace, name string, replicas int32) {
	w.t.Helper()
	client := w.admin.client.AppsV1().Deployments(namespace)
	d := must(client.Get(w.t.Context(), name, metav1.GetOptions{}))
	d.Spec.Replicas = &replicas
	must(client.Update(w.t.Context(), d, metav1.UpdateOptions{}))
}

// controlled are the kinds whose controllers the stand-in plays.
var controlled = []schema.GroupVersionResource{
	{Group: "serving.knative.dev", Version: "v1", Resource: "services"},
	{Group: "eventing.knative.dev", Version: "v1", Resource: "brokers"},
	{Group: "eventing.knative.dev", Version: "v1", Resource: "triggers"},
	{Group: "sources.knative.dev", Version: "v1", Resource: "apiserversources"},
	pingSources,
}

// verdict of the stand-in on an object: "" for Ready, or else the reason.
type verdict func(*unstructured.Unstructured) string

// standInControllers say of Knative's objects that they are ready, until the
// function that they return is called.
func (w *world) standInControllers(address string, judge verdict) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			for _, kind := range controlled {
				w.control(ctx, kind, address, judge)
			}
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	return func() { cancel(); <-done }
}

func (w *world) control(ctx context.Context, kind schema.GroupVersionResource, address string, judge verdict) {
	found, err := w.admin.dynamic.Resource(kind).List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for i := range found.Items {
		o := &found.Items[i]
		condition := map[string]any{"type": "Ready", "status": "True"}
		if why := judge(o); why != "" {
			condition = map[string]any{"type": "Ready", "status": "False", "reason": why, "message": "as the test wants"}
		}
		status := map[string]any{"observedGeneration": o.GetGeneration(), "conditions": []any{condition}}
		if o.GetKind() == "Broker" {
			status["address"] = map[string]any{"url": address}
		}
		before, _, _ := unstructured.NestedMap(o.Object, "status")
		if fmt.Sprint(before) == fmt.Sprint(status) {
			continue
		}
		o.Object["status"] = status
		_, _ = w.admin.dynamic.Resource(kind).Namespace(o.GetNamespace()).UpdateStatus(ctx, o, metav1.UpdateOptions{}) // or the next time
	}
}

// objects are the UIDs of all that a cluster has.
func (w *world) objects() map[string]string {
	w.t.Helper()
	return must(objects.All(w.t.Context(), w.plane.Config))
}
