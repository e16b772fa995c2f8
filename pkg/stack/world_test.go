package stack

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
)

func TestWhatAnUpdateStandsForIsReadAsItWasWritten(t *testing.T) {
	for _, f := range []For{
		{},
		{Generation: 1, Type: autov1alpha1.UpType},
		{Generation: 9, Request: `a "quoted" one, <b> & ü`, Revision: "main@sha1:abc", Type: autov1alpha1.DestroyType},
	} {
		got, err := ParseFor(anUpdate(stackUID, autov1alpha1.UpType, stands(f)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(f, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

func TestAnUpdateThatSaysNotWhatItStandsForIsRefused(t *testing.T) {
	for _, value := range []string{"", "{", `{"generation":"one"}`, "[]"} {
		u := anUpdate(stackUID, autov1alpha1.UpType)
		u.Annotations[pulumiv1.AnnotationFor] = value
		if got, err := ParseFor(u); err == nil {
			t.Errorf("%q was read as %+v", value, got)
		}
	}
}

func TestMadeFor(t *testing.T) {
	controller, plain := true, false
	owned := func(controls *bool) *autov1alpha1.Workspace {
		return &autov1alpha1.Workspace{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: stackUID, Controller: controls}}}}
	}
	marked := func(value string) *autov1alpha1.Workspace {
		ws := owned(&controller)
		ws.Annotations = map[string]string{pulumiv1.AnnotationStackUID: value}
		return ws
	}
	cases := map[string]struct {
		object metav1.Object
		want   bool
	}{
		"By its annotation":                      {marked(string(stackUID)), true},
		"Another's by its annotation, owner too": {marked("uid-of-another"), false},
		"Nobody's by its annotation":             {marked(""), false},
		"By its controller, as the reference":    {owned(&controller), true},
		"Not by a plain owner":                   {owned(&plain), false},
		"Not by nothing":                         {&autov1alpha1.Workspace{}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := MadeFor(c.object, stackUID); got != c.want {
				t.Errorf("MadeFor = %v", got)
			}
		})
	}
}

func TestTheNameOfAClaim(t *testing.T) {
	name := ClaimName("app", time.UnixMilli(0x19cb6d0f8e0))
	if name != claimed || !OfStack(name, "app") {
		t.Errorf("ClaimName = %s", name)
	}
	if later := ClaimName("app", time.UnixMilli(0x19cb6d0f8e1)); later <= name {
		t.Errorf("A later claim is %s", later)
	}
	longest := ClaimName("a23456789012345678901234567890123456789012", time.Date(2500, 1, 1, 0, 0, 0, 0, time.UTC))
	if problems := validation.IsValidLabelValue(longest); len(problems) > 0 {
		t.Errorf("%s does not fit a label: %v", longest, problems)
	}
	for update, stack := range map[string]string{
		"app-19cb6d0f8e0": "ap", "app": "app", "app-": "app", "app-by-hand": "app", "web-19cb6d0f8e0": "app", "app-web-19cb6d0f8e0": "app",
	} {
		if OfStack(update, stack) {
			t.Errorf("%s is of Stack %s", update, stack)
		}
	}
}

func TestTheVersionOfAWorkspace(t *testing.T) {
	if got := WorkspaceVersion(aWorkspace(stackUID)); got != "uid-of-workspace/4" {
		t.Errorf("WorkspaceVersion = %s", got)
	}
}
