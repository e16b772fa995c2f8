package transport

import (
	"net/http"
	"time"
)

// ReadWithin gives the sender of a request a time to send its body in, until done
// is called: from then on the connection may be silent. A server that cannot hold
// it to that, as one in a test, does not.
func ReadWithin(w http.ResponseWriter, d time.Duration) (done func()) {
	connection := http.NewResponseController(w)
	_ = connection.SetReadDeadline(time.Now().Add(d))
	return func() { _ = connection.SetReadDeadline(time.Time{}) }
}
