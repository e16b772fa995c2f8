package event

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
)

// Push is the data of TypePush: something was pushed there. It is a reason to
// look, and who looks asks the repository.
type Push struct {
	// Repository by host and path, the same for all spellings of its URL.
	Repository string `json:"repository" jsonschema:"minLength=1,example=git.example.com/acme/infra"`
	// Ref in full, as refs/heads/main; "" if it is not known.
	Ref string `json:"ref,omitempty"`
}

// NewPush makes an event that asks for a look at what was pushed. namespace is
// that of the installation.
func NewPush(from, id, namespace string, pushed Push) (cloudevents.Event, error) {
	return New(TypePush, from, id, Ref{Kind: KindPush, Namespace: namespace, Name: pushed.Name()}, pushed)
}

// Name of what a push asks to look at: a hash of repository and ref.
func (p Push) Name() string {
	sum := sha256.Sum256([]byte(p.Repository + "\n" + p.Ref))
	return "push-" + hex.EncodeToString(sum[:10])
}

var pushForm = regexp.MustCompile(`^push-[0-9a-f]{20}$`)

// IsPushName says whether a name is one of a Push.
func IsPushName(name string) bool { return pushForm.MatchString(name) }

// PushNames are the names of all pushes that somebody wants to hear of who
// follows a ref as a user writes it: a branch or a tag, short or in full.
func PushNames(repository, ref string) []string {
	refs := []string{""} // a push that does not say where
	if strings.HasPrefix(ref, "refs/") {
		refs = append(refs, ref)
	} else {
		refs = append(refs, "refs/heads/"+ref, "refs/tags/"+ref, "refs/"+ref)
	}
	names, key := make([]string, 0, len(refs)), RepositoryKey(repository)
	for _, r := range refs {
		names = append(names, Push{Repository: key, Ref: r}.Name())
	}
	return names
}

var scpLike = regexp.MustCompile(`^(?:[^@/]*@)?([^:/@]+):([^/].*|/[^/].*)$`)

// RepositoryKey tells a repository apart, whatever its URL is spelt like: by https
// or ssh, as user@host:path, with a user, a port, .git or a slash at its end, in
// capitals or not. Two that are the same by this may be two nevertheless; then a
// push to one makes a look at the other, too, which finds nothing.
func RepositoryKey(repository string) string {
	text := strings.TrimSpace(repository)
	host, path := "", text
	if u, err := url.Parse(text); err == nil && strings.Contains(text, "://") {
		host, path = u.Hostname(), u.Path
	} else if m := scpLike.FindStringSubmatch(text); m != nil {
		host, path = m[1], m[2]
	} else if _, rest, found := strings.Cut(text, "@"); found {
		path = rest // whatever it is, a password may stand before it
	}
	path = strings.Trim(path, "/")
	path = strings.TrimRight(strings.TrimSuffix(path, ".git"), "/")
	return strings.ToLower(fmt.Sprintf("%s/%s", strings.TrimSuffix(host, "."), path))
}
