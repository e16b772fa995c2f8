package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"go.uber.org/zap"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"knative.dev/eventing/pkg/adapter/apiserver"
	adapterv2 "knative.dev/eventing/pkg/adapter/v2"
	sourcesv1 "knative.dev/eventing/pkg/apis/sources/v1"
	"knative.dev/pkg/apis"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	"knative.dev/pkg/injection/clients/dynamicclient"
	"knative.dev/pkg/logging"
)

// Options say what is watched, as whom, and where the events go.
type Options struct {
	// Source is what a cluster gets, as LoadSource reads it. Its sink is not looked at, but Sink.
	Source *sourcesv1.ApiServerSource
	// Config is of a user who may get, list and watch the source's kinds. Its host becomes the events' source.
	Config *rest.Config
	// Sink takes the events: the Broker's address.
	Sink *apis.URL
	// Ready is called once, when every watch is open.
	Ready func()
	// Log takes events that are lost. The default discards.
	Log *slog.Logger
}

// Run sends events until ctx ends. It returns an error only if it could not start.
func Run(ctx context.Context, options Options) error {
	if options.Source == nil || options.Config == nil || options.Sink == nil {
		return errors.New("an ApiServerSource needs Source, Config and Sink")
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	if options.Ready == nil {
		options.Ready = func() {}
	}
	client, err := kubernetes.NewForConfig(options.Config)
	if err != nil {
		return err
	}
	config, err := configOf(ctx, options.Source, client)
	if err != nil {
		return err
	}
	awaited, err := watchesOf(config, client.Discovery())
	if err != nil {
		return err
	}
	watches := newWatches(awaited)
	adapter, err := newAdapter(ctx, options, config, watches)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- adapter.Start(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-watches.open:
		options.Ready()
	}
	return <-ended
}

// newAdapter hands the adapter what it expects to find in its context and environment, without touching the process's.
func newAdapter(ctx context.Context, options Options, config apiserver.Config, watches *watches) (adapterv2.Adapter, error) {
	watched := rest.CopyConfig(options.Config)
	watched.Wrap(watches.wrap)
	client, err := kubernetes.NewForConfig(watched)
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfig(watched)
	if err != nil {
		return nil, err
	}
	ctx = context.WithValue(ctx, kubeclient.Key{}, kubernetes.Interface(client))
	ctx = context.WithValue(ctx, dynamicclient.Key{}, dynamic.Interface(objects))
	ctx = context.WithValue(ctx, apiserver.Key{}, watched.Host)
	ctx = logging.WithLogger(ctx, zap.NewNop().Sugar()) // it describes every event; what matters comes through sender

	configJSON, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	env := apiserver.NewEnvConfig()
	settings, err := json.Marshal(map[string]string{
		"Name": options.Source.Name, "Namespace": options.Source.Namespace, "ConfigJson": string(configJSON),
	})
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(settings, env); err != nil { // its type is private
		return nil, fmt.Errorf("cannot set up the adapter: %w", err)
	}
	sink, err := adapterv2.NewClient(adapterv2.ClientConfig{
		Env: &adapterv2.EnvConfig{
			Namespace: options.Source.Namespace, Name: options.Source.Name, Sink: options.Sink.String(), EnvSinkTimeout: "-1",
		},
		CeOverrides: options.Source.Spec.CloudEventOverrides,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot set up the sending of events: %w", err)
	}
	return apiserver.NewAdapter(ctx, env, sender{Client: sink, log: options.Log}), nil
}

// sender reports what the adapter drops after its tries.
type sender struct {
	cloudevents.Client
	log *slog.Logger
}

func (s sender) Send(ctx context.Context, event cloudevents.Event) cloudevents.Result {
	result := s.Client.Send(ctx, event)
	if !cloudevents.IsACK(result) {
		s.log.Error("An event of the API server is lost: the sink did not take it", "type", event.Type(), "subject", event.Subject(), "error", result)
	}
	return result
}
