// Command gateway serves the gateway function, and webhooks beside it.
package main

import (
	"net/http"
	"time"

	"github.com/updraft-dev/updraft/cmd/internal/gate"
	"github.com/updraft-dev/updraft/cmd/internal/start"
	"github.com/updraft-dev/updraft/functions/gateway"
)

func main() {
	start.MainHTTP(gateway.Name, func(p start.Parts) http.Handler { return gate.Handler(p, time.Now) })
}
