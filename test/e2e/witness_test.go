//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/updraft-dev/updraft/test/leak"
	"github.com/updraft-dev/updraft/test/schemas"
)

// toldNever are values of tests that no event may have: of a program, of a
// configuration, of an environment, an output's and an error's.
var toldNever = []string{"a-value-of-the-program", "a-value-of-configuration", "a-value-of-the-environment", "Hello, ", "missing.txt"}

// witness subscribes to all that is told to other systems while the tests run.
type witness struct {
	namespace string
	schemas   schemas.Schemas
}

func newWitness(ctx context.Context) (*witness, error) {
	if os.Getenv("OUTSIDE_IMAGE") == "" {
		return nil, errors.New("OUTSIDE_IMAGE is not set: run make e2e, which builds it")
	}
	all, err := schemas.Load(cluster.root)
	if err != nil {
		return nil, err
	}
	made, err := cluster.clients.Core.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: namespaces + "witness-"}}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	w := &witness{namespace: made.Name, schemas: all}
	trigger := `
apiVersion: eventing.knative.dev/v1
kind: Trigger
metadata: {name: ` + w.namespace + `, namespace: ` + systemNamespace + `}
spec:
  broker: updraft
  filters: [{any: [{prefix: {type: dev.updraft.stack.}}, {prefix: {type: dev.updraft.run.}}, {exact: {type: dev.updraft.push}}]}]
  subscriber: {uri: ` + outsideURL(w.namespace) + `/events}
`
	limit := "--timeout=" + patience.String()
	if err := inTurn(ctx, []step{
		{outsideManifest(), []string{"apply", "-n", w.namespace, "-f", "-"}},
		{"", []string{"rollout", "status", "-n", w.namespace, "deployment/outside", limit}},
		{trigger, []string{"apply", "-f", "-"}},
		{"", []string{"wait", "-n", systemNamespace, "trigger/" + w.namespace, "--for=condition=Ready", limit}},
	}); err != nil {
		w.leave()
		return nil, err
	}
	return w, nil
}

// step is a kubectl command and what it reads.
type step struct {
	stdin string
	args  []string
}

// inTurn runs steps until one fails.
func inTurn(ctx context.Context, steps []step) error {
	for _, step := range steps {
		c := exec.CommandContext(ctx, kubectlPath(), step.args...)
		c.Stdin = strings.NewReader(step.stdin)
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("kubectl %s: %w\n%s", strings.Join(step.args, " "), err, out)
		}
	}
	return nil
}

// events are those that came so far, and the same as text.
func (w *witness) events(ctx context.Context) ([]cloudevents.Event, string, error) {
	text, err := atOutside(cluster.clients.Core.RESTClient().Get(), w.namespace, "events").DoRaw(ctx)
	if err != nil {
		return nil, "", fmt.Errorf("cannot ask the witness: %w", err)
	}
	var events []cloudevents.Event
	if err := json.Unmarshal(text, &events); err != nil {
		return nil, "", fmt.Errorf("what the witness says is no list of events: %w", err)
	}
	return events, string(text), nil
}

// check holds every event to its schema, and looks for what must not be told.
func (w *witness) check(ctx context.Context) error {
	events, text, err := w.events(ctx)
	if err != nil {
		return err
	}
	problems := []error{leak.InText("what is told to other systems", text, toldNever...)}
	for _, e := range events {
		problems = append(problems, w.schemas.Check(e))
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	fmt.Printf("The witness was told %d events; each holds to its schema\n", len(events))
	return nil
}

func (w *witness) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, args := range [][]string{{"delete", "trigger", w.namespace, "-n", systemNamespace, "--ignore-not-found"}, {"delete", "namespace", w.namespace, "--wait=false"}} {
		if out, err := exec.CommandContext(ctx, kubectlPath(), args...).CombinedOutput(); err != nil {
			fmt.Printf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
