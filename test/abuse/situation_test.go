//go:build abuse

package abuse

import (
	"fmt"
	"slices"
	"strings"

	"github.com/updraft-dev/updraft/pkg/event"
)

// situate notes in which situation a function writes or sends: what it was called for, and how the objects stand. A function keeps
// nothing, so that in the same situation it does the same.
func (w *world) situate(series, what string) {
	parts := []string{w.current.about.Kind, w.current.kind, what}
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
	situation := claims.ReplaceAllString(strings.ReplaceAll(strings.Join(parts, " "), w.namespace, "ns"), "-N")
	w.mu.Lock()
	defer w.mu.Unlock()
	w.situations[series] = append(w.situations[series], situation)
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
