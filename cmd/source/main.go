// Command source serves the source function.
package main

import (
	"time"

	"github.com/updraft-dev/updraft/cmd/internal/start"
	"github.com/updraft-dev/updraft/functions/source"
	"github.com/updraft-dev/updraft/pkg/transport"
)

func main() {
	start.Main(source.Name, func(p start.Parts) transport.Handle {
		f := &source.Function{Clients: p.Clients, Alarms: p.Alarms, Broker: p.Broker, Now: time.Now, Log: p.Log}
		return f.Handle
	})
}
