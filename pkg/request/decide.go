package request

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/event"
	"github.com/updraft-dev/updraft/pkg/stack"
)

// updateTTL is how long an Update that was asked for is kept once it is Complete:
// as long as one that was made for a Stack.
const updateTTL = 24 * time.Hour

// World is what a request meets, as it was read.
type World struct {
	// Stack that it is about.
	Stack *pulumiv1.Stack
	// Workspace of the Stack's name; nil if there is none.
	Workspace *autov1alpha1.Workspace
	// Updates of those that Needs names, by name; what does not exist is absent.
	Updates map[string]*autov1alpha1.Update
}

// Verdict is what an accepted request makes: first the Update, then the
// annotations. Between the two it may be cut off: its repeat meets the Update,
// whose name is the request's own, and goes on.
type Verdict struct {
	// Repeated says that the request was taken before: there is nothing to do.
	Repeated bool
	// Create is the Update to create; nil if none is, or if it is there.
	Create *autov1alpha1.Update
	// Annotations to set on the Stack, in one write onto the version that was
	// read.
	Annotations map[string]string
	// About names the Update that the request made or stops; "" if it is an
	// update, which the Stack itself makes.
	About string
}

// Needs names the Updates that the decision needs to see, each once.
func Needs(r Request, w World) []string {
	switch {
	case r.Operation.Creates():
		return []string{UpdateName(r)}
	case r.Operation != Cancel:
		return nil
	}
	names, more := w.Stack.AsksToCancel(), running(w)
	if r.Update != "" {
		more = []string{r.Update}
	}
	for _, name := range more {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// running are the Updates that may go on, those that run first.
func running(w World) []string {
	var names []string
	if w.Workspace != nil && w.Workspace.Status.Run != nil {
		names = append(names, w.Workspace.Status.Run.Name)
	}
	if claim := w.Stack.Status.CurrentUpdate; claim != nil && (len(names) == 0 || names[0] != claim.Name) {
		names = append(names, claim.Name)
	}
	return names
}

// Decide says what a request makes of the world as it was read.
func Decide(r Request, w World) (Verdict, *Problem) {
	s := w.Stack
	if operation, found := find(s.Annotations[pulumiv1.AnnotationRequests], r.Identity); found {
		if operation != r.Operation {
			return Verdict{}, Problemf(IdentityUsed, "An event of this source and id has asked Stack %s for %s; give each event an id of its own", s.Name, operation)
		}
		return repeated(r, w), nil
	}
	if s.DeletionTimestamp != nil && r.Operation != Cancel {
		return Verdict{}, Problemf(Conflict, "Stack %s is being deleted and takes no requests but to cancel", s.Name)
	}
	switch {
	case r.Operation == Cancel:
		return cancel(r, w)
	case r.Operation.Creates():
		return create(r, w)
	default:
		return Verdict{Annotations: annotations(r, w, pulumiv1.AnnotationReconcileRequest, asks(r))}, nil
	}
}

// repeated tells of a request that was taken what can still be told.
func repeated(r Request, w World) Verdict {
	v := Verdict{Repeated: true}
	switch {
	case r.Operation.Creates():
		v.About = UpdateName(r)
	case r.Operation == Cancel && r.Update != "":
		v.About = r.Update
	case r.Operation == Cancel:
		if names := w.Stack.AsksToCancel(); len(names) == 1 {
			v.About = names[0]
		}
	}
	return v
}

func annotations(r Request, w World, key, value string) map[string]string {
	set := map[string]string{
		pulumiv1.AnnotationRequests:    remember(w.Stack.Annotations[pulumiv1.AnnotationRequests], r),
		pulumiv1.AnnotationRequestedBy: line(r.By, maxName),
	}
	if key != "" {
		set[key] = value
	}
	return set
}

// asks is the value that asks a Stack for a run. It is another for each event,
// and tells who asked: the message of the Update that is made for it has it.
func asks(r Request) string { return r.Identity[:12] + " by " + says(r) }

func says(r Request) string {
	if r.Message == "" {
		return line(r.By, maxName)
	}
	return line(r.By, maxName) + ": " + r.Message
}

func cancel(r Request, w World) (Verdict, *Problem) {
	name, problem := target(r, w)
	if problem != nil {
		return Verdict{}, problem
	}
	// Those that were asked for before and have not ended stay: the function that
	// stops runs may not have seen them yet.
	var names []string
	for _, before := range w.Stack.AsksToCancel() {
		if before != name && goesOn(w, before) {
			names = append(names, before)
		}
	}
	return Verdict{About: name, Annotations: annotations(r, w, pulumiv1.AnnotationCancel, strings.Join(append(names, name), ","))}, nil
}

// goesOn says whether an Update has not ended. One that the Stack claims need not
// have been created.
func goesOn(w World, name string) bool {
	if u := w.Updates[name]; u != nil {
		return !u.Settled() && u.Spec.WorkspaceName == w.Stack.Name
	}
	return w.Stack.Status.CurrentUpdate != nil && w.Stack.Status.CurrentUpdate.Name == name
}

// target is the Update to cancel: the one that is named, or else the one that
// runs, or else the one that the Stack claims, which need not have been created.
func target(r Request, w World) (string, *Problem) {
	if r.Update != "" {
		if w.Updates[r.Update] == nil || !goesOn(w, r.Update) {
			return "", Problemf(NothingToCancel, "No Update %s of Stack %s goes on; leave data.update out to cancel the one that does", r.Update, w.Stack.Name)
		}
		return r.Update, nil
	}
	for _, name := range running(w) {
		if goesOn(w, name) {
			return name, nil
		}
	}
	return "", Problemf(NothingToCancel, "No Update of Stack %s goes on: there is nothing to cancel", w.Stack.Name)
}

func create(r Request, w World) (Verdict, *Problem) {
	s, name := w.Stack, UpdateName(r)
	v := Verdict{About: name, Annotations: annotations(r, w, "", "")}
	if there := w.Updates[name]; there != nil {
		if there.Annotations[pulumiv1.AnnotationRequest] != r.Identity {
			return Verdict{}, Problemf(Conflict, "Update %s exists and was not asked for by this event; delete it, or send another event", name)
		}
		return v, nil
	}
	switch ws := w.Workspace; {
	case ws == nil && s.Spec.WorkspaceReclaimPolicy == pulumiv1.WorkspaceReclaimDelete:
		return Verdict{}, Problemf(NoWorkspace, "Stack %s has no Workspace to run %s in: its workspaceReclaimPolicy deletes it after each update; set it to Retain", s.Name, r.Operation)
	case ws == nil:
		return Verdict{}, Problemf(NoWorkspace, "Stack %s has no Workspace to run %s in: its first update makes it; wait until the Stack is Ready, or send %s", s.Name, r.Operation, event.PrefixRequest+string(Update))
	case !stack.MadeFor(ws, s.UID):
		return Verdict{}, Problemf(NoWorkspace, "Workspace %s was not made for this Stack; delete it, or give the Stack another name", ws.Name)
	case ws.DeletionTimestamp != nil:
		return Verdict{}, Problemf(NoWorkspace, "Workspace %s is being deleted; send the event again once the Stack is Ready", ws.Name)
	}
	v.Create = newUpdate(r, s, name)
	return v, nil
}

// UpdateName is the name of the Update that a request creates: the request's own,
// so that a repeat meets it.
func UpdateName(r Request) string {
	sum := sha256.Sum256([]byte(r.Identity + "/" + r.Stack))
	prefix := r.Stack
	if most := 42; len(prefix) > most { // its Job's name is a label's value
		prefix = strings.TrimRight(prefix[:most], "-.")
	}
	return prefix + "-" + string(r.Operation) + "-" + hex.EncodeToString(sum[:5])
}

// newUpdate is an Update as one would make it by hand: it bears no UID of a Stack
// and is folded into none.
func newUpdate(r Request, s *pulumiv1.Stack, name string) *autov1alpha1.Update {
	message := "Requested by " + says(r)
	types := map[Operation]autov1alpha1.UpdateType{
		Preview: autov1alpha1.PreviewType, Refresh: autov1alpha1.RefreshType, Destroy: autov1alpha1.DestroyType,
	}
	return &autov1alpha1.Update{
		TypeMeta: metav1.TypeMeta{APIVersion: autov1alpha1.SchemeGroupVersion.String(), Kind: "Update"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: s.Namespace,
			Annotations: map[string]string{
				pulumiv1.AnnotationRequest:     r.Identity,
				pulumiv1.AnnotationRequestedBy: line(r.By, maxName),
			},
		},
		Spec: autov1alpha1.UpdateSpec{
			WorkspaceName: s.Name, StackName: s.Spec.Stack, Type: types[r.Operation],
			Message: &message, TtlAfterCompleted: &metav1.Duration{Duration: updateTTL},
		},
	}
}
