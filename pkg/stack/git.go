package stack

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/run"
)

// Poll is what is asked of a git repository regularly: which commit a ref names.
// The Stacks of a namespace for which this is the same share one.
type Poll struct {
	Namespace  string `json:"namespace"`
	Repository string `json:"repository"`
	// Ref is a branch or a tag, as a user wrote it.
	Ref string `json:"ref"`
	// Auth says where the credentials are; nil if there are none.
	Auth *autov1alpha1.GitAuth `json:"auth,omitempty"`
}

// Name of a poll tells all of it apart: the name of its PingSource, of its event
// and of what it observed.
func (p Poll) Name() string {
	content, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings always encode
	}
	sum := sha256.Sum256(content)
	return "poll-" + hex.EncodeToString(sum[:10])
}

// PollOf is the poll that a Stack needs; false if it needs none: its source is
// not git, or a commit, which does not change, or cannot be served, or the Stack
// is being deleted.
func PollOf(stack *pulumiv1.Stack) (Poll, bool) {
	if deleting(stack) || !hasGit(stack) || Validate(stack) != "" || run.IsCommit(gitRef(stack)) {
		return Poll{}, false
	}
	return pollOf(stack), true
}

// PollPeriod is how often a Stack wants its poll.
func PollPeriod(stack *pulumiv1.Stack) time.Duration { return resyncPeriod(stack) }

func pollOf(stack *pulumiv1.Stack) Poll {
	return Poll{Namespace: stack.Namespace, Repository: stack.Spec.ProjectRepo, Ref: gitRef(stack), Auth: gitAuth(stack.Spec.GitSource)}
}

// GitSource is what is known of a Stack's git source, without asking anyone: the
// commit that the spec names, or the newest that the Stack's poll has seen. A
// poll that has seen none holds back nothing: the run finds the commit and
// reports it.
func GitSource(stack *pulumiv1.Stack) (Source, bool) {
	if !hasGit(stack) {
		return Source{}, false
	}
	if ref := gitRef(stack); run.IsCommit(ref) {
		return Source{Revision: strings.ToLower(ref)}, true
	}
	seen := stack.Status.Source
	if seen == nil || seen.Poll != pollOf(stack).Name() {
		return Source{}, true // of another branch, say
	}
	return Source{Revision: seen.Revision, SameAs: sameAs(stack), Unread: seen.Message}, true
}

// RunsBehind says whether a Stack's source has been seen to have another revision
// than the one that was last run, or tried.
func RunsBehind(stack *pulumiv1.Stack) bool {
	source, ok := GitSource(stack)
	last := stack.Status.LastUpdate
	return ok && source.Revision != "" && last != nil && last.LastAttemptedCommit != source.counts()
}

func hasGit(stack *pulumiv1.Stack) bool {
	return stack.Spec.GitSource != nil && *stack.Spec.GitSource != (pulumiv1.GitSource{})
}

// gitRef is the one of branch and commit that is set. In both a user may write a
// branch, a tag or a commit.
func gitRef(stack *pulumiv1.Stack) string {
	if stack.Spec.Branch != "" {
		return stack.Spec.Branch
	}
	return stack.Spec.Commit
}

// gitWorkspace is the source of a Workspace that is to run a revision, or, of a
// poll that has seen none yet, what the ref names by then.
func gitWorkspace(stack *pulumiv1.Stack, revision string) *autov1alpha1.GitSource {
	git := stack.Spec.GitSource
	if revision == "" {
		revision = gitRef(stack)
	}
	return &autov1alpha1.GitSource{
		URL: git.ProjectRepo, Ref: revision, Dir: git.RepoDir, Shallow: git.Shallow, Auth: gitAuth(git),
	}
}

// gitAuth says where a repository's credentials are. A Secret that gitAuthSecret
// names may have a token or a user name and a password: which, only who reads it
// knows.
func gitAuth(git *pulumiv1.GitSource) *autov1alpha1.GitAuth {
	if name := git.GitAuthSecret; name != "" {
		return &autov1alpha1.GitAuth{
			Token: optionalKey(name, "accessToken"), Username: optionalKey(name, "username"), Password: optionalKey(name, "password"),
		}
	}
	switch auth := git.GitAuth; {
	case auth == nil:
		return nil
	case auth.PersonalAccessToken != nil:
		return &autov1alpha1.GitAuth{Token: keyOf(*auth.PersonalAccessToken)}
	case auth.BasicAuth != nil:
		return &autov1alpha1.GitAuth{Username: keyOf(auth.BasicAuth.UserName), Password: keyOf(auth.BasicAuth.Password)}
	default:
		return nil
	}
}

func optionalKey(name, key string) *corev1.SecretKeySelector {
	optional := true
	return &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key, Optional: &optional}
}

func keyOf(ref pulumiv1.ResourceRef) *corev1.SecretKeySelector {
	if ref.SecretRef == nil {
		return nil // not valid, which is said elsewhere
	}
	return &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: ref.SecretRef.Name}, Key: ref.SecretRef.Key}
}

// validateGit says what in a git source cannot be served, or "".
func validateGit(stack *pulumiv1.Stack) string {
	git := stack.Spec.GitSource
	switch {
	case git.ProjectRepo == "":
		return `projectRepo: missing "projectRepo"`
	case git.Branch == "" && git.Commit == "":
		return `branch: missing "commit" or "branch"`
	case git.Branch != "" && git.Commit != "":
		return `commit: only one of "commit" or "branch" should be specified`
	}
	if problem := validateRepository(git.ProjectRepo); problem != "" {
		return "projectRepo: " + problem
	}
	if dir := strings.TrimLeft(git.RepoDir, "/"); dir != "" && !filepath.IsLocal(dir) {
		return "repoDir: must be a folder in the repository"
	}
	if problem := validatePaths(stack); problem != "" {
		return problem
	}
	return validateGitAuth(stack)
}

// validateRepository does not repeat the URL: it may have a password in it.
func validateRepository(repository string) string {
	address, err := url.Parse(repository)
	if err != nil || address.Scheme == "" {
		return "must be an https, http or file URL; SSH is not served yet"
	}
	switch address.Scheme {
	case "https", "http", "file":
	default:
		return fmt.Sprintf("%s URLs are not served yet; use an https, http or file URL", address.Scheme)
	}
	if _, has := address.User.Password(); has {
		return "must not have a password in it; put it into a Secret and use gitAuth"
	}
	return ""
}

func validateGitAuth(stack *pulumiv1.Stack) string {
	auth := stack.Spec.GitAuth
	switch {
	case stack.Spec.GitAuthSecret != "" || auth == nil:
		return ""
	case auth.SSHAuth != nil:
		return "gitAuth.sshAuth: SSH is not served yet; use accessToken or basicAuth with an https URL"
	case auth.PersonalAccessToken != nil:
		return validateSecret("gitAuth.accessToken", *auth.PersonalAccessToken, stack.Namespace)
	case auth.GitHubApp != nil:
		return "gitAuth.githubApp: GitHub Apps are not served yet; use accessToken or basicAuth"
	case auth.BasicAuth != nil:
		if problem := validateSecret("gitAuth.basicAuth.userName", auth.BasicAuth.UserName, stack.Namespace); problem != "" {
			return problem
		}
		return validateSecret("gitAuth.basicAuth.password", auth.BasicAuth.Password, stack.Namespace)
	default:
		return ""
	}
}

func validateSecret(field string, ref pulumiv1.ResourceRef, namespace string) string {
	if ref.SelectorType != pulumiv1.ResourceSelectorSecret {
		return fmt.Sprintf("%s: %s references are not served for git; use one of type Secret", field, ref.SelectorType)
	}
	if problem := validateRef(ref, namespace); problem != "" {
		return field + ": " + problem
	}
	return ""
}

// Observe is what a Stack's status says of its source once its poll has found a
// revision, or a problem; false if it says so already. What was found before
// stays with a problem.
func Observe(stack *pulumiv1.Stack, poll Poll, revision, problem string, now metav1.Time) (*pulumiv1.SourceStatus, bool) {
	next := &pulumiv1.SourceStatus{Poll: poll.Name(), Revision: revision, Message: problem, ObservedTime: &now}
	before := stack.Status.Source
	if before == nil || before.Poll != next.Poll {
		return next, true
	}
	if problem != "" || before.Revision == revision {
		next.Revision, next.SameAs, next.Paths = before.Revision, before.SameAs, before.Paths
	}
	return next, before.Revision != next.Revision || before.Message != next.Message
}
