package stack

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
)

// told is what an Update came to, all of it.
func told(u *autov1alpha1.Update) {
	succeeded(u)
	u.Status.Result = &autov1alpha1.UpdateResult{
		State: autov1alpha1.ResultSucceeded, Permalink: "https://example.com/1", Commit: "found-by-the-run", Message: "By the way",
		Outputs:     map[string]apiextensionsv1.JSON{"url": jsonOf("https://web"), "token": jsonOf("[secret]")},
		ProjectInfo: &autov1alpha1.ProjectInfo{Name: "web", Runtime: "yaml"},
	}
}

func TestFold(t *testing.T) {
	before := aStack(claims(claimed), shown("Initial stack update"), func(s *pulumiv1.Stack) {
		s.Status.ObservedGeneration, s.Status.ObservedReconcileRequest = 2, "now"
		s.Status.Outputs = map[string]apiextensionsv1.JSON{"old": jsonOf(1)}
		s.Status.Source = &pulumiv1.SourceStatus{Revision: "seen"}
	}, ran(func(l *pulumiv1.StackUpdateState) { l.Generation = 1 }))
	afterwards := func(changes ...func(*pulumiv1.StackStatus)) pulumiv1.StackStatus {
		status := *before.Status.DeepCopy()
		status.CurrentUpdate = nil
		for _, change := range changes {
			change(&status)
		}
		return status
	}
	last := func(l pulumiv1.StackUpdateState) func(*pulumiv1.StackStatus) {
		return func(s *pulumiv1.StackStatus) {
			l.Name, l.LastResyncTime = claimed, at(noon)
			s.LastUpdate = &l
		}
	}
	project := func(s *pulumiv1.StackStatus) {
		s.ProjectInfo = &pulumiv1.ProjectInfo{Name: "web", Runtime: "yaml"}
	}
	outputs := func(s *pulumiv1.StackStatus) {
		s.Outputs = map[string]apiextensionsv1.JSON{"url": jsonOf("https://web"), "token": jsonOf("[secret]")}
	}
	cases := map[string]struct {
		why    string
		stack  *pulumiv1.Stack
		update *autov1alpha1.Update
		want   pulumiv1.StackStatus
		folds  bool
	}{
		"A success brings all it came to, secrets masked": {
			why:    "the revision is what the Update stood for, since that is what the next look compares",
			update: anUpdate(stackUID, autov1alpha1.UpType, told, stands(For{Generation: 2, Request: "now", Revision: revision, Type: autov1alpha1.UpType})),
			folds:  true,
			want: afterwards(project, outputs, last(pulumiv1.StackUpdateState{
				Generation: 2, ReconcileRequest: "now", Type: pulumiv1.UpUpdateType, State: pulumiv1.SucceededStackStateMessage,
				LastAttemptedCommit: revision, LastSuccessfulCommit: revision, Permalink: "https://example.com/1",
			})),
		},
		"A success that stands for no revision keeps the one that the run found": {
			why:    "the first poll then sees nothing new; a look that knows of no revision compares none",
			update: anUpdate(stackUID, autov1alpha1.UpType, told, stands(For{Generation: 2, Type: autov1alpha1.UpType})),
			folds:  true,
			want: afterwards(project, outputs, last(pulumiv1.StackUpdateState{
				Generation: 2, Type: pulumiv1.UpUpdateType, State: pulumiv1.SucceededStackStateMessage,
				LastAttemptedCommit: "found-by-the-run", LastSuccessfulCommit: "found-by-the-run", Permalink: "https://example.com/1",
			})),
		},
		"What it stood for is read from the Update, never from the claim": {
			stack: aStack(func(s *pulumiv1.Stack) {
				s.Status = *before.Status.DeepCopy()
				s.Status.CurrentUpdate = &pulumiv1.CurrentStackUpdate{Name: claimed, Generation: 9, ReconcileRequest: "later", Commit: "9"}
			}),
			update: anUpdate(stackUID, autov1alpha1.UpType, succeeded),
			folds:  true,
			want: afterwards(last(pulumiv1.StackUpdateState{
				Generation: 2, Type: pulumiv1.UpUpdateType, State: pulumiv1.SucceededStackStateMessage,
				LastAttemptedCommit: revision, LastSuccessfulCommit: revision,
			})),
		},
		"The type is the Update's own": {
			why: "an updateTemplate may make an up another operation; only a destroy that ran is a destroy",
			update: anUpdate(stackUID, autov1alpha1.UpType, told, func(u *autov1alpha1.Update) {
				u.Spec.Type = autov1alpha1.RefreshType
			}),
			folds: true,
			want: afterwards(project, last(pulumiv1.StackUpdateState{
				Generation: 2, Type: pulumiv1.RefreshUpdateType, State: pulumiv1.SucceededStackStateMessage,
				LastAttemptedCommit: revision, LastSuccessfulCommit: revision, Permalink: "https://example.com/1",
			})),
		},
		"A preview leaves the outputs as they are": {
			update: anUpdate(stackUID, autov1alpha1.PreviewType, told),
			folds:  true,
			want: afterwards(project, last(pulumiv1.StackUpdateState{
				Generation: 2, Type: pulumiv1.PreviewUpdateType, State: pulumiv1.SucceededStackStateMessage,
				LastAttemptedCommit: revision, LastSuccessfulCommit: revision, Permalink: "https://example.com/1",
			})),
		},
		"A destroy leaves the outputs as they are, and ran no revision": {
			update: anUpdate(stackUID, autov1alpha1.DestroyType, told, stands(For{Generation: 3, Type: autov1alpha1.DestroyType})),
			folds:  true,
			want: afterwards(project, last(pulumiv1.StackUpdateState{
				Generation: 3, Type: pulumiv1.DestroyUpdateType, State: pulumiv1.SucceededStackStateMessage, Permalink: "https://example.com/1",
			})),
		},
		"An up that tells no outputs leaves them as they are": {
			update: anUpdate(stackUID, autov1alpha1.UpType, told, func(u *autov1alpha1.Update) { u.Status.Result.Outputs = nil }),
			folds:  true,
			want: afterwards(project, last(pulumiv1.StackUpdateState{
				Generation: 2, Type: pulumiv1.UpUpdateType, State: pulumiv1.SucceededStackStateMessage,
				LastAttemptedCommit: revision, LastSuccessfulCommit: revision, Permalink: "https://example.com/1",
			})),
		},
		"An up that tells of no outputs left clears them": {
			update: anUpdate(stackUID, autov1alpha1.UpType, told, func(u *autov1alpha1.Update) {
				u.Status.Result.Outputs = map[string]apiextensionsv1.JSON{}
			}),
			folds: true,
			want: afterwards(project, last(pulumiv1.StackUpdateState{
				Generation: 2, Type: pulumiv1.UpUpdateType, State: pulumiv1.SucceededStackStateMessage,
				LastAttemptedCommit: revision, LastSuccessfulCommit: revision, Permalink: "https://example.com/1",
			}), func(s *pulumiv1.StackStatus) { s.Outputs = map[string]apiextensionsv1.JSON{} }),
		},
		"A failure carries the last success over, and changes nothing else": {
			update: anUpdate(stackUID, autov1alpha1.UpType, told, failed(autov1alpha1.ResultFailed, autov1alpha1.ReasonUpdateFailed, "error: no\nreally"),
				stands(For{Generation: 2, Revision: "8", Type: autov1alpha1.UpType}), func(u *autov1alpha1.Update) {
					u.Status.Result.Outputs = map[string]apiextensionsv1.JSON{"half": jsonOf(1)}
					u.Status.Result.ProjectInfo = &autov1alpha1.ProjectInfo{Name: "web", Runtime: "yaml"}
					u.Status.Result.Permalink = "https://example.com/2"
				}),
			folds: true,
			want: afterwards(last(pulumiv1.StackUpdateState{
				Generation: 2, Type: pulumiv1.UpUpdateType, State: pulumiv1.FailedStackStateMessage, Reason: "UpdateFailed", Message: "error: no\nreally",
				LastAttemptedCommit: "8", LastSuccessfulCommit: revision, Permalink: "https://example.com/2",
			})),
		},
		"A cancelled Update is a failure": {
			update: anUpdate(stackUID, autov1alpha1.UpType, failed(autov1alpha1.ResultCanceled, autov1alpha1.ReasonCanceled, "Stopped on request")),
			folds:  true,
			want: afterwards(last(pulumiv1.StackUpdateState{
				Generation: 2, Type: pulumiv1.UpUpdateType, State: pulumiv1.FailedStackStateMessage, Reason: "Canceled", Message: "Stopped on request",
				LastAttemptedCommit: revision, LastSuccessfulCommit: revision,
			})),
		},
		"An Update that was not run takes only the claim": {
			why:    "nothing happened: the next look decides anew",
			update: anUpdate(stackUID, autov1alpha1.UpType, failed(autov1alpha1.ResultNotRun, autov1alpha1.ReasonSuperseded, "The Workspace has changed")),
			folds:  true, want: afterwards(),
		},
		"An Update that says nothing takes only the claim": {
			update: anUpdate(stackUID, autov1alpha1.UpType, succeeded, func(u *autov1alpha1.Update) { u.Status.Result = nil }),
			folds:  true, want: afterwards(),
		},
		"An Update that does not say what it stands for takes only the claim": {
			update: anUpdate(stackUID, autov1alpha1.UpType, told, func(u *autov1alpha1.Update) { delete(u.Annotations, pulumiv1.AnnotationFor) }),
			folds:  true, want: afterwards(),
		},
		"An Update that is not settled is not folded": {
			update: anUpdate(stackUID, autov1alpha1.UpType, func(u *autov1alpha1.Update) { u.MarkProgressing(at(noon), "The run goes on") }),
			want:   before.Status,
		},
		"An Update of another Stack is not folded": {
			update: anUpdate("uid-of-another", autov1alpha1.UpType, told), want: before.Status,
		},
		"An Update that is not claimed is not folded": {
			update: anUpdate(stackUID, autov1alpha1.UpType, told, func(u *autov1alpha1.Update) { u.Name = "app-1" }), want: before.Status,
		},
		"Nothing is folded into a Stack without claim": {
			stack: aStack(ran()), update: anUpdate(stackUID, autov1alpha1.UpType, told), want: aStack(ran()).Status,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := c.stack
			if s == nil {
				s = before
			}
			read := s.DeepCopy()
			got, folds := Fold(s, c.update)
			if diff := cmp.Diff(c.want, got); diff != "" || folds != c.folds {
				t.Errorf("folds = %v. %s\n-want +got:\n%s", folds, c.why, diff)
			}
			if diff := cmp.Diff(read, s); diff != "" {
				t.Errorf("Fold changed the Stack that was read: %s", diff)
			}
		})
	}
}

func TestFailuresAreCounted(t *testing.T) {
	cases := map[string]struct {
		before *pulumiv1.StackUpdateState
		stood  For
		want   int64
	}{
		"The first of all":              {nil, For{Generation: 2}, 0},
		"The first of a generation":     {&pulumiv1.StackUpdateState{Generation: 1, Failures: 3}, For{Generation: 2}, 0},
		"The first of a request":        {&pulumiv1.StackUpdateState{Generation: 2, Failures: 3}, For{Generation: 2, Request: "now"}, 0},
		"The second of a generation":    {&pulumiv1.StackUpdateState{Generation: 2}, For{Generation: 2}, 1},
		"The second of a request":       {&pulumiv1.StackUpdateState{Generation: 2, ReconcileRequest: "now"}, For{Generation: 2, Request: "now"}, 1},
		"The fourth":                    {&pulumiv1.StackUpdateState{Generation: 2, Failures: 2}, For{Generation: 2}, 3},
		"A new revision does not reset": {&pulumiv1.StackUpdateState{Generation: 2, Failures: 3, LastAttemptedCommit: "7"}, For{Generation: 2, Revision: "8"}, 4},
		"After a success of the same generation it begins at one": {
			&pulumiv1.StackUpdateState{Generation: 2, State: pulumiv1.SucceededStackStateMessage}, For{Generation: 2}, 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.stood.Type = autov1alpha1.UpType
			s := aStack(claims(claimed), func(s *pulumiv1.Stack) { s.Status.LastUpdate = c.before })
			u := anUpdate(stackUID, autov1alpha1.UpType, failed(autov1alpha1.ResultFailed, autov1alpha1.ReasonUpdateFailed, "error: no"), stands(c.stood))
			got, _ := Fold(s, u)
			if got.LastUpdate.Failures != c.want {
				t.Errorf("failures = %d, want %d", got.LastUpdate.Failures, c.want)
			}
		})
	}
}
