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
}

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
	log := slog.New(slog.NewJSONHandler(os.Stdout, nil)).With("function", name)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, log, assemble); err != nil {
		log.Error("Function ended", "error", err.Error())
		os.Exit(1) //nolint:gocritic // the signal handler goes with the process
	}
}

func serve(ctx context.Context, log *slog.Logger, assemble func(Parts) http.Handler) error {
	var env Environment
	if err := envconfig.Process("", &env); err != nil {
		return fmt.Errorf("cannot read the environment: %w", err)
	}
	config := &rest.Config{Host: env.APIServerURL}
	if env.APIServerURL == "" {
		var err error
		if config, err = rest.InClusterConfig(); err != nil {
			return fmt.Errorf("cannot find the API server: %w", err)
		}
	}
	parts, err := NewParts(config, env, log)
	if err != nil {
		return err
	}
	return transport.Serve(ctx, fmt.Sprintf(":%d", env.Port), assemble(*parts))
}

// NewParts makes the parts of a function that acts with the rights of config.
func NewParts(config *rest.Config, env Environment, log *slog.Logger) (*Parts, error) {
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
	return &Parts{
		Clients: clients, Tokens: tokens, Access: access, Broker: broker, Log: log,
		Alarms:   &record.Alarms{Client: clients.Dynamic, BrokerNamespace: env.BrokerNamespace, BrokerName: env.BrokerName},
		Settings: run.Settings{AgentImage: env.AgentImage, ReportURL: env.ReportURL, RunImage: env.RunImage, Timeout: env.Timeout},
		Gateway:  GatewaySettings{Audience: env.Audience, ClusterTokens: env.ClusterTokens, WebhookSecrets: env.WebhookSecrets},
	}, nil
}
