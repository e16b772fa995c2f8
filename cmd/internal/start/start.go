// Package start is the common part of the functions' mains: it reads the
// environment, makes the clients, and serves until the process is told to stop.
package start

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/kelseyhightower/envconfig"
	authenticationv1client "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
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
	// Audience that a token for the gateway must have been made for.
	Audience string `envconfig:"GATEWAY_AUDIENCE" default:"updraft-gateway"`
	// ClusterTokens says whether the gateway takes a token for the API server too.
	ClusterTokens bool `envconfig:"GATEWAY_CLUSTER_TOKENS" default:"false"`
	// Observe is what is observed; a function has it from the keys of
	// config-observability and config-logging, each behind a prefix.
	Observe observe.Config `ignored:"true"`
	// WebhookSecrets is the folder with the secrets of webhooks.
	WebhookSecrets string `envconfig:"WEBHOOK_SECRETS" default:"/etc/updraft/webhooks"`
}

// Parts are what a function is made of.
type Parts struct {
	Clients  *record.Clients
	Tokens   authenticationv1client.TokenReviewsGetter
	Access   authorizationv1client.SubjectAccessReviewsGetter
	Alarms   *record.Alarms
	Broker   transport.Sender
	Settings run.Settings
	Gateway  GatewaySettings
	Log      *slog.Logger
	// Leaving is told what is to be done when the process was told to stop and the
	// last request is answered; the context that it gets has some seconds.
	Leaving func(func(context.Context))
	// Telemetry sends the spans of what is served by Observed.
	Telemetry *observe.Telemetry
	// Meter pushes what is measured in what is served by Observed.
	Meter *observe.Meter
}

// Observed makes what a handler does visible.
func (p *Parts) Observed(handler http.Handler) http.Handler {
	return p.Meter.Serve(p.Telemetry.Serve(handler))
}

// Stop sends what is left to be seen.
func (p *Parts) Stop() {
	p.Telemetry.Stop()
	p.Meter.Stop()
}

// farewell is how long what is done at the end may take.
const farewell = 5 * time.Second

// GatewaySettings are those of the gateway alone.
type GatewaySettings struct {
	Audience       string
	ClusterTokens  bool
	WebhookSecrets string
}

// Main serves the function that assemble makes of its parts. It does not return.
func Main(name string, assemble func(Parts) transport.Handle) {
	MainHTTP(name, func(p Parts) http.Handler { return transport.Handler(p.Log, assemble(p)) })
}

// MainHTTP serves a function that answers HTTP itself. It does not return.
func MainHTTP(name string, assemble func(Parts) http.Handler) {
	config, unread := observe.Parse(observe.FromEnvironment(os.Environ(), observe.PrefixObservability),
		observe.FromEnvironment(os.Environ(), observe.PrefixLogging), name)
	log := observe.NewLogger(os.Stdout, config.Level).With("function", name)
	if unread != nil { // it is no reason not to do the work
		log.Error("The settings of what is observed cannot be read; nothing is traced or measured", "error", unread.Error())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, name, config, log, assemble); err != nil {
		log.Error("Function ended", "error", err.Error())
		os.Exit(1) //nolint:gocritic // the signal handler goes with the process
	}
}

func serve(ctx context.Context, name string, observed observe.Config, log *slog.Logger, assemble func(Parts) http.Handler) error {
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
	defer parts.Stop()
	var leave []func(context.Context)
	parts.Leaving = func(do func(context.Context)) { leave = append(leave, do) }
	if err := transport.Serve(ctx, fmt.Sprintf(":%d", env.Port), parts.Observed(assemble(*parts))); err != nil {
		return err
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	for _, do := range leave {
		do(last)
	}
	return nil
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
	reviews := rest.CopyConfig(config)
	reviews.QPS = -1 // one for each request, and the API server has its own fairness
	tokens, err := authenticationv1client.NewForConfig(reviews)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client for token reviews: %w", err)
	}
	access, err := authorizationv1client.NewForConfig(reviews)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client for access reviews: %w", err)
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
	meter, err := observe.NewMeter(context.Background(), env.Observe.Metrics, name, log)
	if err != nil {
		return nil, err
	}
	return &Parts{
		Clients: clients, Tokens: tokens, Access: access, Broker: broker, Log: log, Telemetry: telemetry, Meter: meter,
		Alarms: &record.Alarms{Client: clients.Dynamic, BrokerNamespace: env.BrokerNamespace, BrokerName: env.BrokerName},
		Settings: run.Settings{
			AgentImage: env.AgentImage, ReportURL: env.ReportURL, RunImage: env.RunImage, Timeout: env.Timeout,
			Traces: traces(env.Observe.Runs),
		},
		Gateway: GatewaySettings{Audience: env.Audience, ClusterTokens: env.ClusterTokens, WebhookSecrets: env.WebhookSecrets},
	}, nil
}

// traces is where runs send their spans.
func traces(t observe.Tracing) run.Traces {
	if !t.On() {
		return run.Traces{}
	}
	return run.Traces{Endpoint: t.Endpoint, Protocol: t.Protocol}
}
