package controlplane_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/updraft-dev/updraft/pkg/local/controlplane"
	"github.com/updraft-dev/updraft/pkg/local/controlplane/planetest"
)

var (
	widgets     = schema.GroupVersionResource{Group: "test.updraft.dev", Version: "v1", Resource: "widgets"}
	pingSources = schema.GroupVersionResource{Group: "sources.knative.dev", Version: "v1", Resource: "pingsources"}
)

// TestPlane shares one plane, since a start takes seconds; each part works on objects of its own.
func TestPlane(t *testing.T) {
	plane := planetest.Start(t, "testdata/widgets.yaml")
	client := kubernetes.NewForConfigOrDie(plane.Config)
	objects := dynamic.NewForConfigOrDie(plane.Config)

	t.Run("applies a folder, again and again", func(t *testing.T) {
		for range 2 {
			if err := plane.Apply(t.Context(), "testdata/manifests"); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := objects.Resource(widgets).Namespace("team").Get(t.Context(), "first", metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("says which kind is not served", func(t *testing.T) {
		wantError(t, plane.Apply(t.Context(), manifest(t, "apiVersion: nobody.dev/v1\nkind: Gadget\nmetadata: {name: a}")),
			"the API server serves no kind Gadget in nobody.dev/v1")
	})
	t.Run("refuses an unknown field", func(t *testing.T) {
		wantError(t, plane.Apply(t.Context(), manifest(t, "apiVersion: test.updraft.dev/v1\nkind: Widget\nmetadata: {name: a}\nspec: {sise: 1}")),
			"sise")
	})
	t.Run("refuses what is no object", func(t *testing.T) {
		wantError(t, plane.Apply(t.Context(), manifest(t, "hello: world")), "without kind or apiVersion")
	})
	t.Run("gives a Job its Pod, with a service account", func(t *testing.T) { testJob(t, client) })
	t.Run("collects a custom resource that another owned", func(t *testing.T) { testGarbage(t, objects) })
	t.Run("binds a token to its pod", func(t *testing.T) { testToken(t, client) })
	t.Run("asks RBAC", func(t *testing.T) { testRBAC(t, plane.Config) })
	t.Run("asks admission policies", func(t *testing.T) {
		planetest.Eventually(t, "the policy to act", func() error {
			_, err := objects.Resource(widgets).Namespace("default").Create(t.Context(), widget("large", 10), metav1.CreateOptions{DryRun: []string{"All"}})
			if err == nil || !strings.Contains(err.Error(), "too large") {
				return fmt.Errorf("creating a large widget gave: %v", err)
			}
			return nil
		})
	})
	t.Run("passes kubectl logs to a kubelet on loopback", func(t *testing.T) { testLogs(t, plane, client) })
}

func testJob(t *testing.T, client kubernetes.Interface) {
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "default"},
		Spec:       batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: podSpec()}},
	}
	if _, err := client.BatchV1().Jobs("default").Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	planetest.Eventually(t, "the Job's Pod", func() error {
		pods, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: "job-name=job"})
		if err != nil || len(pods.Items) == 0 {
			return fmt.Errorf("no pod: %v", err)
		}
		if got := pods.Items[0].Spec.ServiceAccountName; got != "default" {
			t.Errorf("the pod's service account is %q, want default", got)
		}
		return nil
	})
}

func testGarbage(t *testing.T, objects dynamic.Interface) {
	owner, err := objects.Resource(widgets).Namespace("default").Create(t.Context(), widget("owner", 1), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	owned := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "sources.knative.dev/v1", "kind": "PingSource", "metadata": map[string]any{"name": "owned"},
	}}
	owned.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "test.updraft.dev/v1", Kind: "Widget", Name: "owner", UID: owner.GetUID()}})
	if _, err := objects.Resource(pingSources).Namespace("default").Create(t.Context(), owned, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := objects.Resource(widgets).Namespace("default").Delete(t.Context(), "owner", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	planetest.Eventually(t, "the end of what was owned", func() error {
		_, err := objects.Resource(pingSources).Namespace("default").Get(t.Context(), "owned", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %v", err)
		}
		return nil
	})
}

func testToken(t *testing.T, client kubernetes.Interface) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "speaker"}, Spec: podSpec()}
	pod, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences:      []string{"updraft"},
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	}}
	request, err = client.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "default", request, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	review, err := client.AuthenticationV1().TokenReviews().Create(t.Context(), &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: request.Status.Token, Audiences: []string{"updraft"}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := review.Status.User.Extra["authentication.kubernetes.io/pod-uid"]; len(got) != 1 || got[0] != string(pod.UID) {
		t.Errorf("the token speaks for pod %v (%s), want %s", got, review.Status.Error, pod.UID)
	}
}

// testRBAC relies on the manifests: the account default of team may read widgets of team, and nothing else.
func testRBAC(t *testing.T, config *rest.Config) {
	as := rest.CopyConfig(config)
	as.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:team:default"}
	objects := dynamic.NewForConfigOrDie(as)
	planetest.Eventually(t, "the binding to act", func() error {
		_, err := objects.Resource(widgets).Namespace("team").Get(t.Context(), "first", metav1.GetOptions{})
		return err
	})
	if _, err := objects.Resource(widgets).Namespace("default").Get(t.Context(), "first", metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("reading another namespace gave %v, want Forbidden", err)
	}
}

// testLogs puts a kubelet that knows one log at 127.0.0.1, and reads that log with kubectl.
func testLogs(t *testing.T, plane *controlplane.Plane, client kubernetes.Interface) {
	kubelet := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/containerLogs/default/talker/main" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, "hello from the pod\n")
	}))
	t.Cleanup(kubelet.Close)
	host, port, err := net.SplitHostPort(kubelet.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "local"},
		Status: corev1.NodeStatus{
			Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: host}},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(number)}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	spec := podSpec()
	spec.NodeName = "local"
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "talker"}, Spec: spec}
	if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, plane.Kubeconfig(), 0o600); err != nil {
		t.Fatal(err)
	}
	said, err := exec.Command(filepath.Join(planetest.Bin(t), "kubectl"), "--kubeconfig="+kubeconfig, "logs", "talker").CombinedOutput()
	if err != nil || string(said) != "hello from the pod\n" {
		t.Errorf("kubectl logs said %q (%v)", said, err)
	}
}

func podSpec() corev1.PodSpec {
	return corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers:    []corev1.Container{{Name: "main", Image: "none"}},
	}
}

func widget(name string, size int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "test.updraft.dev/v1", "kind": "Widget",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"size": size},
	}}
}

func manifest(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func wantError(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil {
		err = errors.New("no error")
	}
	if !strings.Contains(err.Error(), text) {
		t.Errorf("got %q, want an error that says %q", err, text)
	}
}
