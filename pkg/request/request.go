package request

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"io"
	"mime"
	"slices"
	"strings"
	"unicode"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/updraft-dev/updraft/pkg/event"
)

// Operation is what is asked for.
type Operation string

const (
	// Update runs what the Stack's spec asks for, an up or a preview.
	Update Operation = "update"
	// Preview shows what an up would do.
	Preview Operation = "preview"
	// Refresh reads the real state of resources.
	Refresh Operation = "refresh"
	// Destroy deletes resources.
	Destroy Operation = "destroy"
	// Cancel stops an Update.
	Cancel Operation = "cancel"
)

// Operations are all of them, in the order in which they are told to users.
var Operations = []Operation{Update, Preview, Refresh, Destroy, Cancel}

// Creates says whether the operation is an Update that is created, as by hand.
// The others are annotations of the Stack.
func (o Operation) Creates() bool { return o == Preview || o == Refresh || o == Destroy }

// Most that a user's words and name may take, in characters: they end up in
// annotations and in messages of one line.
const (
	maxMessage = 512
	maxName    = 256
)

// Request is what one event asks for.
type Request struct {
	Operation Operation
	// Namespace and Stack name the Stack that it is about.
	Namespace, Stack string
	// Identity of the event, from its source and id: 32 hex digits.
	Identity string
	// Message of who asks, for a person; one line, may be "".
	Message string
	// Update to cancel; "" is what runs now.
	Update string
	// By is the name of who asked, as the API server knows it.
	By string
}

// data is what an event may carry beside its attributes. A field that is not here
// is refused: one that was misspelt would otherwise do nothing.
type data struct {
	Namespace string `json:"namespace"`
	Stack     string `json:"stack"`
	Update    string `json:"update"`
	Message   string `json:"message"`
}

// Parse reads what an event asks for. The Stack is named by its subject, as
// <namespace>/<name> or stack/<namespace>/<name>, or by its data, as JSON with
// the fields namespace and stack; where both do, they must name the same.
func Parse(e cloudevents.Event) (Request, *Problem) {
	r := Request{Identity: Identity(e.Source(), e.ID())}
	operation, ok := strings.CutPrefix(e.Type(), event.PrefixRequest)
	if !ok || !slices.Contains(Operations, Operation(operation)) {
		return r, Problemf(Invalid, "Events of the type %s are not understood here; use %s", quote(e.Type()), types())
	}
	r.Operation = Operation(operation)
	d, problem := dataOf(e)
	if problem != nil {
		return r, problem
	}
	if r.Namespace, r.Stack, problem = named(e.Subject(), d); problem != nil {
		return r, problem
	}
	if d.Update != "" && r.Operation != Cancel {
		return r, Problemf(Invalid, "data.update names what to cancel, and %s does not cancel; leave it out", e.Type())
	}
	if d.Update != "" && len(validation.IsDNS1123Subdomain(d.Update)) > 0 {
		return r, Problemf(Invalid, "data.update: %s is no name of an Update", quote(d.Update))
	}
	r.Update, r.Message = d.Update, line(d.Message, maxMessage)
	return r, nil
}

func types() string {
	names := make([]string, 0, len(Operations))
	for _, o := range Operations {
		names = append(names, event.PrefixRequest+string(o))
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

func dataOf(e cloudevents.Event) (data, *Problem) {
	var d data
	content := e.Data()
	if len(content) == 0 {
		return d, nil
	}
	if kind := e.DataContentType(); kind != "" && !isJSON(kind) {
		return d, Problemf(Invalid, "The data is %s; send JSON, or no data and a subject", quote(kind))
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&d); err != nil {
		return d, Problemf(Invalid, "The data cannot be read: %s; send a JSON object with no other fields than namespace, stack, message and, to cancel, update", line(err.Error(), maxMessage))
	}
	if _, err := decoder.Token(); err != io.EOF {
		return d, Problemf(Invalid, "The data is more than one JSON object; send one")
	}
	return d, nil
}

func isJSON(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && (kind == "application/json" || kind == "text/json" || strings.HasSuffix(kind, "+json"))
}

// named is the Stack that subject and data name.
func named(subject string, d data) (namespace, stack string, problem *Problem) {
	parts := strings.Split(subject, "/")
	if len(parts) == 3 && parts[0] == "stack" {
		parts = parts[1:]
	}
	switch {
	case subject != "" && len(parts) != 2:
		return "", "", Problemf(Invalid, "The subject %s names no Stack; use <namespace>/<name>", quote(subject))
	case subject == "":
		namespace, stack = d.Namespace, d.Stack
	case d.Namespace != "" && d.Namespace != parts[0], d.Stack != "" && d.Stack != parts[1]:
		return "", "", Problemf(Invalid, "The subject names the Stack %s, and the data %s; name one", quote(subject), quote(d.Namespace+"/"+d.Stack))
	default:
		namespace, stack = parts[0], parts[1]
	}
	if namespace == "" || stack == "" {
		return "", "", Problemf(Invalid, "The event names no Stack; give it the subject <namespace>/<name>, or data with namespace and stack")
	}
	if len(validation.IsDNS1123Label(namespace)) > 0 {
		return "", "", Problemf(Invalid, "%s is no name of a namespace", quote(namespace))
	}
	if len(validation.IsDNS1123Subdomain(stack)) > 0 {
		return "", "", Problemf(Invalid, "%s is no name of a Stack", quote(stack))
	}
	return namespace, stack, nil
}

// Identity of an event is a hash of its source and id, so that any are safe in an
// annotation and none are another's.
func Identity(source, id string) string {
	sum := sha256.Sum256(append(binary.BigEndian.AppendUint64(nil, uint64(len(source))), source+id...))
	return hex.EncodeToString(sum[:16])
}

// line is text as one line of at most n characters.
func line(text string, n int) string {
	clean := strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, ""), func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}), " ")
	if runes := []rune(clean); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return clean
}

func quote(text string) string { return `"` + line(text, maxName) + `"` }
