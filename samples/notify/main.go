// Command notify prints one line for each event that it is sent: where a mail or a
// message to a chat would be written.
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
)

func main() {
	if err := serve(); err != nil {
		log.Fatal(err)
	}
}

func serve() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(os.Getenv("HOST"), cmp.Or(os.Getenv("PORT"), "8080")))
	if err != nil {
		return err
	}
	client, err := cloudevents.NewClientHTTP(cehttp.WithListener(listener))
	if err != nil {
		return err
	}
	return client.StartReceiver(ctx, func(e cloudevents.Event) { fmt.Println(line(e)) })
}

// line is an event in a few words: "Stack default/app failed: UpdateFailed, see …".
func line(e cloudevents.Event) string {
	var data struct{ Reason, Permalink string }
	_ = e.DataAs(&data) // what has neither is told without
	what := e.Type()[strings.LastIndexByte(e.Type(), '.')+1:]
	text := fmt.Sprintf("%v %v/%v %s", e.Extensions()["kind"], e.Extensions()["namespace"], e.Extensions()["name"], what)
	if data.Reason != "" {
		text += ": " + data.Reason
	}
	if data.Permalink != "" {
		text += ", see " + data.Permalink
	}
	return text
}
