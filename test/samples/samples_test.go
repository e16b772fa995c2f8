package samples

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	servingv1 "knative.dev/serving/pkg/apis/serving/v1"
	"sigs.k8s.io/yaml"

	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/record"
)

// namespace of the samples, as they stand.
const namespace = "default"

func TestTheSamplesOfSubscribers(t *testing.T) {
	clients, err := record.NewClients(lab.env.Config)
	must(t, err)
	notify := serve(t, apply(t, "notify"))
	chained := serve(t, apply(t, "chained"))

	network := await(t, clients, "network", ready)
	app := await(t, clients, "app", ready)
	if want := string(uidOf(t, clients, network)) + "/succeeded"; request(app) != want {
		t.Errorf("app runs by request %q, want %q", request(app), want)
	}
	if got := string(app.Status.Outputs["message"].Raw); got != `"Runs in 10.0.0.0/24"` {
		t.Errorf("app's output is %s", got)
	}

	// Each time again, and once each.
	_, err = clients.Pulumi.PulumiV1().Stacks(namespace).Patch(t.Context(), "network", types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"pulumi.com/reconciliation-request":"again"}}}`), metav1.PatchOptions{})
	must(t, err)
	network = await(t, clients, "network", func(s *pulumiv1.Stack) bool {
		return ready(s) && s.Status.LastUpdate.Name != network.Status.LastUpdate.Name
	})
	want := string(uidOf(t, clients, network)) + "/succeeded"
	await(t, clients, "app", func(s *pulumiv1.Stack) bool {
		return ready(s) && request(s) == want && s.Status.LastUpdate.ReconcileRequest == want
	})
	updates, err := clients.Pulumi.AutoV1alpha1().Updates(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: pulumiv1.LabelStackName + "=app"})
	must(t, err)
	if len(updates.Items) != 2 {
		t.Errorf("app ran %d times, want 2", len(updates.Items))
	}

	must(t, clients.Pulumi.PulumiV1().Stacks(namespace).Delete(t.Context(), "app", metav1.DeleteOptions{}))
	for _, line := range []string{"Stack default/network succeeded", "Stack default/app succeeded", "Stack default/app deleted"} {
		eventually(t, "notify prints "+line, notify.said, func() bool { return slices.Contains(notify.said(), line) })
	}
	// It may patch that one Stack, and nothing else.
	mayNot(t, chained.config)
}

func mayNot(t *testing.T, config *rest.Config) {
	t.Helper()
	clients, err := record.NewClients(config)
	must(t, err)
	_, err = clients.Pulumi.PulumiV1().Stacks(namespace).Patch(t.Context(), "network", types.MergePatchType, []byte(`{"metadata":{"annotations":{"a":"b"}}}`), metav1.PatchOptions{})
	if err == nil {
		t.Error("chained may patch the Stack network too")
	}
}

// apply applies what is in a sample but for Knative's objects, whose controllers are
// not here, and gives its Knative Service.
func apply(t *testing.T, sample string) (service *servingv1.Service) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(lab.root, "samples", sample, sample+".yaml"))
	must(t, err)
	var rest bytes.Buffer
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
		document, err := reader.Read()
		if err != nil {
			break
		}
		var kind metav1.TypeMeta
		must(t, yaml.Unmarshal(document, &kind))
		switch kind.Kind {
		case "Service":
			service = &servingv1.Service{}
			must(t, yaml.UnmarshalStrict(document, service))
		case "Trigger":
		default:
			fmt.Fprintf(&rest, "---\n%s", document)
		}
	}
	if rest.Len() == 0 {
		return service
	}
	command := exec.CommandContext(t.Context(), filepath.Join(lab.bin, "kubectl"), "--kubeconfig", lab.env.Kubeconfig, "apply", "-f", "-")
	command.Stdin = &rest
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("kubectl apply: %v\n%s", err, out)
	}
	return service
}

// subscriber is a sample's program that runs.
type subscriber struct {
	config *rest.Config
	mu     sync.Mutex
	lines  []string
}

func (s *subscriber) said() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.lines)
}

// serve builds the program that a Service's image names, and runs it as the Service
// would, until the end of the test.
func serve(t *testing.T, service *servingv1.Service) *subscriber {
	t.Helper()
	container := service.Spec.Template.Spec.Containers[0]
	program := filepath.Join(t.TempDir(), service.Name)
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, strings.TrimPrefix(container.Image, "ko://"))
	build.Dir = lab.root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot build %s: %v\n%s", container.Image, err, out)
	}
	s := &subscriber{}
	host, port, err := net.SplitHostPort(lab.served[service.Name])
	must(t, err)
	command := exec.Command(program)
	command.Env = []string{"HOST=" + host, "PORT=" + port, "KUBECONFIG=" + s.account(t, service.Spec.Template.Spec.ServiceAccountName)}
	for _, v := range container.Env {
		command.Env = append(command.Env, v.Name+"="+v.Value)
	}
	out, err := command.StdoutPipe()
	must(t, err)
	command.Stderr = os.Stderr
	must(t, command.Start())
	read := make(chan struct{})
	go func() {
		defer close(read)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			s.mu.Lock()
			s.lines = append(s.lines, scanner.Text())
			s.mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		must(t, command.Process.Signal(syscall.SIGTERM))
		<-read
		if err := command.Wait(); err != nil {
			t.Errorf("%s ends with %v", service.Name, err)
		}
	})
	return s
}

// account writes a kubeconfig with a token of a ServiceAccount.
func (s *subscriber) account(t *testing.T, name string) string {
	t.Helper()
	if name == "" {
		name = "default"
	}
	kube, err := kubernetes.NewForConfig(lab.env.Config)
	must(t, err)
	var token *authenticationv1.TokenRequest
	eventually(t, "ServiceAccount "+name+" is there", nil, func() bool {
		token, err = kube.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		return err == nil
	})
	s.config = rest.AnonymousClientConfig(lab.env.Config)
	s.config.BearerToken = token.Status.Token
	file := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: s.config.Host, CertificateAuthorityData: s.config.CAData, CertificateAuthority: s.config.CAFile}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {Token: token.Status.Token}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}, file))
	return file
}

func freeAddress() (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

func await(t *testing.T, clients *record.Clients, name string, is func(*pulumiv1.Stack) bool) (s *pulumiv1.Stack) {
	t.Helper()
	eventually(t, "Stack "+name+" is as it should be", func() []string {
		return []string{fmt.Sprintf("%v %+v", s.Annotations, s.Status)}
	}, func() bool {
		var err error
		s, err = clients.Pulumi.PulumiV1().Stacks(namespace).Get(t.Context(), name, metav1.GetOptions{})
		must(t, err)
		return is(s)
	})
	return s
}

func ready(s *pulumiv1.Stack) bool {
	c := meta.FindStatusCondition(s.Status.Conditions, pulumiv1.ReadyCondition)
	return c != nil && c.Status == metav1.ConditionTrue && s.Status.ObservedReconcileRequest == request(s)
}

func request(s *pulumiv1.Stack) string { return s.Annotations[pulumiv1.AnnotationReconcileRequest] }

func uidOf(t *testing.T, clients *record.Clients, s *pulumiv1.Stack) types.UID {
	t.Helper()
	u, err := clients.Pulumi.AutoV1alpha1().Updates(namespace).Get(t.Context(), s.Status.LastUpdate.Name, metav1.GetOptions{})
	must(t, err)
	return u.UID
}

func eventually(t *testing.T, what string, tell func() []string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			err := errors.New("waited in vain: " + what)
			if tell != nil {
				err = fmt.Errorf("%w:\n%s", err, strings.Join(tell(), "\n"))
			}
			t.Fatal(err)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
