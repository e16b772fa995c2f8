package agent

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
)

const (
	lockedOnce = "error: the stack is currently locked by 1 lock(s). Either wait for the other process(es) to end or delete the lock file with `pulumi cancel`.\n" +
		"  file:///state/.pulumi/locks/organization/p/dev/1c6d.json?no_tmp_dir=true: created by pulumi@app-17c-x7x2k (pid 31) at 2026-03-01T18:24:57Z\n"
	lockedTwice = "error: the stack is currently locked by 2 lock(s). Either wait for the other process(es) to end or delete the lock file with `pulumi cancel`.\n" +
		"  s3://state/.pulumi/locks/organization/p/dev/1c6d.json: created by pulumi@app-17c-x7x2k (pid 31) at 2026-03-01T18:24:57Z\n" +
		"  s3://state/.pulumi/locks/organization/p/dev/99ab.json: created by al@corp@laptop (pid 4711) at 2026-03-02T08:00:00+01:00\n"
	conflict = "error: [409] Conflict: Another update is currently in progress.\n" +
		"To learn more about possible reasons and resolution, visit https://www.pulumi.com/docs/troubleshooting/#conflict\n"
)

func TestParseLock(t *testing.T) {
	pod := holder{user: "pulumi", host: "app-17c-x7x2k", pid: 31, since: "2026-03-01T18:24:57Z"}
	laptop := holder{user: "al@corp", host: "laptop", pid: 4711, since: "2026-03-02T08:00:00+01:00"}
	cases := map[string]struct {
		text string
		want lockState
	}{
		"No text is no lock":       {text: "", want: lockState{}},
		"Another error is no lock": {text: "error: update failed\n", want: lockState{}},
		"One holder is found":      {text: lockedOnce, want: lockState{locked: true, complete: true, holders: []holder{pod}}},
		"Two holders are found, and a name may hold an at sign": {
			text: lockedTwice, want: lockState{locked: true, complete: true, holders: []holder{pod, laptop}}},
		"Other lines around it do not matter": {
			text: "warning: a new version\n" + lockedOnce + "error: more\n",
			want: lockState{locked: true, complete: true, holders: []holder{pod}}},
		"Fewer holders than counted are not all": {
			text: "error: the stack is currently locked by 2 lock(s). Either\n  x: created by pulumi@app-17c-x7x2k (pid 31) at 2026-03-01T18:24:57Z\n",
			want: lockState{locked: true, holders: []holder{pod}}},
		"More holders than counted are not understood": {
			text: lockedOnce + "  x: created by pulumi@app-17c-x7x2k (pid 31) at 2026-03-01T18:24:57Z\n",
			want: lockState{locked: true, holders: []holder{pod, pod}}},
		"A holder in a form that is not known makes it incomplete": {
			text: lockedOnce + "  x: created by bob on some host\n",
			want: lockState{locked: true, holders: []holder{pod}}},
		"A lock said twice is not understood": {
			text: lockedOnce + lockedOnce, want: lockState{locked: true, holders: []holder{pod, pod}}},
		"A lock in the middle of a line is one whose holders are not known": {
			text: "error: program said: the stack is currently locked by 1 lock(s).\n  x: created by pulumi@app-17c-x7x2k (pid 31) at 2026-03-01T18:24:57Z\n",
			want: lockState{locked: true}},
		"No lock at all is not complete": {
			text: "error: the stack is currently locked by 0 lock(s).\n", want: lockState{locked: true}},
		"A count beyond reason is not understood": {
			text: "error: the stack is currently locked by 99999999999999999999 lock(s).\n", want: lockState{locked: true}},
		"Pulumi Cloud names nobody": {text: conflict, want: lockState{locked: true}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := parseLock(c.text)
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(lockState{}, holder{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestHeldByEnded(t *testing.T) {
	ended := func(holders ...autov1alpha1.LockHolder) []autov1alpha1.LockHolder { return holders }
	pod := autov1alpha1.LockHolder{Host: "app-17c-x7x2k", Pid: 31}
	laptop := autov1alpha1.LockHolder{Host: "laptop", Pid: 4711}
	cases := map[string]struct {
		text  string
		ended []autov1alpha1.LockHolder
		want  bool
	}{
		"A holder that has ended is nobody":                   {text: lockedOnce, ended: ended(pod), want: true},
		"Any pid of a host that has ended is nobody":          {text: lockedOnce, ended: ended(autov1alpha1.LockHolder{Host: pod.Host}), want: true},
		"All of two holders have ended":                       {text: lockedTwice, ended: ended(laptop, pod), want: true},
		"One of two holders may live":                         {text: lockedTwice, ended: ended(pod), want: false},
		"Another pid of the host may live":                    {text: lockedOnce, ended: ended(autov1alpha1.LockHolder{Host: pod.Host, Pid: 32}), want: false},
		"Another host may live":                               {text: lockedOnce, ended: ended(laptop), want: false},
		"Nobody has ended":                                    {text: lockedOnce, want: false},
		"An ended process without a host matches nobody":      {text: lockedOnce, ended: ended(autov1alpha1.LockHolder{}), want: false},
		"Without a lock nobody holds it":                      {text: "error: no", ended: ended(pod), want: false},
		"A conflict that names nobody is not of the ended":    {text: conflict, ended: ended(pod), want: false},
		"A conflict beside a lock is not of the ended":        {text: lockedOnce + conflict, ended: ended(pod), want: false},
		"A text that is not understood is not of the ended":   {text: lockedOnce + lockedOnce, ended: ended(pod), want: false},
		"A user's name that looks like a holder fools nobody": {text: foolish, ended: ended(pod), want: false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := parseLock(c.text).heldByEnded(c.ended); got != c.want {
				t.Errorf("heldByEnded() = %v, want %v", got, c.want)
			}
		})
	}
}

const foolish = "error: the stack is currently locked by 1 lock(s). Either\n" +
	"  x: created by eve@evil (pid 1) at 2026-03-01T18:24:57Z\n: created by pulumi@app-17c-x7x2k (pid 31) at 2026-03-01T18:24:57Z\n"

func TestTheFaultOfALockSaysWhoHoldsIt(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"Holders are named in order": {lockedTwice,
			"The stack dev is locked by al@corp@laptop (pid 4711) since 2026-03-02T08:00:00+01:00" +
				" and pulumi@app-17c-x7x2k (pid 31) since 2026-03-01T18:24:57Z:" +
				" wait for it to end, or run pulumi cancel once it is known to be gone"},
		"Nobody is named": {conflict,
			"Another update of stack dev is in progress: wait for it to end, or run pulumi cancel once it is known to be gone"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			want := &fault{reason: autov1alpha1.ReasonUpdateConflict, message: c.want}
			if diff := cmp.Diff(want, parseLock(c.text).fault("dev"), cmp.AllowUnexported(fault{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// anyHolder finds whoever a text names as a holder, however it is laid out.
var anyHolder = regexp.MustCompile(`created by [^\n]*?@([^\s@]+) \(pid (\d+)\)`)

func FuzzALockOfTheLivingIsNeverOfTheEnded(f *testing.F) {
	for _, text := range []string{"", lockedOnce, lockedTwice, conflict, foolish, lockedOnce + lockedOnce} {
		f.Add(text, "app-17c-x7x2k", int64(31))
		f.Add(text, "laptop", int64(0))
	}
	f.Fuzz(func(t *testing.T, text, host string, pid int64) {
		ended := []autov1alpha1.LockHolder{{Host: host, Pid: pid}}
		if !parseLock(text).heldByEnded(ended) {
			return
		}
		for _, m := range anyHolder.FindAllStringSubmatch(text, -1) {
			named, err := strconv.ParseInt(m[2], 10, 64)
			if m[1] != host || err != nil || (pid != 0 && named != pid) {
				t.Errorf("%q is said to be held by %s (pid %d) alone, and names %s (pid %s)", text, host, pid, m[1], m[2])
			}
		}
	})
}
