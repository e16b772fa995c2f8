//go:build abuse

// Package abuse delivers events as badly as a network can, and cuts functions off as a crash would: every function, for each event
// that it takes, with each event twice, and ended just before and just after each write, then the event again. The state in the end
// must be that of one clean delivery, and the invariants of the protocol hold all the while.
//
// The API server, etcd and the garbage collector are the real ones, and the functions have the rights of config/. What stands
// around them is a driver: one thread that plays the source, the Broker, the Job controller, the kubelet and the agent, so that a
// run is the same each time.
//
// A failing case is replayed by its name, which the test prints: the scenario, and what was done to it.
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
			if s.clean == nil {
				t.Errorf("%s does not even run cleanly", s.name)
			}
		})
	}
	running.Wait()
}

// cuts are where a scenario is cut off. If not everything is asked for: after each write and event whose situation is not among those
// that are done. A function that is cut off before a write leaves what it left after the one before.
func (s *scenario) cuts(done map[string]bool, everything bool) []*cut {
	var cuts []*cut
	add := func(series string, situations []string, modes ...mode) {
		for n, situation := range situations {
			for _, m := range modes {
				key := fmt.Sprint(series, m, situation)
				if !everything && (done[key] || m == before || testing.Short() && n%2 == 1) {
					continue
				}
				done[key] = m != stall // what follows differs
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
			t.Parallel()
			s.compare(t, s.run(t, plane, &twice{}))
		})
	}
	for _, c := range cuts {
		t.Run(fmt.Sprintf("%s-%d-%s", c.series, c.at, c.mode), func(t *testing.T) {
			t.Parallel()
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
		t.Parallel()
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("replay: go test -tags abuse ./test/abuse -run 'TestAbuse/%s$/seed' -seed %d", strings.ReplaceAll(s.name, " ", "_"), seed)
			}
		})
		s.compare(t, s.run(t, plane, &chaos{rand: rand.New(rand.NewPCG(seed, 0))}))
	})
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
