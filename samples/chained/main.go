// Command chained asks for a run of the Stack $STACK of $NAMESPACE for each event
// that it is sent. The request is the event's id, so that an event which comes twice
// makes one run. It may do nothing but patch that Stack.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"log"
	"net"
	"os"
	"os/signal"
	"syscall"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"

	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	client "github.com/updraft-dev/updraft/pkg/client/clientset/versioned/typed/pulumi/v1"
)

func main() {
	if err := serve(); err != nil {
		log.Fatal(err)
	}
}

func serve() error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG")) // without one, the pod's own
	if err != nil {
		return err
	}
	stacks, err := client.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(os.Getenv("HOST"), cmp.Or(os.Getenv("PORT"), "8080")))
	if err != nil {
		return err
	}
	receiver, err := cloudevents.NewClientHTTP(cehttp.WithListener(listener))
	if err != nil {
		return err
	}
	target := stacks.Stacks(os.Getenv("NAMESPACE"))
	return receiver.StartReceiver(ctx, func(ctx context.Context, e cloudevents.Event) cloudevents.Result {
		_, err := target.Patch(ctx, os.Getenv("STACK"), types.MergePatchType, request(e.ID()), metav1.PatchOptions{})
		if err != nil {
			log.Printf("cannot ask for a run: %v", err)
			return cloudevents.NewHTTPResult(503, "%v", err) // the Broker brings it back
		}
		log.Printf("asked for a run by %s", e.ID())
		return cloudevents.ResultACK
	})
}

// request is a patch that asks for one run, and lets a Stack go that was suspended
// until the first.
func request(id string) []byte {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{
		pulumiv1.AnnotationReconcileRequest: id, pulumiv1.AnnotationSuspend: nil,
	}}})
	if err != nil {
		panic(err) // a map of strings always encodes
	}
	return patch
}
