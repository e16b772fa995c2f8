package stack

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
)

// World is all that a decision about a Stack rests on, as it was read.
type World struct {
	// Stack as it was read.
	Stack *pulumiv1.Stack
	// Update that the Stack's claim names; nil if there is none.
	Update *autov1alpha1.Update
	// Workspace of the Stack's name; nil if there is none, or if NeedsWorkspace
	// said that it need not be read.
	Workspace *autov1alpha1.Workspace
	// HolderEnded says that the Update which holds the Workspace's lock is gone,
	// or is Complete and its run has ended: the lock is nobody's.
	HolderEnded bool
	// Source of the Stack.
	Source Source
	// Prerequisites by name; one that does not exist is absent.
	Prerequisites map[string]*pulumiv1.Stack
}

// Source is what is known of a Stack's source.
type Source struct {
	// Revision to run: a Program's generation, a commit, or "" without a source
	// or with one of which no revision has been seen yet.
	Revision string
	// SameAs is the revision that ran and that this one is no other than, in what
	// the Stack depends on; "" if it is another.
	SameAs string
	// Problem says why the source cannot be used now; "" if it can.
	Problem string
	// Unread says why the newest revision is not known; "" if it is. What was
	// seen before counts meanwhile.
	Unread string
}

// counts is the revision that is compared with the one that ran.
func (s Source) counts() string {
	if s.SameAs != "" {
		return s.SameAs
	}
	return s.Revision
}

// For is what an Update stands for, kept on it as an annotation.
type For struct {
	Generation int64                   `json:"generation"`
	Request    string                  `json:"request,omitempty"`
	Revision   string                  `json:"revision,omitempty"`
	Type       autov1alpha1.UpdateType `json:"type"`
	// Resync says that nothing but time asked for it: the same generation, request
	// and revision ran last, and succeeded.
	Resync bool `json:"resync,omitempty"`
}

// String is the annotation's value.
func (f For) String() string {
	b, err := json.Marshal(f)
	if err != nil {
		panic(err) // a struct of strings and a number always encodes
	}
	return string(b)
}

// ParseFor reads what an Update stands for. It fails for an Update that was not
// made for a Stack.
func ParseFor(update *autov1alpha1.Update) (For, error) {
	var f For
	if err := json.Unmarshal([]byte(update.Annotations[pulumiv1.AnnotationFor]), &f); err != nil {
		return f, fmt.Errorf("cannot read annotation %s of Update %s: %w", pulumiv1.AnnotationFor, update.Name, err)
	}
	return f, nil
}

// WorkspaceVersion is the value of the annotation that ties an Update to a
// Workspace as a write answered it: uid/generation.
func WorkspaceVersion(ws *autov1alpha1.Workspace) string {
	return string(ws.UID) + "/" + strconv.FormatInt(ws.Generation, 10)
}

// MadeFor says whether an object was made for the Stack of this UID: it bears
// the annotation, or that Stack is its controller (as the Pulumi Kubernetes
// Operator left it).
func MadeFor(object metav1.Object, uid types.UID) bool {
	if marked, ok := object.GetAnnotations()[pulumiv1.AnnotationStackUID]; ok {
		return marked == string(uid)
	}
	owner := metav1.GetControllerOf(object)
	return owner != nil && owner.UID == uid
}

// ClaimName is the name of a claimed Update: the Stack's name and the time of
// the claim.
func ClaimName(stack string, now time.Time) string {
	return stack + "-" + strconv.FormatInt(now.UnixMilli(), 16)
}

// OfStack says whether an Update's name is one that ClaimName gives for the
// Stack.
func OfStack(update, stack string) bool {
	rest, ok := strings.CutPrefix(update, stack+"-")
	if !ok {
		return false
	}
	_, err := strconv.ParseInt(rest, 16, 64)
	return err == nil
}

func deleting(stack *pulumiv1.Stack) bool { return stack.DeletionTimestamp != nil }

// wantsDestroy says whether a Stack may go only after a destroy.
func wantsDestroy(stack *pulumiv1.Stack) bool {
	return stack.Spec.DestroyOnFinalize && !stack.Spec.Preview && stack.Annotations[pulumiv1.AnnotationLetGo] != "true"
}

// Sourceless says whether the Stack's next run does without its source: a
// destroy that need not run the program, of a project that is known.
func Sourceless(stack *pulumiv1.Stack) bool {
	return deleting(stack) && wantsDestroy(stack) && !stack.Spec.RunProgram && stack.Status.ProjectInfo != nil
}

func hasFinalizer(object metav1.Object) bool {
	return slices.Contains(object.GetFinalizers(), pulumiv1.Finalizer)
}

func request(stack *pulumiv1.Stack) string {
	return stack.Annotations[pulumiv1.AnnotationReconcileRequest]
}
