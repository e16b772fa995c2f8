package record

import (
	"fmt"
	"net/http"

	"k8s.io/client-go/dynamic"
	batchv1client "k8s.io/client-go/kubernetes/typed/batch/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/updraft-dev/updraft/pkg/client/clientset/versioned"
)

// Requests a second that one function may make, and at once. The API server's
// own priority and fairness protects it; client-go's default of 5 would only
// make a burst of events slow.
const (
	requestsPerSecond = 100
	requestsAtOnce    = 200
)

// Clients of the API server, of which each function uses what its rights allow.
type Clients struct {
	Pulumi  versioned.Interface
	Core    corev1client.CoreV1Interface
	Batch   batchv1client.BatchV1Interface
	Dynamic dynamic.Interface
}

// NewClients makes clients that share one HTTP client.
func NewClients(config *rest.Config) (*Clients, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = requestsPerSecond, requestsAtOnce
	// The API server warns of the finalizer's name, which users' tools know.
	config.WarningHandler = rest.NoWarnings{}
	if config.UserAgent == "" {
		config.UserAgent = "updraft"
	}
	shared, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client of the API server: %w", err)
	}
	return newClients(config, shared)
}

func newClients(config *rest.Config, shared *http.Client) (*Clients, error) {
	clients := &Clients{}
	var err error
	if clients.Pulumi, err = versioned.NewForConfigAndClient(config, shared); err != nil {
		return nil, fmt.Errorf("cannot make a client of our own kinds: %w", err)
	}
	if clients.Core, err = corev1client.NewForConfigAndClient(config, shared); err != nil {
		return nil, fmt.Errorf("cannot make a client of core/v1: %w", err)
	}
	if clients.Batch, err = batchv1client.NewForConfigAndClient(config, shared); err != nil {
		return nil, fmt.Errorf("cannot make a client of batch/v1: %w", err)
	}
	if clients.Dynamic, err = dynamic.NewForConfigAndClient(config, shared); err != nil {
		return nil, fmt.Errorf("cannot make a dynamic client: %w", err)
	}
	return clients, nil
}
