package abuse

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/event"
	"github.com/updraft-dev/updraft/test/invariants"
)

// end is what a run left.
type end struct {
	// objects by kind and name, without what differs from run to run.
	objects map[string]string
	// essence is the same without Updates that a Stack does not name as its last, and what belongs to them.
	essence map[string]string
	// told are the events for other systems, each at least once.
	told []string
	// writes and sends are the situations in which functions wrote and sent.
	writes, sends []situation
	// lossy says that events were lost. What a Stack was told then is behind it may not be told to others any more.
	lossy bool
	// halfWay is how many writes functions are held back before.
	halfWay int
	// summary is the end in a line.
	summary string
}

// state is all objects of the case, which is at rest.
func (w *world) state() *end {
	all := w.refresh()
	w.checkRest(all)
	n := newNormal(w, all)
	e := &end{objects: map[string]string{}, essence: map[string]string{}, writes: w.situations["write"], sends: w.situations["send"], halfWay: w.halfWay}
	for i := range all {
		o := &all[i]
		if o.GetName() == "kube-root-ca.crt" {
			continue
		}
		key, text := n.text(o.GetKind()+"/"+o.GetName()), n.object(o)
		e.objects[key] = text
		if !n.past(o) {
			e.essence[key] = essence(text)
		}
	}
	for line := range w.toldEver {
		e.told = append(e.told, n.text(line))
	}
	sort.Strings(e.told)
	e.told = slices.Compact(e.told)
	return e
}

// summary is the Stack and the Updates in a line: the reason of the one condition that is True, what ran last, and how many runs there
// have been, with those of the preparation.
func (w *world) summary() string {
	said := "gone"
	if s := as[pulumiv1.Stack](w.saw(event.KindStack, "app")); s != nil {
		said = invariants.Reason(s)
		if last := s.Status.LastUpdate; last != nil {
			said += fmt.Sprintf(" at generation %d: %s %s", last.Generation, last.Type, last.State)
		}
	}
	if len(w.truth.taken) == 1 {
		return said + "; 1 run"
	}
	return fmt.Sprintf("%s; %d runs", said, len(w.truth.taken))
}

var (
	// versions of a Workspace tell how often it was written.
	versions = regexp.MustCompile(`(uid of Workspace/[a-z-]+)/\d+`)
	counts   = regexp.MustCompile(`("(?:generation|observedGeneration)"): \d+`)
	// ended are the runs before this one.
	ended = regexp.MustCompile(`,\\n  \\"ended\\": \[.*?\]`)
)

// essence is a text without what tells how many Updates there were.
func essence(text string) string {
	text = versions.ReplaceAllString(text, "$1/N")
	if strings.Contains(text, `"kind": "Workspace",`+"\n \"metadata\"") {
		text = counts.ReplaceAllString(text, "$1: N")
	}
	return ended.ReplaceAllString(text, "")
}

// normal replaces what differs from run to run by what it stands for.
type normal struct {
	names    *strings.Replacer
	lastOnes map[string]bool
}

var (
	times     = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	uids      = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	hashes    = regexp.MustCompile(`-inline-[0-9a-f]{10}`)
	claims    = regexp.MustCompile(`-19[0-9a-f]{9}`)
	schedules = regexp.MustCompile(`\d+ (\d+|\*) \* \* \* \*`)
)

func newNormal(w *world, all []object) *normal {
	n := &normal{lastOnes: map[string]bool{}}
	byUID, updates, pairs := map[types.UID]string{}, []string{}, []string{w.namespace + "/", "ns/"}
	for i := range all {
		o := &all[i]
		byUID[o.GetUID()] = o.GetKind() + "/" + o.GetName()
		if o.GetKind() == event.KindUpdate {
			updates = append(updates, o.GetName())
		}
		if last := nested(o, "status", "lastUpdate", "name"); last != "" {
			n.lastOnes[last] = true
			updates = append(updates, last)
		}
	}
	sort.Strings(updates)
	for i, name := range slices.Compact(updates) {
		if cut := claims.FindString(name); cut != "" {
			stands := fmt.Sprintf("%s-u%d", strings.TrimSuffix(name, cut), i+1)
			if n.lastOnes[name] {
				stands = strings.TrimSuffix(name, cut) + "-last"
			}
			pairs = append(pairs, name, stands)
		}
	}
	for uid, name := range byUID {
		for i := 2; i < len(pairs); i += 2 {
			name = strings.ReplaceAll(name, pairs[i], pairs[i+1])
		}
		pairs = append(pairs, string(uid), "uid of "+hashes.ReplaceAllString(name, "-inline"))
	}
	n.names = strings.NewReplacer(append(pairs, w.namespace, "ns")...)
	return n
}

func (n *normal) text(s string) string {
	s = n.names.Replace(s)
	s = times.ReplaceAllString(s, "TIME")
	s = uids.ReplaceAllString(s, "UID")
	s = schedules.ReplaceAllString(s, "SCHEDULE")
	s = claims.ReplaceAllString(s, "-gone")
	return hashes.ReplaceAllString(s, "-inline")
}

func (n *normal) object(o *object) string {
	o = o.DeepCopy()
	for _, field := range []string{"creationTimestamp", "managedFields", "resourceVersion", "uid", "selfLink"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	if o.GetKind() == event.KindPod || o.GetKind() == event.KindJob {
		delete(o.Object, "spec")
	}
	text := must(json.MarshalIndent(o.Object, "", " "))
	return n.text(string(text))
}

// past says whether an object is, or belongs to, an Update that is not its Stack's last.
func (n *normal) past(o *object) bool {
	if o.GetKind() == event.KindUpdate {
		return !n.lastOnes[o.GetName()] && complete(o)
	}
	if name := o.GetLabels()["updraft.dev/update"]; name != "" && (o.GetKind() == "Secret" || o.GetKind() == "ConfigMap") {
		return !n.lastOnes[name]
	}
	return false
}
