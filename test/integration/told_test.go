package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/event"
)

// told are the events for other systems about an object, each id once, in the order
// in which it was first sent.
func (s *space) told(kind, name string) (told []cloudevents.Event) {
	s.Helper()
	_, lines := witness.about(s.namespace)
	for _, line := range lines {
		var e cloudevents.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil || lab.schemas[e.Type()] == nil {
			continue
		}
		about, err := event.About(e)
		known := slices.ContainsFunc(told, func(other cloudevents.Event) bool { return other.ID() == e.ID() })
		if err == nil && !known && about == (event.Ref{Kind: kind, Namespace: s.namespace, Name: name}) {
			told = append(told, e)
		}
	}
	return told
}

// awaitTold waits until these types, and no others, were told of an object.
func (s *space) awaitTold(kind, name string, types ...string) []cloudevents.Event {
	s.Helper()
	var told []cloudevents.Event
	s.eventually(fmt.Sprintf("%v are told of %s %s", types, kind, name), func() error {
		told = s.told(kind, name)
		var got, ids []string
		for _, e := range told {
			got = append(got, e.Type())
			ids = append(ids, e.ID())
		}
		if !slices.Equal(got, types) {
			return fmt.Errorf("told are %v with ids %v", got, ids)
		}
		return nil
	})
	return told
}

func TestOtherSystemsAreToldOfAStacksLife(t *testing.T) {
	t.Parallel()
	s := newSpace(t, lab.main, twice)
	s.program("greets", greets)
	s.create(s.stackOf("app", "greets", destroyed))
	first := s.awaitReady("app").Status.LastUpdate.Name
	s.awaitTold(event.KindStack, "app", event.TypeStackSucceeded)
	s.awaitTold(event.KindUpdate, first, event.TypeRunStarted, event.TypeRunFinished)
	uid := s.get("app").UID

	s.change("app", spec(`envRefs: {A: {type: Env, env: {name: A}}}`))
	awaitReason(s, "app", pulumiv1.StalledSpecInvalid)
	s.awaitTold(event.KindStack, "app", event.TypeStackSucceeded, event.TypeStackStalled)

	s.change("app", func(stack *pulumiv1.Stack) { delete(stack.Spec.EnvRefs, "A") })
	s.awaitReady("app")
	s.awaitTold(event.KindStack, "app", event.TypeStackSucceeded, event.TypeStackStalled, event.TypeStackSucceeded)
	s.delete("app", metav1.DeletePropagationBackground)
	s.awaitGone("app")
	told := s.awaitTold(event.KindStack, "app", event.TypeStackSucceeded, event.TypeStackStalled, event.TypeStackSucceeded, event.TypeStackDeleted)
	var deleted event.StackDeleted
	if err := told[3].DataAs(&deleted); err != nil || !deleted.Destroyed || told[3].ID() != string(uid)+"/deleted" {
		t.Errorf("told is %v, %v", told[3], err)
	}

	s.create(s.stackOf("kept", "greets"))
	s.awaitReady("kept")
	s.awaitTold(event.KindStack, "kept", event.TypeStackSucceeded) // of a Stack that is gone only that is told
	s.delete("kept", metav1.DeletePropagationBackground)
	s.awaitGone("kept")
	told = s.awaitTold(event.KindStack, "kept", event.TypeStackSucceeded, event.TypeStackDeleted)
	if err := told[1].DataAs(&deleted); err != nil || deleted.Destroyed {
		t.Errorf("told is %v, %v", told[1], err)
	}
}

// The only resource of a program without providers is the stack itself. Its state is
// lost here: the resync makes it anew, and nobody had asked for that.
func TestOtherSystemsAreToldOfDrift(t *testing.T) {
	t.Parallel()
	p := moving(t)
	s := newSpace(t, p, plain)
	s.program("greets", greets)
	s.create(s.stackOf("app", "greets", spec(`{continueResyncOnCommitMatch: true, resyncFrequencySeconds: 3600}`)))
	first := s.awaitReady("app").Status.LastUpdate.Name

	resync := func(before string) string {
		p.clock.move(time.Hour + time.Minute)
		s.due("app")
		return s.await("app", "ran again", func(stack *pulumiv1.Stack) bool {
			return isReady(stack) && stack.Status.LastUpdate.Name != before
		}).Status.LastUpdate.Name
	}
	second := resync(first)
	s.awaitTold(event.KindStack, "app", event.TypeStackSucceeded, event.TypeStackSucceeded)

	state := filepath.Join(s.backend("state"), "stacks", "greets", "app.json")
	if err := errors.Join(os.Remove(state), os.RemoveAll(state+".bak")); err != nil {
		t.Fatal(err)
	}
	third := resync(second)
	told := s.awaitTold(event.KindStack, "app", event.TypeStackSucceeded, event.TypeStackSucceeded, event.TypeStackDrifted, event.TypeStackSucceeded)
	var drifted event.StackDrifted
	if err := told[2].DataAs(&drifted); err != nil || drifted.Update != third || drifted.Resources != 1 {
		t.Errorf("told is %v, %v", told[2], err)
	}
}
