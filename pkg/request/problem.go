package request

import "fmt"

// Why says what kind of problem a request met. Each has a row in
// docs/events-in.md.
type Why string

const (
	// Malformed is what cannot be read as a CloudEvent.
	Malformed Why = "malformed"
	// Unauthenticated is a request without a valid token.
	Unauthenticated Why = "unauthenticated"
	// Forbidden is a request that its sender may not make.
	Forbidden Why = "forbidden"
	// NotFound is a request about a Stack that does not exist, or to a path that
	// does not.
	NotFound Why = "not-found"
	// MethodNotAllowed is a request that is no POST.
	MethodNotAllowed Why = "method-not-allowed"
	// Conflict is a request that the Stack cannot take as it is now.
	Conflict Why = "conflict"
	// NoWorkspace is a request for an operation on a Stack without a Workspace.
	NoWorkspace Why = "no-workspace"
	// NothingToCancel is a request to cancel what does not go on.
	NothingToCancel Why = "nothing-to-cancel"
	// IdentityUsed is a request whose source and id are those of another.
	IdentityUsed Why = "identity-used"
	// TooLarge is a request with too much in it.
	TooLarge Why = "too-large"
	// UnsupportedMediaType is a request of a content type that is not understood.
	UnsupportedMediaType Why = "unsupported-media-type"
	// Invalid is an event that can be read and does not say what to do, or that
	// the API server refuses.
	Invalid Why = "invalid"
	// Unavailable is a request that may be well later.
	Unavailable Why = "unavailable"
)

// Problem is why a request was not accepted, in words that say what to do.
type Problem struct {
	Why    Why
	Detail string
}

// Error makes a Problem an error.
func (p *Problem) Error() string { return p.Detail }

// Problemf is a Problem with a formatted detail.
func Problemf(why Why, format string, args ...any) *Problem {
	return &Problem{Why: why, Detail: fmt.Sprintf(format, args...)}
}
