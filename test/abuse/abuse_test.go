// Package abuse delivers events as badly as a network can, and cuts functions off as a crash would: every function, for each event
// that it takes, with each event twice, and ended just before and just after each write, then the event again. The state in the end
// must be that of one clean delivery, and the invariants of the protocol hold all the while.
//
// The API server, etcd and the garbage collector are the real ones, and the functions have the rights of config/. What stands
// around them is a driver: one thread that plays the source, the Broker, the Job controller, the kubelet and the agent, so that a
// run is the same each time.
//
// How it is read: scenario_test.go runs a scenario of scenarios_test.go in a world (world_test.go), which is a namespace, a queue of events
// and the pods (pods_test.go). All that a function asks of the API server passes wire_test.go, where a fault (faults_test.go) may cut it
// off, and where each write is compared with what was there before (invariants_test.go, and package invariants). end_test.go
// takes from what is left what differs from run to run, to compare it with the end of the clean run.
//
// Which writes are cut off is told at cuts. A case that fails prints its trace and the command that replays it. Whether all this would find
// anything is tried by package mutations.
package abuse

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/updraft-dev/updraft/pkg/local/controlplane"
)

var (
	seed  = flag.Uint64("seed", 0, "replay the shuffled delivery of one seed")
	seeds = flag.Uint64("seeds", 1, "how many seeds to shuffle each scenario with")
	all   = flag.Bool("all", false, "cut off each write of each scenario, also where another one has written the same in the same situation")
)

const (
	// atOnce is how many cases run at once: each waits for the API server most of the time.
	atOnce = 6
	// garbage is how much of it may gather, in percent, here and in the API server, which makes most of the work.
	garbage = 400
)

func TestMain(m *testing.M) {
	flag.Parse()
	debug.SetGCPercent(garbage)
	err := errors.Join(flag.Set("test.parallel", strconv.Itoa(atOnce)), os.Setenv("GOGC", strconv.Itoa(garbage)))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Exit(m.Run())
}

// TestAbuse has a subtest for each scenario, and in it one for each way to abuse it. First all run cleanly: what each writes is
// cut off in the first scenario that comes into the same situation.
func TestAbuse(t *testing.T) {
	plane := start(t)
	asked, everything := selection(t)
	runClean(t, plane, asked)
	done := map[string]bool{}
	for _, s := range asked {
		if s.clean == nil {
			continue
		}
		cuts := s.cuts(done, everything)
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.abuse(t, plane, cuts)
		})
	}
}

// selection is what -run asks for. What is asked for by name is abused in full.
func selection(t *testing.T) (asked []*scenario, everything bool) {
	_, pattern, named := strings.Cut(flag.Lookup("test.run").Value.String(), "/")
	pattern, _, _ = strings.Cut(pattern, "/")
	name, err := regexp.Compile(strings.ReplaceAll(pattern, " ", "_"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range scenarios {
		if s := &scenarios[i]; name.MatchString(strings.ReplaceAll(s.name, " ", "_")) {
			asked = append(asked, s)
		}
	}
	return asked, *all || named
}

func runClean(t *testing.T, plane *controlplane.Plane, asked []*scenario) {
	var running sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for _, s := range asked {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			s.clean = s.run(t, plane, clean{})
			switch {
			case s.clean == nil:
				t.Errorf("%s does not even run cleanly", s.name)
			case s.clean.summary != s.ends:
				t.Errorf("%s, undisturbed, ends as %q, want %q", s.name, s.clean.summary, s.ends)
			}
		})
	}
	running.Wait()
}

// cuts are where a scenario is cut off: before and after each write and event, if everything is asked for. Else after each write in a
// situation that is not among those that are done. What a cut before a write leaves is what one after the write before left, and what
// one at an event leaves is that with an event more: these are done once for each write or event of each function, whatever the
// situation. In a short test all are.
func (s *scenario) cuts(done map[string]bool, everything bool) []*cut {
	var cuts []*cut
	add := func(series string, situations []situation, modes ...mode) {
		for n, at := range situations {
			for _, m := range modes {
				key := fmt.Sprint(series, m, at.write)
				if series == "write" && m != before && !testing.Short() {
					key += at.world
				}
				if m == stall {
					key += s.name // what follows differs
				}
				if !everything && done[key] {
					continue
				}
				done[key] = true
				cuts = append(cuts, &cut{series: series, at: n + 1, mode: m})
			}
		}
	}
	if s.stalls {
		add("write", s.clean.writes[:s.clean.halfWay], stall)
		return cuts
	}
	add("write", s.clean.writes, before, after)
	add("send", s.clean.sends, before, after)
	return cuts
}

// abuse runs a scenario with each event twice, cut off, and shuffled.
func (s *scenario) abuse(t *testing.T, plane *controlplane.Plane, cuts []*cut) {
	t.Logf("%d writes and %d events, cut off %d times", len(s.clean.writes), len(s.clean.sends), len(cuts))
	if *seed != 0 {
		s.shuffled(t, plane, *seed)
		return
	}
	if !s.stalls {
		t.Run("twice", func(t *testing.T) {
			replay(t, "")
			s.compare(t, s.run(t, plane, &twice{}))
		})
	}
	for _, c := range cuts {
		t.Run(fmt.Sprintf("%s-%d-%s", c.series, c.at, c.mode), func(t *testing.T) {
			replay(t, "")
			s.compare(t, s.run(t, plane, c))
		})
	}
	for n := range *seeds {
		if !s.stalls && !s.exact && !testing.Short() {
			s.shuffled(t, plane, n+1)
		}
	}
}

func (s *scenario) shuffled(t *testing.T, plane *controlplane.Plane, seed uint64) {
	t.Run(fmt.Sprintf("seed-%d", seed), func(t *testing.T) {
		replay(t, fmt.Sprintf(" -seed %d", seed))
		s.compare(t, s.run(t, plane, &chaos{rand: rand.New(rand.NewPCG(seed, 0))}))
	})
}

// replay begins a case, and prints the command that runs it again if it fails.
func replay(t *testing.T, flags string) {
	t.Cleanup(func() {
		if t.Failed() {
			name := strings.NewReplacer("/", "$/^", "'", ".").Replace(t.Name())
			t.Logf("replay: go test ./test/abuse -run '^%s$'%s", name, flags)
		}
	})
	t.Parallel()
}

// compare holds that an abused run ended as the clean one did.
func (s *scenario) compare(t *testing.T, abused *end) {
	t.Helper()
	if abused == nil {
		return
	}
	want, got := s.clean.objects, abused.objects
	if s.essence {
		want, got = s.clean.essence, abused.essence
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("it does not end as after one clean delivery (-clean +abused):\n%s", diff)
	}
	if s.essence || abused.lossy {
		return
	}
	if diff := cmp.Diff(s.clean.told, abused.told); diff != "" {
		t.Errorf("other systems are not told the same (-clean +abused):\n%s", diff)
	}
}
