// Command gateway serves the gateway function.
package main

import (
	"net/http"

	"github.com/updraft-dev/updraft/cmd/internal/start"
	"github.com/updraft-dev/updraft/functions/gateway"
)

func main() {
	start.MainHTTP(gateway.Name, func(p start.Parts) http.Handler {
		return &gateway.Function{
			Pulumi: p.Clients.Pulumi, Tokens: p.Tokens, Access: p.Access,
			Audience: p.Gateway.Audience, ClusterTokens: p.Gateway.ClusterTokens, Log: p.Log,
		}
	})
}
