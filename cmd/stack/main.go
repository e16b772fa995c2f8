// Command stack serves the stack function.
package main

import (
	"time"

	"github.com/updraft-dev/updraft/cmd/internal/start"
	"github.com/updraft-dev/updraft/functions/stack"
	"github.com/updraft-dev/updraft/pkg/transport"
)

func main() {
	start.Main(stack.Name, func(p start.Parts) transport.Handle {
		f := &stack.Function{Clients: p.Clients, Alarms: p.Alarms, Broker: p.Broker, Now: time.Now, Log: p.Log}
		p.Leaving(f.Leave)
		return f.Handle
	})
}
