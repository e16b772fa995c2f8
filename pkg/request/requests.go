package request

import (
	"regexp"
	"strings"
)

// kept is how many requests a Stack remembers.
const kept = 32

// taken is a request that a Stack remembers.
type taken struct {
	identity  string
	operation Operation
}

var takenForm = regexp.MustCompile(`^[0-9a-f]{32}:[a-z]+$`)

// remembered are the requests that an annotation keeps, oldest first. What is
// none, as after an edit by hand, is left out.
func remembered(annotation string) []taken {
	var all []taken
	for word := range strings.FieldsSeq(annotation) {
		if !takenForm.MatchString(word) {
			continue
		}
		identity, operation, _ := strings.Cut(word, ":")
		all = append(all, taken{identity, Operation(operation)})
	}
	return all
}

// remember is the annotation with one more request, without the oldest if they
// are too many.
func remember(annotation string, r Request) string {
	all := append(remembered(annotation), taken{r.Identity, r.Operation})
	if len(all) > kept {
		all = all[len(all)-kept:]
	}
	words := make([]string, 0, len(all))
	for _, t := range all {
		words = append(words, t.identity+":"+string(t.operation))
	}
	return strings.Join(words, " ")
}

func find(annotation, identity string) (Operation, bool) {
	for _, t := range remembered(annotation) {
		if t.identity == identity {
			return t.operation, true
		}
	}
	return "", false
}
