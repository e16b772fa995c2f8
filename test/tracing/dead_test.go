package tracing

import (
	"encoding/json"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/updraft-dev/updraft/cmd/updraft/dev"
	"github.com/updraft-dev/updraft/pkg/observe"
	"github.com/updraft-dev/updraft/test/suite"
)

const small = `
{apiVersion: pulumi.com/v1, kind: Program, metadata: {name: small}, program: {outputs: {a: b}}}
---
apiVersion: pulumi.com/v1
kind: Stack
metadata: {name: small}
spec:
  stack: dev
  programRef: {name: small}
  backend: file://$(UPDRAFT_ROOT)/state?create_dir=true
  envRefs: {PULUMI_CONFIG_PASSPHRASE: {type: Literal, literal: {value: correct-horse}}}
`

// A collector that takes connections and never answers is the worst one: nothing
// fails, all wait. It may cost a change a second.
func TestADeadCollectorHoldsUpNoUpdate(t *testing.T) {
	dead, err := net.Listen("tcp", "127.0.0.1:0") // nobody accepts; the kernel does
	must(t, err)
	defer dead.Close()
	to := observe.Tracing{Protocol: observe.ProtocolHTTP, Endpoint: "http://" + dead.Addr().String() + "/v1/traces", Rate: 1}
	var log suite.Text
	dir := t.TempDir()
	e, err := dev.Start(t.Context(), dev.Options{
		Bin: bin, Agent: filepath.Join(filepath.Dir(collected.file), "agent"), Dir: dir, Log: slog.New(slog.NewJSONHandler(&log, nil)),
		Observe: observe.Config{Tracing: to, Runs: to},
	})
	must(t, err)
	defer func() { must(t, e.Stop()) }()
	takes := func(w *world) time.Duration {
		began := time.Now()
		w.kubectl(small, "apply", "-f", "-")
		w.ended("small")
		return time.Since(began)
	}
	usual, took := takes(newWorld(t)), takes(newWorldIn(t, e))
	t.Logf("a change took %v, and %v with a dead collector", usual, took)
	if took > 2*usual+2*time.Second { // the machine may be busy; the CLI alone would cost 20 s
		t.Errorf("a change took %v, and %v with a dead collector", usual, took)
	}
	lost := map[string]int{}
	for line := range strings.Lines(log.String()) {
		var l struct{ Msg, Function string }
		must(t, json.Unmarshal([]byte(line), &l))
		if strings.HasPrefix(l.Msg, "Spans cannot be sent") {
			lost[l.Function]++
		}
	}
	for _, function := range []string{"updraft-stack", "updraft-update", "updraft-status"} {
		if lost[function] != 1 {
			t.Errorf("%s said %d times that spans are lost", function, lost[function])
		}
	}
}
