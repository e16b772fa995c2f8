// Package start is the common part of the functions' mains: it reads the
// environment, makes the clients, and serves until the process is told to stop.
package start

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/kelseyhightower/envconfig"
	authenticationv1client "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"

	"github.com/updraft-dev/updraft/pkg/observe"
	"github.com/updraft-dev/updraft/pkg/record"
	"github.com/updraft-dev/updraft/pkg/run"
	"github.com/updraft-dev/updraft/pkg/transport"
)

// Environment of a function, as its Knative Service sets it.
type Environment struct {
	// Port to listen on; Knative sets it.
	Port int `default:"8080"`
	// APIServerURL is the API server for a function that runs outside of a
	// cluster, with no credentials.
	APIServerURL string `envconfig:"API_SERVER_URL"`
	// BrokerURL is where events are sent. The default is that of our Broker in the
	// class MTChannelBasedBroker.
	BrokerURL string `envconfig:"BROKER_URL" default:"http://broker-ingress.knative-eventing.svc.cluster.local/updraft-system/updraft"`
	// BrokerNamespace and BrokerName are the Broker that alarms ring at.
	BrokerNamespace string `envconfig:"BROKER_NAMESPACE" default:"updraft-system"`
	BrokerName      string `envconfig:"BROKER_NAME" default:"updraft"`
	// ReportURL is where runs report to: the status function.
	ReportURL string `envconfig:"REPORT_URL" default:"http://updraft-status.updraft-system.svc.cluster.local"`
	// AgentImage is the image that holds the agent.
	AgentImage string `envconfig:"AGENT_IMAGE"`
	// RunImage is the image of runs whose Workspace names none.
	RunImage string `envconfig:"DEFAULT_RUN_IMAGE"`
	// Timeout of runs whose Update names none.
	Timeout time.Duration `envconfig:"DEFAULT_TIMEOUT" default:"1h"`
	// Observe is what is observed; a function has it from the keys of
	// config-observability and config-logging, each behind a prefix.
	Observe observe.Config `ignored:"true"`
}

// Parts are what a function is made of.
type Parts struct {
	Clients  *record.Clients
	Tokens   authenticationv1client.TokenReviewsGetter
	Alarms   *record.Alarms
	Broker   transport.Sender
	Settings run.Settings
	Log      *slog.Logger
	// Telemetry sends the spans of what is served by its Serve.
	Telemetry *observe.Telemetry
}

// Main serves the function that assemble makes of its parts. It does not return.
func Main(name string, assemble func(Parts) transport.Handle) {
	config, unread := observe.Parse(observe.FromEnvironment(os.Environ(), observe.PrefixObservability),
		observe.FromEnvironment(os.Environ(), observe.PrefixLogging), name)
	log := observe.NewLogger(os.Stdout, config.Level).With("function", name)
	if unread != nil { // it is no reason not to do the work
		log.Error("The settings of what is observed cannot be read; nothing is traced", "error", unread.Error())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, name, config, log, assemble); err != nil {
		log.Error("Function ended", "error", err.Error())
		os.Exit(1) //nolint:gocritic // the signal handler goes with the process
	}
}

func serve(ctx context.Context, name string, observed observe.Config, log *slog.Logger, assemble func(Parts) transport.Handle) error {
	var env Environment
	if err := envconfig.Process("", &env); err != nil {
		return fmt.Errorf("cannot read the environment: %w", err)
	}
	env.Observe = observed
	config := &rest.Config{Host: env.APIServerURL}
	if env.APIServerURL == "" {
		var err error
		if config, err = rest.InClusterConfig(); err != nil {
			return fmt.Errorf("cannot find the API server: %w", err)
		}
	}
	parts, err := NewParts(name, config, env, log)
	if err != nil {
		return err
	}
	defer parts.Telemetry.Stop()
	return transport.Serve(ctx, fmt.Sprintf(":%d", env.Port), parts.Telemetry.Serve(transport.Handler(parts.Log, assemble(*parts))))
}

// NewParts makes the parts of the function of this name, which acts with the
// rights of config.
func NewParts(name string, config *rest.Config, env Environment, log *slog.Logger) (*Parts, error) {
	config = rest.CopyConfig(config)
	config.Wrap(observe.Writes)
	clients, err := record.NewClients(config)
	if err != nil {
		return nil, err
	}
	tokens, err := authenticationv1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client for token reviews: %w", err)
	}
	broker, err := transport.NewSender(env.BrokerURL)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("cannot find the host's name: %w", err)
	}
	log = observe.Logger(log)
	telemetry, err := observe.New(context.Background(), env.Observe.Tracing, observe.Identity{Service: name, Instance: host}, log)
	if err != nil {
		return nil, err
	}
	return &Parts{
		Clients: clients, Tokens: tokens, Broker: broker, Log: log, Telemetry: telemetry,
		Alarms: &record.Alarms{Client: clients.Dynamic, BrokerNamespace: env.BrokerNamespace, BrokerName: env.BrokerName},
		Settings: run.Settings{
			AgentImage: env.AgentImage, ReportURL: env.ReportURL, RunImage: env.RunImage, Timeout: env.Timeout,
			Traces: traces(env.Observe.Runs),
		},
	}, nil
}

// traces is where runs send their spans.
func traces(t observe.Tracing) run.Traces {
	if !t.On() {
		return run.Traces{}
	}
	return run.Traces{Endpoint: t.Endpoint, Protocol: t.Protocol}
}
