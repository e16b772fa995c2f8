package run

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
)

func TestAssessLaunch(t *testing.T) {
	world := func(u *autov1alpha1.Update, changes ...func(*LaunchWorld)) LaunchWorld {
		w := LaunchWorld{Update: u, Workspace: aWorkspace(), Stack: aStack(), Program: aProgram(7)}
		for _, change := range changes {
			change(&w)
		}
		return w
	}
	workspace := func(changes ...func(*autov1alpha1.Workspace)) func(*LaunchWorld) {
		return func(w *LaunchWorld) { w.Workspace = aWorkspace(changes...) }
	}
	stack := func(changes ...func(*pulumiv1.Stack)) func(*LaunchWorld) {
		return func(w *LaunchWorld) { w.Stack = aStack(changes...) }
	}
	generation := func(n int64) func(*pulumiv1.Stack) {
		return func(s *pulumiv1.Stack) { s.Generation = n }
	}
	standsFor := func(generation int64, request string) func(*autov1alpha1.Update) {
		return func(u *autov1alpha1.Update) {
			u.Annotations[pulumiv1.AnnotationFor] = fmt.Sprintf(`{"generation":%d,"request":%q,"type":"up"}`, generation, request)
		}
	}
	waitsForImage := waits(autov1alpha1.ReasonImagePullBackOff, "Image x cannot be pulled")
	deletedWorkspace := func(ws *autov1alpha1.Workspace) {
		t := at(noon)
		ws.DeletionTimestamp = &t
	}
	noWorkspace := func(w *LaunchWorld) { w.Workspace, w.Program = nil, nil }
	noStack := func(w *LaunchWorld) { w.Stack = nil }
	noProgram := func(w *LaunchWorld) { w.Program = nil }
	cancels := stack(func(s *pulumiv1.Stack) {
		s.Annotations = map[string]string{pulumiv1.AnnotationCancel: "another, app-1"}
	})
	of := func(change func(*autov1alpha1.UpdateSpec)) *autov1alpha1.Update {
		return madeUpdate(func(u *autov1alpha1.Update) { change(&u.Spec) })
	}

	nothing := LaunchVerdict{Action: LaunchNothing}
	superseded := func(why string) LaunchVerdict {
		return LaunchVerdict{LaunchSettle, autov1alpha1.ReasonSuperseded, why}
	}
	invalid := func(why string) LaunchVerdict { return LaunchVerdict{LaunchSettle, autov1alpha1.ReasonInvalid, why} }
	canceled := LaunchVerdict{LaunchSettle, autov1alpha1.ReasonCanceled, "Cancelled before it was run"}
	stop := LaunchVerdict{Action: LaunchStop, Message: "The run was asked to stop"}
	busy := LaunchVerdict{LaunchWait, autov1alpha1.ReasonWorkspaceBusy, "Waiting for Update other, which runs in Workspace app"}
	lock, launch := LaunchVerdict{Action: LaunchLock}, LaunchVerdict{Action: LaunchRun}

	cases := map[string]struct {
		why   string
		world LaunchWorld
		want  LaunchVerdict
	}{
		"A settled Update is left alone":                       {world: world(madeUpdate(settled)), want: nothing},
		"A settled Update that is deleted is left alone":       {world: world(madeUpdate(settled, deletedUpdate)), want: nothing},
		"An Update without our finalizer gets it":              {world: world(madeUpdate(func(u *autov1alpha1.Update) { u.Finalizers = nil })), want: LaunchVerdict{Action: LaunchFinalize}},
		"A hand-made Update without our finalizer gets it":     {world: world(handMadeUpdate(func(u *autov1alpha1.Update) { u.Finalizers = nil }), noWorkspace, noStack), want: LaunchVerdict{Action: LaunchFinalize}},
		"A free Workspace is locked":                           {world: world(madeUpdate()), want: lock},
		"A Workspace that is locked for it runs it":            {world: world(madeUpdate(), workspace(lockedBy("app-1", updateUID))), want: launch},
		"A Workspace that another holds is waited for":         {world: world(madeUpdate(), workspace(lockedBy("other", "uid-of-other"))), want: busy},
		"A lock of an Update of the same name is another's":    {world: world(madeUpdate(), workspace(lockedBy("app-1", "uid-of-an-earlier"))), want: LaunchVerdict{LaunchWait, autov1alpha1.ReasonWorkspaceBusy, "Waiting for Update app-1, which runs in Workspace app"}},
		"A lock whose holder has ended is taken":               {world: world(madeUpdate(), workspace(lockedBy("other", "uid-of-other")), func(w *LaunchWorld) { w.HolderEnded = true }), want: lock},
		"What was taken is never launched again":               {world: world(madeUpdate(taken), workspace(lockedBy("app-1", updateUID))), want: nothing},
		"What was taken and has ended is not either":           {world: world(madeUpdate(taken, ended), workspace(lockedBy("app-1", updateUID))), want: nothing},
		"What was taken is not superseded":                     {world: world(madeUpdate(taken), noStack), want: nothing},
		"A deleted Update that was not taken is cancelled":     {world: world(madeUpdate(deletedUpdate)), want: canceled},
		"A deleted Update whose pod was launched is too":       {world: world(madeUpdate(deletedUpdate), workspace(lockedBy("app-1", updateUID))), want: canceled},
		"A deleted Update that was taken is stopped":           {world: world(madeUpdate(deletedUpdate, taken)), want: stop},
		"An Update that its Stack cancels is cancelled":        {world: world(madeUpdate(), cancels), want: canceled},
		"An Update that its Stack cancels is stopped":          {world: world(madeUpdate(taken), cancels), want: stop},
		"A request to cancel another Update is not this one's": {world: world(madeUpdate(func(u *autov1alpha1.Update) { u.Name = "app-2" }), cancels, stack(func(s *pulumiv1.Stack) { s.Status.CurrentUpdate.Name = "app-2" })), want: lock},

		"An unknown type": {world: world(of(func(s *autov1alpha1.UpdateSpec) { s.Type = "upp" })), want: invalid(`spec.type: unsupported update type "upp"; use up, preview, refresh or destroy`)},
		"No type":         {world: world(of(func(s *autov1alpha1.UpdateSpec) { s.Type = "" })), want: invalid(`spec.type: unsupported update type ""; use up, preview, refresh or destroy`)},
		"No Workspace":    {world: world(of(func(s *autov1alpha1.UpdateSpec) { s.WorkspaceName = "" }), noWorkspace), want: invalid("spec.workspaceName: must name a Workspace of the same namespace")},
		"No stack":        {world: world(of(func(s *autov1alpha1.UpdateSpec) { s.StackName = "" })), want: invalid("spec.stackName: must name a stack")},

		"Superseded: the Stack is gone":           {world: world(madeUpdate(), noStack), want: superseded("The Stack that it was made for is gone")},
		"Superseded: the Stack is another":        {world: world(madeUpdate(), stack(func(s *pulumiv1.Stack) { s.UID = "uid-of-another" })), want: superseded("The Stack that it was made for is gone")},
		"Superseded: nothing is claimed":          {world: world(madeUpdate(), stack(func(s *pulumiv1.Stack) { s.Status.CurrentUpdate = nil })), want: superseded("The Stack no longer claims it")},
		"Superseded: another is claimed":          {world: world(madeUpdate(), stack(func(s *pulumiv1.Stack) { s.Status.CurrentUpdate.Name = "app-2" })), want: superseded("The Stack no longer claims it")},
		"Superseded: the Stack is being deleted":  {world: world(madeUpdate(), stack(deletedStack)), want: superseded("The Stack is being deleted")},
		"Superseded: the Workspace is gone":       {world: world(madeUpdate(), noWorkspace), want: superseded("The Workspace that it was made for is gone")},
		"Superseded: the Workspace goes":          {world: world(madeUpdate(), workspace(deletedWorkspace)), want: superseded("The Workspace that it was made for is gone")},
		"Superseded: the Workspace goes, locked":  {world: world(madeUpdate(), workspace(deletedWorkspace, lockedBy("app-1", updateUID))), want: superseded("The Workspace that it was made for is gone")},
		"Superseded: the Workspace is another":    {world: world(madeUpdate(), workspace(func(ws *autov1alpha1.Workspace) { ws.UID = "uid-of-another" })), want: superseded("The Workspace has changed")},
		"Superseded: the Workspace has changed":   {world: world(madeUpdate(), workspace(func(ws *autov1alpha1.Workspace) { ws.Generation = 5 })), want: superseded("The Workspace has changed")},
		"Superseded: the Program has changed":     {world: world(madeUpdate(), func(w *LaunchWorld) { w.Program = aProgram(8) }), want: superseded("Program web has changed")},
		"Superseded: the Program is gone":         {world: world(madeUpdate(), noProgram), want: superseded("Program web is gone")},
		"Superseded, though the lock is held":     {world: world(madeUpdate(), workspace(lockedBy("app-1", updateUID)), func(w *LaunchWorld) { w.Program = aProgram(8) }), want: superseded("Program web has changed")},
		"Superseded: it does not say what it ran": {world: world(madeUpdate(func(u *autov1alpha1.Update) { delete(u.Annotations, pulumiv1.AnnotationWorkspace) })), want: superseded("The Workspace has changed")},

		"Superseded: the Stack has changed, and the pod cannot begin": {
			why:   "what was corrected need not wait for the timeout of what was wrong",
			world: world(madeUpdate(standsFor(2, ""), waitsForImage), stack(generation(3)), workspace(lockedBy("app-1", updateUID))),
			want:  superseded("The Stack has changed while the run could not begin")},
		"Superseded: a run is requested, and the pod cannot begin": {
			world: world(madeUpdate(standsFor(3, "before"), waitsForImage), stack(generation(3)), workspace(lockedBy("app-1", updateUID))),
			want:  superseded("The Stack has changed while the run could not begin")},
		"The Stack is as it was, and the pod cannot begin": {
			world: world(madeUpdate(standsFor(3, ""), waitsForImage), stack(generation(3)), workspace(lockedBy("app-1", updateUID))), want: launch},
		"The Stack has changed, and the pod can begin": {
			world: world(madeUpdate(standsFor(2, "")), stack(generation(3)), workspace(lockedBy("app-1", updateUID))), want: launch},
		"The Stack has changed, and another Update runs": {
			why:   "it is launched as what it stands for, as ever",
			world: world(madeUpdate(standsFor(2, ""), waits(autov1alpha1.ReasonWorkspaceBusy, "Busy")), stack(generation(3)), workspace(lockedBy("other", "uid-of-other"))), want: busy},
		"What was taken while it was said to wait": {
			world: world(madeUpdate(standsFor(2, ""), waitsForImage, taken), stack(generation(3)), workspace(lockedBy("app-1", updateUID))), want: nothing},
		"It waits, and does not say what it stands for": {
			world: world(madeUpdate(waitsForImage), stack(generation(3)), workspace(lockedBy("app-1", updateUID))), want: launch},

		"A deleted Stack's destroy is launched": {world: world(of(func(s *autov1alpha1.UpdateSpec) { s.Type = autov1alpha1.DestroyType }), stack(deletedStack)), want: lock},
		"A Workspace without a Program needs none": {world: world(madeUpdate(), noProgram, workspace(func(ws *autov1alpha1.Workspace) {
			ws.Spec.Program, ws.Spec.ProjectInfo = nil, &autov1alpha1.ProjectInfo{Name: "web", Runtime: "yaml"}
		})), want: lock},
		"A Workspace that names no generation takes the Program found": {world: world(handMadeUpdate(), workspace(func(ws *autov1alpha1.Workspace) { ws.Spec.Program.Generation = 0 })), want: lock},

		"Hand-made: it is launched in a Stack's Workspace":    {world: world(handMadeUpdate()), want: lock},
		"Hand-made: it is launched in a Workspace of its own": {world: world(handMadeUpdate(), noStack), want: lock},
		"Hand-made: it is launched whatever the Stack claims": {world: world(handMadeUpdate(), stack(func(s *pulumiv1.Stack) { s.Status.CurrentUpdate = nil })), want: lock},
		"Hand-made: a destroy is launched":                    {world: world(handMadeUpdate(func(u *autov1alpha1.Update) { u.Spec.Type = autov1alpha1.DestroyType })), want: lock},
		"Hand-made: a busy Workspace is waited for":           {world: world(handMadeUpdate(), workspace(lockedBy("other", "uid-of-other"))), want: busy},
		"Hand-made: a Workspace that is missing is waited for": {
			world: world(handMadeUpdate(), noWorkspace, noStack),
			want:  LaunchVerdict{LaunchWait, autov1alpha1.ReasonWorkspaceNotFound, "Workspace app does not exist; create it, or correct spec.workspaceName"}},
		"Hand-made: a Workspace that goes is waited for": {
			world: world(handMadeUpdate(), workspace(deletedWorkspace), noStack),
			want:  LaunchVerdict{LaunchWait, autov1alpha1.ReasonWorkspaceNotReady, "Workspace app is being deleted"}},
		"Hand-made: a Stack that is being deleted launches none": {
			why:   "a destroy by hand would run beside, or instead of, the Stack's own",
			world: world(handMadeUpdate(func(u *autov1alpha1.Update) { u.Spec.Type = autov1alpha1.DestroyType }), stack(deletedStack)),
			want:  superseded("The Stack of its Workspace is being deleted")},
		"Hand-made: a Program that has changed is waited for": {
			world: world(handMadeUpdate(), func(w *LaunchWorld) { w.Program = aProgram(8) }),
			want:  LaunchVerdict{LaunchWait, autov1alpha1.ReasonWorkspaceNotReady, "Program web has changed; Workspace app names another generation of it"}},
		"Hand-made: a Program that is gone is waited for": {
			world: world(handMadeUpdate(), noProgram),
			want:  LaunchVerdict{LaunchWait, autov1alpha1.ReasonWorkspaceNotReady, "Program web is gone; create it, or correct Workspace app"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, AssessLaunch(c.world)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", c.why, diff)
			}
		})
	}
}

func TestEnded(t *testing.T) {
	cases := map[string]struct {
		update *autov1alpha1.Update
		pod    *corev1.Pod
		want   bool
	}{
		"What was never taken and is not settled may begin":  {madeUpdate(), nil, false},
		"What was never taken and is settled has ended":      {madeUpdate(settled), nil, true},
		"What was taken goes on, settled or not":             {madeUpdate(taken, settled), nil, false},
		"What was taken goes on while its container runs":    {madeUpdate(taken, settled), aPod(corev1.PodRunning), false},
		"What was taken has ended with its container":        {madeUpdate(taken), aPod(corev1.PodRunning, exited(Container, 0)), true},
		"What was taken has ended with its pod":              {madeUpdate(taken), aPod(corev1.PodFailed), true},
		"Another pod's end says nothing":                     {madeUpdate(taken), aPod(corev1.PodFailed, func(p *corev1.Pod) { p.UID = "uid-of-another" }), false},
		"Another container's end says nothing":               {madeUpdate(taken), aPod(corev1.PodRunning, exited("side", 1)), false},
		"What is recorded as ended has, without its pod too": {madeUpdate(taken, ended), nil, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Ended(c.update, c.pod); got != c.want {
				t.Errorf("Ended = %v", got)
			}
		})
	}
}
