package dev

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"regexp"
	"time"

	"go.opentelemetry.io/otel/trace"
	"k8s.io/client-go/rest"
	"knative.dev/pkg/apis"
	duckv1 "knative.dev/pkg/apis/duck/v1"

	"github.com/updraft-dev/updraft/cmd/internal/gate"
	"github.com/updraft-dev/updraft/cmd/internal/start"
	"github.com/updraft-dev/updraft/functions/gateway"
	"github.com/updraft-dev/updraft/functions/source"
	"github.com/updraft-dev/updraft/functions/stack"
	"github.com/updraft-dev/updraft/functions/status"
	"github.com/updraft-dev/updraft/functions/sweep"
	"github.com/updraft-dev/updraft/functions/update"
	"github.com/updraft-dev/updraft/pkg/event"
	"github.com/updraft-dev/updraft/pkg/local/broker"
	"github.com/updraft-dev/updraft/pkg/observe"
	"github.com/updraft-dev/updraft/pkg/transport"
)

// gatewayAudience is the default of an installation.
const gatewayAudience = "updraft-gateway"

type servers struct {
	ctx context.Context //nolint:containedctx // the life of all parts
}

// assemble makes each function of its parts.
func (e *Environment) assemble() map[string]func(start.Parts) http.Handler {
	all := map[string]func(start.Parts) http.Handler{
		gateway.Name: func(p start.Parts) http.Handler {
			return gate.Handler(p, e.options.Now)
		},
	}
	for name, assemble := range e.woken() {
		all[name] = func(p start.Parts) http.Handler { return transport.Handler(p.Log, assemble(p)) }
	}
	return all
}

// woken are the functions that a Trigger wakes.
func (e *Environment) woken() map[string]func(start.Parts) transport.Handle {
	now := e.options.Now
	return map[string]func(start.Parts) transport.Handle{
		stack.Name: func(p start.Parts) transport.Handle {
			return (&stack.Function{Clients: p.Clients, Alarms: p.Alarms, Broker: p.Broker, Now: now, Log: p.Log}).Handle
		},
		update.Name: func(p start.Parts) transport.Handle {
			return (&update.Function{Clients: p.Clients, Alarms: p.Alarms, Settings: p.Settings, Now: now, Log: p.Log}).Handle
		},
		status.Name: func(p start.Parts) transport.Handle {
			return (&status.Function{Clients: p.Clients, Tokens: p.Tokens, Broker: p.Broker, Now: now, Log: p.Log}).Handle
		},
		source.Name: func(p start.Parts) transport.Handle {
			return (&source.Function{Clients: p.Clients, Alarms: p.Alarms, Broker: p.Broker, Now: now, Log: p.Log}).Handle
		},
		sweep.Name: func(p start.Parts) transport.Handle {
			return (&sweep.Function{Clients: p.Clients, Broker: p.Broker, Now: now, Log: p.Log}).Handle
		},
	}
}

// startFunctions serves the Broker and each function on an address of its own.
func (e *Environment) startFunctions(ctx context.Context) error {
	e.options.Progress("Starting the functions")
	functions := e.assemble()
	listeners := map[string]net.Listener{}
	for name := range functions {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return fmt.Errorf("cannot listen for %s: %w", name, err)
		}
		listeners[name], e.Functions[name] = listener, "http://"+listener.Addr().String()
	}
	if err := e.startBroker(ctx); err != nil {
		return err
	}
	for name, assemble := range functions {
		parts, err := start.NewParts(name, e.as(name), start.Environment{
			BrokerURL: e.BrokerURL, BrokerNamespace: SystemNamespace, BrokerName: "updraft",
			ReportURL: e.Functions[status.Name], AgentImage: agentImage, Audience: gatewayAudience, WebhookSecrets: e.folder("webhooks"),
			Observe: e.options.Observe,
		}, e.options.Log.With("function", name))
		if err != nil {
			return err
		}
		e.serve(name, listeners[name], e.options.Wrap(name, parts.Observed(assemble(*parts))))
		e.observers = append(e.observers, parts)
	}
	return nil
}

func (e *Environment) startBroker(ctx context.Context) error {
	triggers, err := broker.LoadTriggers(e.folder("config/600-triggers.yaml"))
	if err != nil {
		return err
	}
	object, err := broker.LoadBroker(e.folder("config/400-broker.yaml"))
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("cannot listen for the Broker: %w", err)
	}
	e.BrokerURL = "http://" + listener.Addr().String()
	telemetry, err := observe.New(ctx, e.options.Observe.Tracing, observe.Identity{Service: "broker", Instance: "dev"}, e.options.Log)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	var tracing trace.TracerProvider // none is one that exports nothing
	if telemetry != nil {
		tracing, e.observers = telemetry.Provider(), append(e.observers, telemetry)
	}
	e.broker, err = broker.New(broker.Options{
		Tracing:  tracing,
		Triggers: triggers, Delivery: object.Spec.Delivery, Resolve: e.resolve,
		Log: e.options.Log, Tamper: e.options.Tamper,
	})
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	e.serve("broker", listener, e.options.Wrap("broker", e.broker))
	return nil
}

// resolve says where a Knative Service that a Trigger names is served.
func (e *Environment) resolve(ref duckv1.KReference) (*apis.URL, error) {
	address, ok := e.Functions[ref.Name]
	if !ok {
		return nil, fmt.Errorf("no function %s is served here", ref.Name)
	}
	return parseURL(address)
}

func parseURL(address string) (*apis.URL, error) {
	parsed, err := apis.ParseURL(address)
	if err != nil {
		return nil, fmt.Errorf("cannot parse %s: %w", address, err)
	}
	return parsed, nil
}

func (e *Environment) serve(name string, listener net.Listener, handler http.Handler) {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	e.goRun(name, func(ctx context.Context) error {
		stop := context.AfterFunc(ctx, func() { _ = server.Close() })
		defer stop()
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
}

// as is a configuration with the rights of a ServiceAccount of ours.
func (e *Environment) as(account string) *rest.Config {
	c := rest.CopyConfig(e.Config)
	c.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + SystemNamespace + ":" + account,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + SystemNamespace, "system:authenticated"},
	}
	return c
}

// sweepOnce looks at what is there already, as from a state that was kept.
func (e *Environment) sweepOnce(ctx context.Context) error {
	sender, err := transport.NewSender(e.Functions[sweep.Name])
	if err != nil {
		return err
	}
	about := event.Ref{Kind: event.KindSweep, Namespace: SystemNamespace, Name: "sweep"}
	return sender.Send(ctx, event.NewDue("dev", "start", about))
}

var scheduleLine = regexp.MustCompile(`(?m)^  schedule: .*$`)

func replaceSchedule(file, schedule string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("cannot read the sweep: %w", err)
	}
	if !scheduleLine.Match(text) {
		return fmt.Errorf("%s has no schedule", file)
	}
	text = scheduleLine.ReplaceAll(text, bytes.ReplaceAll([]byte("  schedule: \""+schedule+"\""), []byte("$"), nil))
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return fmt.Errorf("cannot write the sweep: %w", err)
	}
	return nil
}
