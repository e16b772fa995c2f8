package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/event"
	"github.com/updraft-dev/updraft/pkg/record"
	"github.com/updraft-dev/updraft/test/invariants"
)

// patience is how long a test waits for what should come in seconds: a machine
// with two cores may have much else to do.
const patience = 2 * time.Minute

// space is a test's own namespace.
type space struct {
	*testing.T
	*place
	namespace string
}

// newSpace makes a namespace whose name begins with a prefix, with a claim for
// the state of all its Stacks.
func newSpace(t *testing.T, p *place, prefix string) *space {
	t.Helper()
	ctx := t.Context()
	namespace, err := p.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix + "-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s := &space{T: t, place: p, namespace: namespace.Name}
	t.Cleanup(s.tell)
	s.eventually("the ServiceAccount default is there", func() error {
		_, err := p.kube.CoreV1().ServiceAccounts(s.namespace).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "state"}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}},
	}}
	if _, err := p.kube.CoreV1().PersistentVolumeClaims(s.namespace).Create(ctx, claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return s
}

// tell says, after a failure, what there is to know of the namespace.
func (s *space) tell() {
	if !s.Failed() {
		return
	}
	for _, kind := range []string{"Stack", "Workspace", "Update", "Job", "Pod"} {
		for _, object := range s.objects(context.Background(), kind) {
			text, _ := yaml.Marshal(map[string]any{
				"annotations": object.GetAnnotations(), "finalizers": object.GetFinalizers(),
				"deletionTimestamp": object.GetDeletionTimestamp(), "status": object.Object["status"],
			})
			s.Logf("%s %s\n%s", kind, object.GetName(), text)
		}
	}
	logs, events := witness.about(s.namespace)
	s.Logf("log:\n%s", strings.Join(logs, "\n"))
	s.Logf("events:\n%s", strings.Join(events, "\n"))
}

// ourKinds are all kinds of objects that come and go with a Stack.
var ourKinds = map[string]schema.GroupVersionResource{
	"Stack":      {Group: "pulumi.com", Version: "v1", Resource: "stacks"},
	"Program":    {Group: "pulumi.com", Version: "v1", Resource: "programs"},
	"Workspace":  {Group: "auto.pulumi.com", Version: "v1alpha1", Resource: "workspaces"},
	"Update":     {Group: "auto.pulumi.com", Version: "v1alpha1", Resource: "updates"},
	"Job":        {Group: "batch", Version: "v1", Resource: "jobs"},
	"Pod":        {Version: "v1", Resource: "pods"},
	"ConfigMap":  {Version: "v1", Resource: "configmaps"},
	"Secret":     {Version: "v1", Resource: "secrets"},
	"Event":      {Version: "v1", Resource: "events"},
	"PingSource": {Group: "sources.knative.dev", Version: "v1", Resource: "pingsources"},
}

// objects of a kind in the namespace.
func (s *space) objects(ctx context.Context, kind string) []unstructured.Unstructured {
	list, err := s.dynamic.Resource(ourKinds[kind]).Namespace(s.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		s.Errorf("cannot list %ss: %v", kind, err)
		return nil
	}
	return list.Items
}

// names of the objects of a kind, without what every namespace has.
func (s *space) names(kind string) []string {
	var names []string
	for _, object := range s.objects(s.Context(), kind) {
		if object.GetName() != "kube-root-ca.crt" {
			names = append(names, object.GetName())
		}
	}
	return names
}

// eventually asks until the answer is nil, and fails the test with the last one
// if that takes too long.
func (s *space) eventually(what string, ask func() error) {
	s.Helper()
	s.within(patience, what, ask)
}

func (s *space) within(limit time.Duration, what string, ask func() error) {
	s.Helper()
	deadline := time.Now().Add(limit)
	for {
		err := ask()
		switch {
		case err == nil:
			return
		case time.Now().After(deadline):
			s.Fatalf("waited in vain until %s: %v", what, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// kubectl runs the real one in the namespace and returns what it says.
func (s *space) kubectl(arguments ...string) string {
	s.Helper()
	command := exec.CommandContext(s.Context(), filepath.Join(s.options.Bin, "kubectl"), append([]string{"--kubeconfig", s.Kubeconfig, "-n", s.namespace}, arguments...)...)
	out, err := command.CombinedOutput()
	if err != nil {
		s.Fatalf("kubectl %s: %v\n%s", strings.Join(arguments, " "), err, out)
	}
	return string(out)
}

// program applies a Program, whose body is YAML.
func (s *space) program(name, body string) *pulumiv1.Program {
	s.Helper()
	wanted := &pulumiv1.Program{ObjectMeta: metav1.ObjectMeta{Name: name}}
	s.parse(body, &wanted.Program)
	client := s.pulumi.PulumiV1().Programs(s.namespace)
	var program *pulumiv1.Program
	s.eventually("Program "+name+" is applied", func() error {
		existing, err := record.Found(client.Get(s.Context(), name, metav1.GetOptions{}))
		switch {
		case err != nil:
			return err
		case existing == nil:
			program, err = client.Create(s.Context(), wanted, metav1.CreateOptions{})
			return err
		}
		existing.Program = wanted.Program
		program, err = client.Update(s.Context(), existing, metav1.UpdateOptions{})
		return err
	})
	return program
}

func (s *space) parse(text string, into any) {
	s.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		s.Fatalf("%v in\n%s", err, text)
	}
}

// Bodies of Programs.
const (
	greets = `
configuration: {name: {type: String, default: world}}
outputs: {message: "Hello, ${name}!"}
`
	// reads what the file holds that the configuration names: a fifo holds the
	// run until somebody writes, and a file that is missing fails it.
	reads = `
configuration: {file: {type: String}}
outputs: {message: {"fn::readFile": "${file}"}}
`
)

// changed is another Program of the same configuration.
func changed(body string) string {
	return strings.Replace(body, "outputs: {", "outputs: {more: than before, ", 1)
}

// stackOf is a Stack of a Program, whose state is in the namespace's claim.
func (s *space) stackOf(name, program string, change ...func(*pulumiv1.Stack)) *pulumiv1.Stack {
	s.Helper()
	stack := &pulumiv1.Stack{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.namespace}}
	s.parse(fmt.Sprintf(`
stack: %s
programRef: {name: %s}
backend: file://$(UPDRAFT_ROOT)/state?create_dir=true
envRefs:
  PULUMI_CONFIG_PASSPHRASE: {type: Literal, literal: {value: passphrase}}
workspaceTemplate:
  spec:
    podTemplate:
      spec:
        containers: [{name: pulumi, volumeMounts: [{name: state, mountPath: /share/state}]}]
        volumes: [{name: state, persistentVolumeClaim: {claimName: state}}]
`, name, program), &stack.Spec)
	for _, c := range change {
		c(stack)
	}
	return stack
}

// Changes of a Stack.

func destroyed(stack *pulumiv1.Stack) { stack.Spec.DestroyOnFinalize = true }

func config(key, value string) func(*pulumiv1.Stack) {
	return func(stack *pulumiv1.Stack) {
		if stack.Spec.Config == nil {
			stack.Spec.Config = map[string]jsonValue{}
		}
		stack.Spec.Config[key] = jsonOf(value)
	}
}

func annotated(key, value string) func(*pulumiv1.Stack) {
	return func(stack *pulumiv1.Stack) {
		if stack.Annotations == nil {
			stack.Annotations = map[string]string{}
		}
		stack.Annotations[key] = value
		if value == "" {
			delete(stack.Annotations, key)
		}
	}
}

func spec(yamlText string) func(*pulumiv1.Stack) {
	return func(stack *pulumiv1.Stack) {
		if err := yaml.Unmarshal([]byte(yamlText), &stack.Spec); err != nil {
			panic(err)
		}
	}
}

// create creates a Stack, as soon as no other of its name is there.
func (s *space) create(stack *pulumiv1.Stack) *pulumiv1.Stack {
	s.Helper()
	var created *pulumiv1.Stack
	s.eventually("Stack "+stack.Name+" is created", func() (err error) {
		created, err = s.pulumi.PulumiV1().Stacks(s.namespace).Create(s.Context(), stack, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			s.Fatal(err)
		}
		return err
	})
	return created
}

// get reads a Stack that must be there.
func (s *space) get(name string) *pulumiv1.Stack {
	s.Helper()
	stack, err := s.pulumi.PulumiV1().Stacks(s.namespace).Get(s.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return stack
}

// change changes a Stack, whatever others write to it.
func (s *space) change(name string, changes ...func(*pulumiv1.Stack)) *pulumiv1.Stack {
	s.Helper()
	var changed *pulumiv1.Stack
	s.eventually("Stack "+name+" is changed", func() (err error) {
		stack := s.get(name)
		for _, c := range changes {
			c(stack)
		}
		changed, err = s.pulumi.PulumiV1().Stacks(s.namespace).Update(s.Context(), stack, metav1.UpdateOptions{})
		return err
	})
	return changed
}

// request asks for a run by annotation.
func (s *space) request(name, value string) *pulumiv1.Stack {
	s.Helper()
	return s.change(name, annotated(pulumiv1.AnnotationReconcileRequest, value))
}

// delete deletes a Stack and does not wait.
func (s *space) delete(name string, how metav1.DeletionPropagation) {
	s.Helper()
	err := s.pulumi.PulumiV1().Stacks(s.namespace).Delete(s.Context(), name, metav1.DeleteOptions{PropagationPolicy: &how})
	if err != nil {
		s.Fatal(err)
	}
}

// awaitGone waits until a Stack is gone.
func (s *space) awaitGone(name string) {
	s.Helper()
	s.eventually("Stack "+name+" is gone", func() error {
		stack, err := record.Found(s.pulumi.PulumiV1().Stacks(s.namespace).Get(s.Context(), name, metav1.GetOptions{}))
		if err == nil && stack != nil {
			return fmt.Errorf("it is there: %s", summary(stack))
		}
		return err
	})
}

// await waits for a Stack.
func (s *space) await(name, what string, is func(*pulumiv1.Stack) bool) *pulumiv1.Stack {
	s.Helper()
	return s.awaitWithin(patience, name, what, is)
}

func (s *space) awaitWithin(limit time.Duration, name, what string, is func(*pulumiv1.Stack) bool) *pulumiv1.Stack {
	s.Helper()
	var found *pulumiv1.Stack
	s.within(limit, "Stack "+name+" "+what, func() (err error) {
		found, err = s.pulumi.PulumiV1().Stacks(s.namespace).Get(s.Context(), name, metav1.GetOptions{})
		if err == nil && !is(found) {
			err = errors.New(summary(found))
		}
		return err
	})
	return found
}

// awaitReady waits until a Stack is Ready as it is now.
func (s *space) awaitReady(name string) *pulumiv1.Stack {
	s.Helper()
	return s.await(name, "is Ready", isReady)
}

func isReady(stack *pulumiv1.Stack) bool {
	return meta.IsStatusConditionTrue(stack.Status.Conditions, pulumiv1.ReadyCondition) && observed(stack)
}

// observed says whether a Stack's status is of the Stack as it is.
func observed(stack *pulumiv1.Stack) bool {
	return stack.Status.ObservedGeneration == stack.Generation &&
		stack.Status.ObservedReconcileRequest == stack.Annotations[pulumiv1.AnnotationReconcileRequest]
}

// awaitReason waits until the one condition that is True has this reason.
func awaitReason[R ~string](s *space, name string, reason R) *pulumiv1.Stack {
	s.Helper()
	return s.await(name, "says "+string(reason), func(stack *pulumiv1.Stack) bool {
		return observed(stack) && current(stack) == string(reason)
	})
}

// current is the reason of the condition which is True.
func current(stack *pulumiv1.Stack) string { return invariants.Reason(stack) }

// message is that of the condition which is True.
func message(stack *pulumiv1.Stack) string {
	for _, c := range stack.Status.Conditions {
		if c.Status == metav1.ConditionTrue {
			return c.Message
		}
	}
	return ""
}

// summary is a Stack in a line.
func summary(stack *pulumiv1.Stack) string {
	last, _ := json.Marshal(stack.Status.LastUpdate)
	claim, _ := json.Marshal(stack.Status.CurrentUpdate)
	return fmt.Sprintf("generation %d, observed %d, request %q, observed %q, deleted %v; %s: %s; last %s; claim %s", stack.Generation, stack.Status.ObservedGeneration,
		stack.Annotations[pulumiv1.AnnotationReconcileRequest], stack.Status.ObservedReconcileRequest, stack.DeletionTimestamp, current(stack), message(stack), last, claim)
}

// due asks for a look at a Stack, as an alarm would.
func (s *space) due(name string) {
	s.Helper()
	s.dueAbout(event.KindStack, name)
}

// dueUpdate asks for a look at an Update.
func (s *space) dueUpdate(name string) {
	s.Helper()
	s.dueAbout(event.KindUpdate, name)
}

func (s *space) dueAbout(kind, name string) {
	s.Helper()
	e := event.NewDue("test", fmt.Sprint(s.namespace, "/", name, "/", time.Now().UnixNano()), event.Ref{Kind: kind, Namespace: s.namespace, Name: name})
	if status := send(s.Context(), s.T, s.BrokerURL, e, ""); status/100 != 2 {
		s.Fatalf("the Broker answered %d", status)
	}
}

// update reads an Update that must be there.
func (s *space) update(name string) *autov1alpha1.Update {
	s.Helper()
	u, err := s.pulumi.AutoV1alpha1().Updates(s.namespace).Get(s.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return u
}

// awaitUpdate waits for an Update, as the observer has seen it: it may be gone.
func (s *space) awaitUpdate(name, what string, is func(*autov1alpha1.Update) bool) *autov1alpha1.Update {
	s.Helper()
	var found *autov1alpha1.Update
	s.eventually("Update "+name+" "+what, func() error {
		found = s.watch.update(s.namespace, name)
		if found == nil {
			return errors.New("it is not there")
		}
		if !is(found) {
			text, _ := json.Marshal(found.Status)
			return errors.New(string(text))
		}
		return nil
	})
	return found
}

// awaitRest waits until nothing of any run is left: no Job, no Pod, no lock, no
// finalizer of an Update, no alarm.
func (s *space) awaitRest() {
	s.Helper()
	s.eventually("no alarm is left", func() error { return s.none("PingSource") })
	s.awaitRestButAlarms()
}

// awaitRestButAlarms is awaitRest where something is still to come.
func (s *space) awaitRestButAlarms() {
	s.Helper()
	s.eventually("nothing of a run is left", func() error {
		if err := errors.Join(s.none("Job"), s.none("Pod")); err != nil {
			return err
		}
		for _, ws := range s.workspaces() {
			if ws.Status.Run != nil {
				return fmt.Errorf("Workspace %s is locked by %s", ws.Name, ws.Status.Run.Name)
			}
		}
		for _, u := range s.updates() {
			if !u.Settled() || record.HasFinalizer(&u) {
				return fmt.Errorf("Update %s is not let go", u.Name)
			}
		}
		return nil
	})
}

// none is an error if there are objects of a kind.
func (s *space) none(kind string) error {
	s.Helper()
	if names := s.names(kind); len(names) > 0 {
		return fmt.Errorf("%ss %v are left", kind, names)
	}
	return nil
}

func (s *space) workspaces() []autov1alpha1.Workspace {
	s.Helper()
	list, err := s.pulumi.AutoV1alpha1().Workspaces(s.namespace).List(s.Context(), metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return list.Items
}

func (s *space) updates() []autov1alpha1.Update {
	s.Helper()
	list, err := s.pulumi.AutoV1alpha1().Updates(s.namespace).List(s.Context(), metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return list.Items
}

// awaitNothing waits until nothing is left of what was made for Stacks that are
// gone.
func (s *space) awaitNothing() {
	s.Helper()
	s.eventually("all that was made is gone", func() error {
		for _, kind := range []string{"Stack", "Workspace", "Update", "Job", "Pod", "ConfigMap", "PingSource"} {
			if err := s.none(kind); err != nil {
				return err
			}
		}
		for _, name := range s.names("Secret") {
			if strings.HasSuffix(name, "-stack-outputs") || strings.Contains(name, "-inline-") {
				return fmt.Errorf("Secret %s is left", name)
			}
		}
		return nil
	})
}

// backend is the folder of a claim's state.
func (s *space) backend(claim string) string {
	return filepath.Join(s.options.Dir, "claims", s.namespace, claim, ".pulumi")
}

// operations counts what the CLI did to a stack.
func (s *space) operations(claim, project, stack string) int {
	s.Helper()
	found, err := filepath.Glob(filepath.Join(s.backend(claim), "history", project, stack, "*.history.json"))
	if err != nil {
		s.Fatal(err)
	}
	return len(found)
}

// resources counts what the state of a stack holds, the stack itself included.
func (s *space) resources(claim, project, stack string) int {
	s.Helper()
	n, err := s.stateOf(claim, project, stack)
	if err != nil {
		s.Fatal(err)
	}
	return n
}

func (s *space) stateOf(claim, project, stack string) (resources int, err error) {
	text, err := os.ReadFile(filepath.Join(s.backend(claim), "stacks", project, stack+".json"))
	if err != nil {
		return 0, err
	}
	var state struct {
		Checkpoint struct {
			Latest struct{ Resources []json.RawMessage }
		}
	}
	if err := json.Unmarshal(text, &state); err != nil {
		return 0, err
	}
	return len(state.Checkpoint.Latest.Resources), nil
}

// locks are the backend's locks of a project's stack.
func (s *space) locks(claim string) []string {
	s.Helper()
	var locks []string
	_ = filepath.WalkDir(filepath.Join(s.backend(claim), "locks"), func(path string, entry os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".json") {
			locks = append(locks, path)
		}
		return nil
	})
	return locks
}
