// Command sweep serves the sweep function.
package main

import (
	"time"

	"github.com/updraft-dev/updraft/cmd/internal/start"
	"github.com/updraft-dev/updraft/functions/sweep"
	"github.com/updraft-dev/updraft/pkg/transport"
)

func main() {
	start.Main(sweep.Name, func(p start.Parts) transport.Handle {
		f := &sweep.Function{Clients: p.Clients, Broker: p.Broker, Now: time.Now, Log: p.Log, Patience: sweep.Patience()}
		return f.Handle
	})
}
