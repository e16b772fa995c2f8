package record

import (
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/event"
	"github.com/updraft-dev/updraft/pkg/stack"
)

// polled is a Stack on a branch that wants a poll so often.
func polled(name, branch string, seconds int64) pulumiv1.Stack {
	return pulumiv1.Stack{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID("uid-of-" + name)},
		Spec: pulumiv1.StackSpec{
			Stack: name, ResyncFrequencySeconds: seconds,
			GitSource: &pulumiv1.GitSource{ProjectRepo: "https://git.example/app", Branch: branch},
		},
	}
}

func nameOf(t *testing.T, s pulumiv1.Stack) string {
	t.Helper()
	poll, ok := stack.PollOf(&s)
	if !ok {
		t.Fatalf("Stack %s has no poll", s.Name)
	}
	return poll.Name()
}

// A poll rings evenly, at least once a period, and not more than twice as often
// as was asked.
func TestPollSchedule(t *testing.T) {
	parser := cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
	seconds := map[string]bool{}
	for _, period := range []time.Duration{
		time.Minute, 90 * time.Second, 2 * time.Minute, 5 * time.Minute, 7 * time.Minute, 29 * time.Minute, 59 * time.Minute,
		time.Hour, 90 * time.Minute, 5 * time.Hour, 23 * time.Hour, 24 * time.Hour, 1000 * time.Hour, 1<<63 - 1,
	} {
		for _, name := range []string{"poll-a", "poll-b", "poll-c", "poll-d"} {
			line := pollSchedule(name, period)
			schedule, err := parser.Parse(line)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			seconds[strings.Fields(line)[0]] = true
			at := schedule.Next(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))
			first := schedule.Next(at).Sub(at)
			for range 100 {
				next := schedule.Next(at)
				if gap := next.Sub(at); gap > period || gap != first || gap < min(period/2, 24*time.Hour) {
					t.Fatalf("%q rings after %s, then %s, for a period of %s", line, first, gap, period)
				}
				at = next
			}
		}
	}
	if len(seconds) < 3 {
		t.Errorf("polls ring together: at the seconds %v", seconds)
	}
}

func TestAPollIsOfAllThatShareIt(t *testing.T) {
	broken := polled("broken", "main", 60)
	broken.Spec.Commit = "main"
	gone := polled("gone", "main", 60)
	gone.DeletionTimestamp = &metav1.Time{}
	stacks := []pulumiv1.Stack{polled("web", "main", 300), polled("app", "main", 120), polled("dev", "dev", 60), broken, gone, polled("cat", "main", 120)}
	name := nameOf(t, stacks[0])
	sharing := Sharing(stacks, name)
	a := &Alarms{BrokerNamespace: "updraft-system", BrokerName: "updraft"}
	source := a.pollSource(sharing, event.Ref{Kind: event.KindPoll, Namespace: "team", Name: name})

	var owners []string
	for _, owner := range source.GetOwnerReferences() {
		owners = append(owners, owner.Kind+" "+owner.Name+" "+string(owner.UID))
	}
	if got := strings.Join(owners, ", "); got != "Stack app uid-of-app, Stack cat uid-of-cat, Stack web uid-of-web" {
		t.Errorf("it is owned by %s", got)
	}
	if got := source.GetAnnotations(); got[annotationPeriod] != "2m0s" || got[annotationPeriodOf] != "uid-of-app" {
		t.Errorf("it rings by %v", got)
	}
	extensions, _, err := unstructured.NestedStringMap(source.Object, "spec", "ceOverrides", "extensions")
	if err != nil || extensions["kind"] != "Poll" || extensions["name"] != name || extensions["namespace"] != "team" || source.GetName() != name {
		t.Errorf("it asks for %v (%v)", extensions, err)
	}
}

func TestAPollSuits(t *testing.T) {
	a := &Alarms{}
	shared := []pulumiv1.Stack{polled("app", "main", 120), polled("web", "main", 300)}
	about := event.Ref{Kind: event.KindPoll, Namespace: "team", Name: nameOf(t, shared[0])}
	existing := a.pollSource(Sharing(shared, about.Name), about)
	cases := map[string]struct {
		poll  *unstructured.Unstructured
		stack pulumiv1.Stack
		want  bool
	}{
		"Who asked for its period":              {existing, shared[0], true},
		"Who is content with less":              {existing, shared[1], true},
		"Who wants it more often":               {existing, polled("web", "main", 60), false},
		"Who asked, and wants it less often":    {existing, polled("app", "main", 600), false},
		"Who did not, and wants it less often":  {existing, polled("web", "main", 600), true},
		"Who does not own it":                   {existing, polled("new", "main", 600), false},
		"Who has none":                          {nil, shared[0], false},
		"One that does not say how often it is": {&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"ownerReferences": existing.Object["metadata"].(map[string]any)["ownerReferences"]}}}, shared[0], false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := suits(c.poll, &c.stack); got != c.want {
				t.Errorf("suits() = %v, want %v", got, c.want)
			}
		})
	}
}
