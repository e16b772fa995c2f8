// Package gate puts together what is served to the outside: requests as events,
// and the webhooks of git hosts.
package gate

import (
	"net/http"
	"time"

	"github.com/updraft-dev/updraft/cmd/internal/start"
	"github.com/updraft-dev/updraft/functions/gateway"
	"github.com/updraft-dev/updraft/sources/webhook"
)

// Handler serves both, each at its path.
func Handler(p start.Parts, now func() time.Time) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", &gateway.Function{
		Pulumi: p.Clients.Pulumi, Tokens: p.Tokens, Access: p.Access,
		Audience: p.Gateway.Audience, ClusterTokens: p.Gateway.ClusterTokens, Log: p.Log,
	})
	mux.Handle(webhook.Path, &webhook.Receiver{
		Secrets: p.Gateway.WebhookSecrets, Namespace: p.Alarms.BrokerNamespace, Broker: p.Broker, Now: now, Log: p.Log,
	})
	return mux
}
