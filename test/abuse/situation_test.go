package abuse

import (
	"fmt"
	"slices"
	"strings"

	"github.com/updraft-dev/updraft/pkg/event"
)

// situation is one in which a function writes or sends.
type situation struct {
	// write is who writes what, whatever the rest.
	write string
	// world is what the function was called for, and how the objects stand.
	world string
}

// situate notes in which situation a function writes or sends: what it was called for, and how the objects stand. A function keeps
// nothing, and an event tells it no more than which object to look at, so that in the same situation it does the same.
func (w *world) situate(series, what string) {
	parts := []string{w.current.about.Kind, "look"}
	if w.current.reports() {
		parts[1] = w.current.kind
	}
	for _, kind := range []string{event.KindStack, event.KindWorkspace, event.KindUpdate, event.KindJob} {
		var stands []string
		for _, ref := range w.refs(kind) {
			if o := w.saw(kind, ref.Name); o != nil && !past(o) {
				stands = append(stands, standing(o))
			}
		}
		slices.Sort(stands)
		parts = append(parts, fmt.Sprint(slices.Compact(stands)))
	}
	common := func(text string) string {
		return claims.ReplaceAllString(strings.ReplaceAll(text, w.namespace, "ns"), "-N")
	}
	at := situation{write: common(what), world: common(strings.Join(parts, " "))}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.situations[series] = append(w.situations[series], at)
}

// past says whether an object has no say any more.
func past(o *object) bool {
	return o.GetKind() == event.KindUpdate && complete(o) && len(o.GetFinalizers()) == 0 && o.GetDeletionTimestamp() == nil
}

// standing is how an object stands.
func standing(o *object) string {
	has := func(path ...string) bool { return nested(o, path...) != "" }
	return fmt.Sprint(o.GetKind(), o.GetDeletionTimestamp() != nil, len(o.GetFinalizers()), len(o.GetOwnerReferences()),
		has("status", "currentUpdate", "name"), nested(o, "status", "lastUpdate", "type"), nested(o, "status", "lastUpdate", "state"),
		has("status", "run", "uid"), has("status", "run", "podUID"), nested(o, "status", "run", "phase"),
		nested(o, "spec", "type"), nested(o, "status", "result", "state"), has("spec", "programRef", "name"))
}
