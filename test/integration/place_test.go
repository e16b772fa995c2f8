package integration

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/updraft-dev/updraft/cmd/updraft/dev"
	"github.com/updraft-dev/updraft/pkg/client/clientset/versioned"
	"github.com/updraft-dev/updraft/pkg/event"
	"github.com/updraft-dev/updraft/test/leak"
)

// place is one embedded environment, as tests see it.
type place struct {
	*dev.Environment
	name    string
	options dev.Options
	clock   *clock
	pulumi  versioned.Interface
	kube    kubernetes.Interface
	dynamic dynamic.Interface
	watch   *observer
	end     func() error
}

// startPlace starts an environment in a folder of its own. Each has its own
// clock, which stands with the real one until it is moved.
func startPlace(name string, change func(*dev.Options)) (*place, error) {
	p := &place{name: name, clock: &clock{}}
	p.options = dev.Options{
		Bin: lab.bin, Agent: lab.agent, Dir: filepath.Join(lab.folder, name), Log: witness.logger(name),
		Now: p.clock.now, Tamper: tamper, Wrap: witness.wrap,
	}
	if change != nil {
		change(&p.options)
	}
	if err := p.start(); err != nil {
		return nil, err
	}
	lab.mu.Lock()
	defer lab.mu.Unlock()
	lab.places = append(lab.places, p)
	return p, nil
}

// start brings the environment up, anew or on the folder that an earlier one
// left.
func (p *place) start() error {
	ctx, cancel := within(startTime)
	defer cancel()
	environment, err := dev.Start(ctx, p.options)
	if err != nil {
		return fmt.Errorf("cannot start the environment %s: %w%s", p.name, err, p.serverLogs())
	}
	p.Environment = environment
	config := rest.CopyConfig(environment.Config)
	config.QPS = -1 // the server is ours alone
	config.WarningHandler = rest.NoWarnings{}
	for _, make := range []func() error{
		func() (err error) { p.pulumi, err = versioned.NewForConfig(config); return err },
		func() (err error) { p.kube, err = kubernetes.NewForConfig(config); return err },
		func() (err error) { p.dynamic, err = dynamic.NewForConfig(config); return err },
	} {
		if err := make(); err != nil {
			return err
		}
	}
	if p.watch == nil {
		p.watch = newObserver()
	}
	if err := p.watch.start(config); err != nil {
		return err
	}
	p.end = sync.OnceValue(func() error {
		p.watch.stop()
		return errors.Join(leak.InObjects(context.Background(), config, samplesSecrets...), p.Environment.Stop())
	})
	return nil
}

func (p *place) stop() error { return p.end() }

// serverLogs are the last words of a server that did not start.
func (p *place) serverLogs() string {
	var words strings.Builder
	logs, _ := filepath.Glob(filepath.Join(p.options.Dir, "cluster", "*", "*.log"))
	for _, log := range logs {
		text, _ := os.ReadFile(log)
		fmt.Fprintf(&words, "\n%s: %s", filepath.Base(log), text[max(0, len(text)-2000):])
	}
	return words.String()
}

// moving is the environment whose clock may be moved, by any test and at any
// time: forward only.
func moving(t *testing.T) *place {
	t.Helper()
	p, err := lab.moving()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// clock is the functions' clock: the real one, and what it was moved by.
type clock struct {
	mu    sync.Mutex
	moved time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.moved)
}

func (c *clock) move(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moved += by
}

// Prefixes of namespaces.
const (
	// plain: each event once, and none from the sweep, so that what happens there
	// happens without it.
	plain = "plain"
	// twice: each event twice to each function.
	twice = "twice"
	// lossy: one event in three is lost, and the sweep finds what it would have
	// said.
	lossy = "lossy"
	// swept: each event once, those of the sweep too.
	swept = "swept"
)

// sweepSource is what the sweep's events say that they are from.
const sweepSource = "/updraft/updraft-sweep"

// tamper says how many copies of an event reach a function.
func tamper(trigger string, e cloudevents.Event) int {
	namespace, _ := e.Extensions()["namespace"].(string)
	prefix, _, _ := strings.Cut(namespace, "-")
	switch {
	case prefix == lossy:
		return copiesInThree(namespace)
	case prefix == swept, e.Type() == event.TypePing && namespace == dev.SystemNamespace:
		return 1
	case e.Source() == sweepSource:
		return 0
	case prefix == twice:
		return 2
	default:
		return 1
	}
}

var dice = struct {
	mu    sync.Mutex
	byKey map[string]*rand.Rand
}{byKey: map[string]*rand.Rand{}}

// copiesInThree loses one event in three, by dice: counting would lose the same
// one in each sweep.
func copiesInThree(namespace string) int {
	dice.mu.Lock()
	defer dice.mu.Unlock()
	if dice.byKey[namespace] == nil {
		seed := fnv.New64()
		_, _ = seed.Write([]byte(namespace))
		dice.byKey[namespace] = rand.New(rand.NewPCG(seed.Sum64(), 1))
	}
	if dice.byKey[namespace].IntN(3) == 0 {
		return 0
	}
	return 1
}

// send sends an event to the Broker, or to a function.
func send(ctx context.Context, t *testing.T, url string, e cloudevents.Event, token string) int {
	t.Helper()
	request := requestOf(ctx, t, url, e)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	return answer(t, request)
}
