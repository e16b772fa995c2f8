// Command update serves the update function.
package main

import (
	"time"

	"github.com/updraft-dev/updraft/cmd/internal/start"
	"github.com/updraft-dev/updraft/functions/update"
	"github.com/updraft-dev/updraft/pkg/transport"
)

func main() {
	start.Main(update.Name, func(p start.Parts) transport.Handle {
		f := &update.Function{Clients: p.Clients, Alarms: p.Alarms, Settings: p.Settings, Now: time.Now, Log: p.Log}
		return f.Handle
	})
}
