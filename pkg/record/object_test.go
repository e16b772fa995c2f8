package record

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
)

var (
	stacks   = schema.GroupResource{Group: "pulumi.com", Resource: "stacks"}
	notFound = apierrors.NewNotFound(stacks, "app")
	conflict = apierrors.NewConflict(stacks, "app", errors.New("newer"))
	made     = apierrors.NewAlreadyExists(stacks, "app")
	down     = apierrors.NewServiceUnavailable("later")
)

func withFinalizers(finalizers ...string) *pulumiv1.Stack {
	return &pulumiv1.Stack{ObjectMeta: metav1.ObjectMeta{Name: "app", UID: "uid-of-app", Finalizers: finalizers}}
}

func TestFinalizers(t *testing.T) {
	const ours, others = pulumiv1.Finalizer, "others.example.com/finalizer"
	cases := map[string]struct {
		has            []string
		there          bool
		added, removed []string
	}{
		"None":            {nil, false, []string{ours}, nil},
		"Ours":            {[]string{ours}, true, []string{ours}, nil},
		"Others'":         {[]string{others}, false, []string{others, ours}, []string{others}},
		"Both":            {[]string{ours, others}, true, []string{ours, others}, []string{others}},
		"Ours, twice":     {[]string{ours, others, ours}, true, []string{ours, others, ours}, []string{others}},
		"One that begins": {[]string{ours + "s"}, false, []string{ours + "s", ours}, []string{ours + "s"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := HasFinalizer(withFinalizers(c.has...)); got != c.there {
				t.Errorf("HasFinalizer = %v", got)
			}
			s := withFinalizers(c.has...)
			AddFinalizer(s)
			if diff := cmp.Diff(c.added, s.Finalizers); diff != "" {
				t.Errorf("added: -want +got:\n%s", diff)
			}
			s = withFinalizers(c.has...)
			RemoveFinalizer(s)
			if diff := cmp.Diff(c.removed, s.Finalizers); diff != "" {
				t.Errorf("removed: -want +got:\n%s", diff)
			}
		})
	}
}

func TestAnswersOfTheAPIServer(t *testing.T) {
	wrapped := func(err error) error { return fmt.Errorf("cannot do it: %w", err) }
	cases := map[string]struct {
		err        error
		found      bool // Found gives no error
		gone, made bool // Gone and Made forgive it
		refused    bool
	}{
		"None":             {err: nil, found: true, gone: true, made: true},
		"Not found":        {err: notFound, found: true, gone: true},
		"Conflict":         {err: conflict, gone: true},
		"Already exists":   {err: made, made: true},
		"Later":            {err: down},
		"Any other":        {err: errors.New("x")},
		"Wrapped":          {err: wrapped(notFound), found: true, gone: true},
		"Not valid":        {err: apierrors.NewInvalid(schema.GroupKind{Kind: "Job"}, "app", nil), refused: true},
		"Not understood":   {err: apierrors.NewBadRequest("x"), refused: true},
		"Too large":        {err: apierrors.NewRequestEntityTooLargeError("x"), refused: true},
		"Not allowed":      {err: apierrors.NewForbidden(stacks, "app", errors.New("no"))},
		"Not for a client": {err: apierrors.NewGenericServerResponse(http.StatusUnauthorized, "get", stacks, "app", "", 0, true)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			object, err := Found(withFinalizers(), c.err)
			if (err == nil) != c.found || (object != nil) != (c.err == nil) {
				t.Errorf("Found = %v, %v", object, err)
			}
			if err := Gone(c.err); (err == nil) != c.gone {
				t.Errorf("Gone = %v", err)
			}
			if err := Made(c.err); (err == nil) != c.made {
				t.Errorf("Made = %v", err)
			}
			if got := Refused(c.err); (got != "") != c.refused {
				t.Errorf("Refused = %q", got)
			}
		})
	}
}

func TestADeletionIsOfOneObjectOnly(t *testing.T) {
	got := Only(withFinalizers())
	if got.Preconditions == nil || *got.Preconditions.UID != "uid-of-app" || *got.PropagationPolicy != metav1.DeletePropagationBackground {
		t.Errorf("options = %+v", got)
	}
}
