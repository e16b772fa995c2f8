package stack

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
)

const (
	repo    = "https://git.example/team/app.git"
	commitA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	commitB = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

// fromGit makes git the source of a Stack.
func fromGit(source pulumiv1.GitSource) edit {
	return func(s *pulumiv1.Stack) {
		s.Spec.ProgramRef = nil
		if source.ProjectRepo == "" {
			source.ProjectRepo = repo
		}
		s.Spec.GitSource = &source
	}
}

var onMain = fromGit(pulumiv1.GitSource{Branch: "main"})

// saw is a Stack whose own poll has seen a revision, or a problem.
func saw(revision, problem string) edit {
	return func(s *pulumiv1.Stack) {
		s.Status.Source = &pulumiv1.SourceStatus{Poll: pollOf(s).Name(), Revision: revision, Message: problem}
	}
}

func keyOfSecret(name, key string) pulumiv1.ResourceRef {
	return pulumiv1.ResourceRef{SelectorType: pulumiv1.ResourceSelectorSecret, SecretRef: &pulumiv1.SecretSelector{Name: name, Key: key}}
}

func TestValidateGit(t *testing.T) {
	literal := pulumiv1.ResourceRef{SelectorType: pulumiv1.ResourceSelectorLiteral, LiteralRef: &pulumiv1.LiteralRef{Value: "hush"}}
	elsewhere := keyOfSecret("git", "token")
	elsewhere.SecretRef.Namespace = "other"
	token := keyOfSecret("git", "token")
	auth := func(a pulumiv1.GitAuthConfig) pulumiv1.GitSource {
		return pulumiv1.GitSource{ProjectRepo: repo, Branch: "main", GitAuth: &a}
	}
	cases := map[string]struct {
		source pulumiv1.GitSource
		says   string // "" is valid
	}{
		"A branch":                        {pulumiv1.GitSource{ProjectRepo: repo, Branch: "main"}, ""},
		"A commit":                        {pulumiv1.GitSource{ProjectRepo: repo, Commit: commitA}, ""},
		"No repository":                   {pulumiv1.GitSource{Branch: "main"}, `projectRepo: missing "projectRepo"`},
		"Neither branch nor commit":       {pulumiv1.GitSource{ProjectRepo: repo}, `branch: missing "commit" or "branch"`},
		"Both branch and commit":          {pulumiv1.GitSource{ProjectRepo: repo, Branch: "main", Commit: commitA}, `commit: only one of "commit" or "branch" should be specified`},
		"A folder of this machine":        {pulumiv1.GitSource{ProjectRepo: "file:///srv/app", Branch: "main"}, ""},
		"Plain HTTP":                      {pulumiv1.GitSource{ProjectRepo: "http://127.0.0.1:3000/app", Branch: "main"}, ""},
		"SSH":                             {pulumiv1.GitSource{ProjectRepo: "ssh://git@git.example/app", Branch: "main"}, "projectRepo: ssh URLs are not served yet; use an https, http or file URL"},
		"SSH as scp writes it":            {pulumiv1.GitSource{ProjectRepo: "git@git.example:app", Branch: "main"}, "projectRepo: must be an https, http or file URL; SSH is not served yet"},
		"A path":                          {pulumiv1.GitSource{ProjectRepo: "/srv/app", Branch: "main"}, "projectRepo: must be an https, http or file URL; SSH is not served yet"},
		"A password in the URL":           {pulumiv1.GitSource{ProjectRepo: "https://me:hush@git.example/app", Branch: "main"}, "projectRepo: must not have a password in it; put it into a Secret and use gitAuth"},
		"A name in the URL":               {pulumiv1.GitSource{ProjectRepo: "https://me@git.example/app", Branch: "main"}, ""},
		"A folder":                        {pulumiv1.GitSource{ProjectRepo: repo, Branch: "main", RepoDir: "/infra/app/"}, ""},
		"A folder out of it":              {pulumiv1.GitSource{ProjectRepo: repo, Branch: "main", RepoDir: "a/../../b"}, "repoDir: must be a folder in the repository"},
		"A token":                         {auth(pulumiv1.GitAuthConfig{PersonalAccessToken: &token}), ""},
		"A name and a password":           {auth(pulumiv1.GitAuthConfig{BasicAuth: &pulumiv1.BasicAuth{UserName: token, Password: token}}), ""},
		"A Secret of credentials":         {pulumiv1.GitSource{ProjectRepo: repo, Branch: "main", GitAuthSecret: "git"}, ""},
		"A literal token":                 {auth(pulumiv1.GitAuthConfig{PersonalAccessToken: &literal}), "gitAuth.accessToken: Literal references are not served for git; use one of type Secret"},
		"A literal password":              {auth(pulumiv1.GitAuthConfig{BasicAuth: &pulumiv1.BasicAuth{UserName: token, Password: literal}}), "gitAuth.basicAuth.password: Literal references are not served for git; use one of type Secret"},
		"A token of another namespace":    {auth(pulumiv1.GitAuthConfig{PersonalAccessToken: &elsewhere}), "gitAuth.accessToken: cross-namespace refs are not allowed; put the Secret into the Stack's own namespace"},
		"An SSH key":                      {auth(pulumiv1.GitAuthConfig{SSHAuth: &pulumiv1.SSHAuth{}}), "gitAuth.sshAuth: SSH is not served yet; use accessToken or basicAuth with an https URL"},
		"A GitHub App":                    {auth(pulumiv1.GitAuthConfig{GitHubApp: &pulumiv1.GitHubAppAuth{}}), "gitAuth.githubApp: GitHub Apps are not served yet; use accessToken or basicAuth"},
		"A Secret counts before the rest": {pulumiv1.GitSource{ProjectRepo: repo, Branch: "main", GitAuthSecret: "git", GitAuth: &pulumiv1.GitAuthConfig{SSHAuth: &pulumiv1.SSHAuth{}}}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := aStack(func(s *pulumiv1.Stack) { s.Spec.ProgramRef, s.Spec.GitSource = nil, &c.source })
			says := Validate(s)
			if says != c.says {
				t.Errorf("Validate() = %q, want %q", says, c.says)
			}
			if _, polled := PollOf(s); polled && says != "" {
				t.Error("what is not valid is polled")
			}
			if strings.Contains(says, "hush") {
				t.Error("it tells a password")
			}
		})
	}
}

func TestPollOf(t *testing.T) {
	token := keyOfSecret("git", "token")
	same := map[string]*pulumiv1.Stack{
		"The Stack":      aStack(onMain),
		"Another Stack":  aStack(onMain, func(s *pulumiv1.Stack) { s.Name, s.UID = "web", "uid-of-web" }),
		"Another folder": aStack(fromGit(pulumiv1.GitSource{Branch: "main", RepoDir: "web", Shallow: true})),
		"In commit":      aStack(fromGit(pulumiv1.GitSource{Commit: "main"})),
	}
	others := map[string]*pulumiv1.Stack{
		"Another branch":        aStack(fromGit(pulumiv1.GitSource{Branch: "dev"})),
		"Another repository":    aStack(fromGit(pulumiv1.GitSource{ProjectRepo: repo + "/", Branch: "main"})),
		"Another namespace":     aStack(onMain, func(s *pulumiv1.Stack) { s.Namespace = "other" }),
		"Credentials":           aStack(fromGit(pulumiv1.GitSource{Branch: "main", GitAuthSecret: "git"})),
		"Another's credentials": aStack(fromGit(pulumiv1.GitSource{Branch: "main", GitAuth: &pulumiv1.GitAuthConfig{PersonalAccessToken: &token}})),
	}
	none := map[string]*pulumiv1.Stack{
		"A commit":           aStack(fromGit(pulumiv1.GitSource{Commit: commitA})),
		"A commit in branch": aStack(fromGit(pulumiv1.GitSource{Branch: commitA})),
		"A Program":          aStack(),
		"A deleted Stack":    aStack(onMain, deleted),
	}
	names := map[string]string{}
	for name, s := range same {
		poll, ok := PollOf(s)
		if !ok {
			t.Fatalf("%s has no poll", name)
		}
		names[poll.Name()] = name
	}
	if len(names) != 1 {
		t.Errorf("polls that are the same have %d names", len(names))
	}
	for name, s := range others {
		poll, ok := PollOf(s)
		if !ok {
			t.Fatalf("%s has no poll", name)
		}
		if other, taken := names[poll.Name()]; taken {
			t.Errorf("%s shares the poll of %s", name, other)
		}
		names[poll.Name()] = name
	}
	for name, s := range none {
		if _, ok := PollOf(s); ok {
			t.Errorf("%s has a poll", name)
		}
	}
}

func TestGitSource(t *testing.T) {
	cases := map[string]struct {
		stack *pulumiv1.Stack
		want  Source
	}{
		"A commit is known":                      {aStack(fromGit(pulumiv1.GitSource{Commit: strings.ToUpper(commitA)})), Source{Revision: commitA}},
		"A branch that no poll has seen is not":  {aStack(onMain), Source{}},
		"What the poll saw":                      {aStack(onMain, saw(commitA, "")), Source{Revision: commitA}},
		"What it saw before a problem":           {aStack(onMain, saw(commitA, "no answer")), Source{Revision: commitA, Unread: "no answer"}},
		"A problem from the first":               {aStack(onMain, saw("", "no answer")), Source{Unread: "no answer"}},
		"What it saw of another branch is not":   {aStack(onMain, saw(commitA, ""), fromGit(pulumiv1.GitSource{Branch: "dev"})), Source{}},
		"What it saw counts for a deleted Stack": {aStack(onMain, saw(commitA, ""), deleted), Source{Revision: commitA}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := GitSource(c.stack)
			if !ok || got != c.want {
				t.Errorf("GitSource() = %+v, %v, want %+v", got, ok, c.want)
			}
		})
	}
	if _, ok := GitSource(aStack()); ok {
		t.Error("a Stack of a Program has a git source")
	}
}

// assessed is the verdict on a Stack as it is, with the finalizer on it.
func assessed(s *pulumiv1.Stack) (World, Verdict) {
	source, _ := GitSource(s)
	w := World{Stack: s, Source: source}
	return w, Assess(w, noon)
}

func TestAssessGit(t *testing.T) {
	ranAt := func(commit string) edit { return ran(atRevision(commit)) }
	failedAt := func(commit string, failures int64) edit {
		return ran(failing(autov1alpha1.ReasonUpdateFailed, failures, time.Second), func(l *pulumiv1.StackUpdateState) { l.LastAttemptedCommit = commit })
	}
	cases := map[string]struct {
		stack    *pulumiv1.Stack
		action   Action
		revision string // that the Update stands for
		ref      string // that its Workspace fetches
		why      string
	}{
		"A first update does not wait for the poll":     {aStack(onMain), Claim, "", "main", "Initial stack update"},
		"One that was polled before runs what was seen": {aStack(onMain, saw(commitA, "")), Claim, commitA, commitA, "Initial stack update"},
		"One that cannot be polled runs all the same":   {aStack(onMain, saw("", "no answer")), Claim, "", "main", "Initial stack update"},
		"A commit is run as it is named":                {aStack(fromGit(pulumiv1.GitSource{Commit: commitA})), Claim, commitA, commitA, "Initial stack update"},
		"What ran first is not run again before a poll": {stack: aStack(onMain, ranAt(commitA)), action: Nothing},
		"nor after the first poll has seen it":          {stack: aStack(onMain, ranAt(commitA), saw(commitA, "")), action: Nothing},
		"nor when it cannot be read any more":           {stack: aStack(onMain, ranAt(commitA), saw(commitA, "no answer")), action: Nothing},
		"A new commit":                                  {aStack(onMain, ranAt(commitA), saw(commitB, "")), Claim, commitB, commitB, `New commit detected: "` + commitB + `"`},
		"A new commit after a failure":                  {aStack(onMain, failedAt(commitA, 3), saw(commitB, "")), Claim, commitB, commitB, `New commit detected: "` + commitB + `"`},
		"The same commit after the last failure":        {stack: aStack(onMain, failedAt(commitA, 3), saw(commitA, "")), action: Nothing},
		"A set-up that failed before any commit":        {stack: aStack(onMain, failedAt("", 3)), action: Nothing},
		"A source that only a template knows is not run for ever": {
			stack: aStack(ranAt(commitA), func(s *pulumiv1.Stack) { s.Spec.ProgramRef = nil }), action: Nothing,
		},
		"Another branch runs what it names by then": {
			aStack(onMain, ranAt(commitA), saw(commitA, ""), fromGit(pulumiv1.GitSource{Branch: "dev"}), func(s *pulumiv1.Stack) { s.Generation++ }),
			Claim, "", "dev", "New stack generation: 3",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w, v := assessed(c.stack)
			if v.Action != c.action {
				t.Fatalf("action = %s, want %s", v.Action, c.action)
			}
			checkRepeat(t, w, v, noon)
			if c.action != Claim {
				return
			}
			if v.Plan.Wanted.Revision != c.revision || v.Plan.Workspace.Spec.Git.Ref != c.ref || *v.Plan.update.Spec.Message != c.why {
				t.Errorf("stands for %q, fetches %q because of %q, want %q, %q, %q", v.Plan.Wanted.Revision, v.Plan.Workspace.Spec.Git.Ref, *v.Plan.update.Spec.Message, c.revision, c.ref, c.why)
			}
		})
	}
}

func TestASourceThatCannotBeReadIsSaid(t *testing.T) {
	_, v := assessed(aStack(onMain, ran(atRevision(commitA)), saw(commitA, "the host is not known")))
	for _, c := range v.Status.Conditions {
		if c.Type == pulumiv1.ReadyCondition && (c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, "cannot be read: the host is not known")) {
			t.Errorf("Ready = %s %q", c.Status, c.Message)
		}
	}
}

func TestAGitWorkspace(t *testing.T) {
	token := keyOfSecret("git", "token")
	s := aStack(fromGit(pulumiv1.GitSource{Branch: "main", RepoDir: "infra", Shallow: true, GitAuth: &pulumiv1.GitAuthConfig{PersonalAccessToken: &token}}))
	plan, err := NewPlan(s, For{Revision: commitB, Type: autov1alpha1.UpType}, "")
	if err != nil {
		t.Fatal(err)
	}
	want := &autov1alpha1.GitSource{URL: repo, Ref: commitB, Dir: "infra", Shallow: true, Auth: &autov1alpha1.GitAuth{Token: keyOf(token)}}
	if diff := cmp.Diff(want, plan.Workspace.Spec.Git); diff != "" {
		t.Error(diff)
	}
	gone := aStack(onMain, ran(), destroys, known, deleted)
	if plan, err = NewPlan(gone, For{Type: autov1alpha1.DestroyType}, ""); err != nil {
		t.Fatal(err)
	}
	if plan.Workspace.Spec.Git != nil || plan.Workspace.Spec.ProjectInfo == nil {
		t.Error("a destroy of a known project fetches its source")
	}
}

func TestFoldKeepsTheCommitThatRan(t *testing.T) {
	cases := map[string]struct {
		stands For
		found  string
		want   string
	}{
		"that the run found":            {For{Generation: 2, Type: autov1alpha1.UpType}, commitA, commitA},
		"that the Update stood for":     {For{Generation: 2, Revision: commitB, Type: autov1alpha1.UpType}, commitB, commitB},
		"and none of a destroy without": {For{Generation: 2, Type: autov1alpha1.DestroyType}, "", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			u := anUpdate(stackUID, c.stands.Type, stands(c.stands), succeeded)
			u.Status.Result.Commit = c.found
			status, _ := Fold(aStack(onMain, claims(claimed)), u)
			if got := status.LastUpdate.LastSuccessfulCommit; got != c.want {
				t.Errorf("lastSuccessfulCommit = %q, want %q", got, c.want)
			}
		})
	}
}

func TestObserve(t *testing.T) {
	now := at(noon)
	cases := map[string]struct {
		stack                 *pulumiv1.Stack
		revision, problem     string
		wantRevision, message string
		news                  bool
	}{
		"The first revision":               {aStack(onMain), commitA, "", commitA, "", true},
		"The same revision":                {aStack(onMain, saw(commitA, "")), commitA, "", commitA, "", false},
		"Another revision":                 {aStack(onMain, saw(commitA, "")), commitB, "", commitB, "", true},
		"A problem keeps what was seen":    {aStack(onMain, saw(commitA, "")), "", "no answer", commitA, "no answer", true},
		"The same problem":                 {aStack(onMain, saw(commitA, "no answer")), "", "no answer", commitA, "no answer", false},
		"The end of a problem":             {aStack(onMain, saw(commitA, "no answer")), commitA, "", commitA, "", true},
		"A problem at first":               {aStack(onMain), "", "no answer", "", "no answer", true},
		"What another poll saw is dropped": {aStack(onMain, saw(commitA, ""), fromGit(pulumiv1.GitSource{Branch: "dev"})), "", "no answer", "", "no answer", true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			poll, _ := PollOf(c.stack)
			seen, news := Observe(c.stack, poll, c.revision, c.problem, now)
			if news != c.news || seen.Revision != c.wantRevision || seen.Message != c.message || seen.Poll != poll.Name() {
				t.Errorf("Observe() = %+v, %v", seen, news)
			}
		})
	}
}

func TestRunsBehind(t *testing.T) {
	for name, c := range map[string]struct {
		stack *pulumiv1.Stack
		want  bool
	}{
		"A new commit":         {aStack(onMain, ran(atRevision(commitA)), saw(commitB, "")), true},
		"The commit that ran":  {aStack(onMain, ran(atRevision(commitA)), saw(commitA, "")), false},
		"None that was seen":   {aStack(onMain, ran(atRevision(commitA))), false},
		"A Stack of a Program": {aStack(ran()), false},
	} {
		if got := RunsBehind(c.stack); got != c.want {
			t.Errorf("%s: RunsBehind() = %v", name, got)
		}
	}
}
