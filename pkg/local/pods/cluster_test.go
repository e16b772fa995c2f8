package pods

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// cluster is a real API server, which all tests of this package share.
var cluster struct {
	start  sync.Once
	env    *envtest.Environment
	config *rest.Config
	err    error
}

func stopCluster() {
	if cluster.env != nil {
		_ = cluster.env.Stop()
	}
}

// startCluster fails, and does not skip, when the binaries are not there: a
// test that nobody runs proves nothing.
func startCluster() {
	bin, err := binaries()
	if err != nil {
		cluster.err = err
		return
	}
	env := &envtest.Environment{BinaryAssetsDirectory: bin}
	// Without this plugin, which envtest leaves out, a pod has no service account
	// and so gets no token.
	env.ControlPlane.GetAPIServer().Configure().
		Disable("disable-admission-plugins").
		Set("service-account-issuer", "https://kubernetes.default.svc.cluster.local")
	cluster.config, cluster.err = env.Start()
	cluster.env = env
}

func binaries() (string, error) {
	bin := os.Getenv("UPDRAFT_BIN")
	if bin == "" {
		root, err := os.Getwd()
		if err != nil {
			return "", err
		}
		for !exists(filepath.Join(root, "go.mod")) && root != "/" {
			root = filepath.Dir(root)
		}
		bin = filepath.Join(root, ".bin")
	}
	for _, name := range []string{"kube-apiserver", "etcd"} {
		if !exists(filepath.Join(bin, name)) {
			return "", fmt.Errorf("%s is not in %s: run make tools", name, bin)
		}
	}
	return bin, nil
}

// world is a namespace of its own, with a Runner.
type world struct {
	t         *testing.T
	client    kubernetes.Interface
	namespace string
	options   Options
	runner    *Runner
	stop      func()
	mu        sync.Mutex
	notices   []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := quietWorld(t)
	w.run()
	return w
}

// quietWorld has a Runner that has not been started.
func quietWorld(t *testing.T) *world {
	t.Helper()
	cluster.start.Do(startCluster)
	if cluster.err != nil {
		t.Fatal(cluster.err)
	}
	w := &world{t: t, client: kubernetes.NewForConfigOrDie(unlimited(cluster.config)), stop: func() {}}
	namespace, err := w.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	must(t, err)
	w.namespace = namespace.Name
	_, err = w.client.CoreV1().ServiceAccounts(w.namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	must(t, err)
	w.options = Options{
		Config:     cluster.config,
		Root:       t.TempDir(),
		Bin:        filepath.Join(t.TempDir(), "bin"),
		Commands:   testCommands,
		Supervisor: testSupervisor,
		Notice: func(message string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.notices = append(w.notices, message)
		},
	}
	t.Cleanup(w.clean)
	return w
}

// run starts a Runner, and makes stop end it.
func (w *world) run() {
	w.t.Helper()
	runner, err := New(w.options)
	must(w.t, err)
	w.start(runner)
}

func (w *world) start(runner *Runner) {
	w.runner = runner
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- runner.Run(ctx) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
	})
}

// clean leaves nothing for the Runner of the next test to find.
func (w *world) clean() {
	w.stop()
	ctx := context.Background()
	list, err := w.client.CoreV1().Pods(w.namespace).List(ctx, metav1.ListOptions{})
	must(w.t, err)
	for _, pod := range list.Items {
		if left := marked(mark(pod.UID, "")); len(left) > 0 {
			w.t.Errorf("processes of pod %s are left: %v", pod.Name, left)
		}
		w.release(pod.Name)
		w.delete(pod.Name, 0)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// script is the pod of our Jobs with a shell for an agent: bootstrap copies the
// shell into the share, and the main container runs it from there.
func script(name, init, main string, change ...func(*corev1.PodSpec)) *corev1.Pod {
	root := corev1.EnvVar{Name: rootVariable, Value: shareMount}
	share := corev1.VolumeMount{Name: "share", MountPath: shareMount}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"updraft.dev/update": name}},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Volumes:       []corev1.Volume{{Name: "share", VolumeSource: emptyDir}},
			InitContainers: []corev1.Container{{
				Name: "bootstrap", Image: "ours", Command: []string{"/ko-app/agent", "-ec", "cp /bin/sh $(UPDRAFT_ROOT)/agent; " + init},
				Env: []corev1.EnvVar{root}, VolumeMounts: []corev1.VolumeMount{share},
			}},
			Containers: []corev1.Container{{
				Name: "pulumi", Image: "theirs", Command: []string{"$(UPDRAFT_ROOT)/agent"}, Args: []string{"-ec", main},
				Env: []corev1.EnvVar{root}, VolumeMounts: []corev1.VolumeMount{share},
			}},
		},
	}
	for _, f := range change {
		f(&pod.Spec)
	}
	return pod
}

func (w *world) create(pod *corev1.Pod) *corev1.Pod {
	w.t.Helper()
	pod, err := w.client.CoreV1().Pods(w.namespace).Create(w.t.Context(), pod, metav1.CreateOptions{})
	must(w.t, err)
	return pod
}

func (w *world) secret(name string, data map[string]string) {
	w.t.Helper()
	_, err := w.client.CoreV1().Secrets(w.namespace).Create(w.t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: data}, metav1.CreateOptions{})
	must(w.t, err)
}

func (w *world) delete(name string, grace int64) {
	w.t.Helper()
	err := w.client.CoreV1().Pods(w.namespace).Delete(context.Background(), name, metav1.DeleteOptions{GracePeriodSeconds: &grace})
	if !apierrors.IsNotFound(err) {
		must(w.t, err)
	}
}

// release takes the finalizers off a pod.
func (w *world) release(name string) {
	w.t.Helper()
	_, err := w.client.CoreV1().Pods(w.namespace).Patch(context.Background(), name, "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	if !apierrors.IsNotFound(err) {
		must(w.t, err)
	}
}

func (w *world) pod(name string) *corev1.Pod {
	w.t.Helper()
	pod, err := w.client.CoreV1().Pods(w.namespace).Get(w.t.Context(), name, metav1.GetOptions{})
	must(w.t, err)
	return pod
}

// until waits for a pod to be as wanted, and tells how it is if that does not come.
func (w *world) until(name, what string, as func(*corev1.Pod) bool) *corev1.Pod {
	w.t.Helper()
	pod := w.pod(name)
	for deadline := time.Now().Add(time.Minute); !as(pod); pod = w.pod(name) {
		if time.Now().After(deadline) {
			w.t.Fatalf("pod %s never was %s: %+v", name, what, pod.Status)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return pod
}

func (w *world) untilPhase(name string, phase corev1.PodPhase) *corev1.Pod {
	w.t.Helper()
	return w.until(name, string(phase), func(pod *corev1.Pod) bool { return pod.Status.Phase == phase })
}

func (w *world) untilGone(name string) {
	w.t.Helper()
	eventually(w.t, "the pod is gone", func() bool {
		_, err := w.client.CoreV1().Pods(w.namespace).Get(w.t.Context(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

// log is what kubectl logs shows.
func (w *world) log(name, container string, change ...func(*corev1.PodLogOptions)) string {
	w.t.Helper()
	text, err := w.tryLog(name, container, change...)
	must(w.t, err)
	return text
}

func (w *world) tryLog(name, container string, change ...func(*corev1.PodLogOptions)) (string, error) {
	options := &corev1.PodLogOptions{Container: container}
	for _, f := range change {
		f(options)
	}
	text, err := w.client.CoreV1().Pods(w.namespace).GetLogs(name, options).DoRaw(w.t.Context())
	return string(text), err
}

// files is the pod's folder.
func (w *world) files(pod *corev1.Pod) folder { return w.runner.folderOf(pod) }

// breaker is a network that can be cut: what runs over it then ends at once.
type breaker struct {
	mu   sync.Mutex
	open map[*cuttable]bool
	cuts int
}

type cuttable struct {
	io.ReadCloser
	network *breaker
}

func (c *cuttable) Close() error {
	c.network.mu.Lock()
	defer c.network.mu.Unlock()
	delete(c.network.open, c)
	return c.ReadCloser.Close()
}

func (b *breaker) cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for each := range b.open {
		_ = each.ReadCloser.Close()
		b.cuts++
	}
	clear(b.open)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// wrap notes each watch of pods.
func (b *breaker) wrap(inner http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := inner.RoundTrip(request)
		if err != nil || !strings.HasSuffix(request.URL.Path, "/pods") || request.URL.Query().Get("watch") == "" {
			return response, err
		}
		body := &cuttable{ReadCloser: response.Body, network: b}
		b.mu.Lock()
		b.open[body] = true
		b.mu.Unlock()
		response.Body = body
		return response, nil
	})
}
