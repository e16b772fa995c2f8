// Command status serves the status function.
package main

import (
	"time"

	"github.com/updraft-dev/updraft/cmd/internal/start"
	"github.com/updraft-dev/updraft/functions/status"
	"github.com/updraft-dev/updraft/pkg/transport"
)

func main() {
	start.Main(status.Name, func(p start.Parts) transport.Handle {
		f := &status.Function{Clients: p.Clients, Tokens: p.Tokens, Broker: p.Broker, Now: time.Now, Log: p.Log}
		return f.Handle
	})
}
