package timer

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/robfig/cron/v3"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"knative.dev/eventing/pkg/adapter/mtping"
	adapterv2 "knative.dev/eventing/pkg/adapter/v2"
	sourcesv1 "knative.dev/eventing/pkg/apis/sources/v1"
	"knative.dev/eventing/pkg/client/clientset/versioned"
	"knative.dev/pkg/apis"
)

// Options say whose PingSources ring, and where.
type Options struct {
	// Config is of a user who may list and watch PingSources in all namespaces.
	Config *rest.Config
	// Sink is the Broker's address: where a PingSource whose sink is a Broker sends to.
	Sink *apis.URL
	// Ready is called once, when every PingSource that exists is scheduled.
	Ready func()
	// Log takes PingSources that are invalid and events that are lost. The default discards.
	Log *slog.Logger
}

// Run rings until ctx ends, and then waits for what is ringing. It returns an error only if it could not start.
func Run(ctx context.Context, options Options) error {
	if options.Config == nil || options.Sink == nil {
		return errors.New("a timer needs Config and Sink")
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	if options.Ready == nil {
		options.Ready = func() {}
	}
	sources, err := versioned.NewForConfig(options.Config)
	if err != nil {
		return err
	}
	kube, err := kubernetes.NewForConfig(options.Config)
	if err != nil {
		return err
	}
	schedule := &schedule{
		runner: newRunner(kube, options.Log), entries: map[cache.ObjectName]cron.EntryID{}, sink: options.Sink, log: options.Log,
	}
	_, controller := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: listAndWatch(sources), ObjectType: &sourcesv1.PingSource{}, Handler: schedule.handler(),
	})
	go func() {
		if cache.WaitForCacheSync(ctx.Done(), controller.HasSynced) {
			options.Ready()
		}
	}()
	started := make(chan struct{})
	go func() {
		schedule.runner.Start(ctx.Done())
		close(started)
	}()
	controller.RunWithContext(ctx)
	<-started // a cron that starts after it was stopped would run for ever
	schedule.runner.Stop()
	return nil
}

// newRunner is the cron as Knative's adapter sets it up, but for the time zone: that of a pod, whatever the machine's is.
func newRunner(kube kubernetes.Interface, log *slog.Logger) mtping.CronJobRunner {
	parser := cron.NewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)
	client := adapterv2.ClientConfig{Env: &adapterv2.EnvConfig{EnvSinkTimeout: "-1"}}
	return mtping.NewCronJobsRunner(client, kube, errorsOf(log), cron.WithParser(parser), cron.WithLocation(time.UTC))
}

// errorsOf passes on what the cron logs as an error: an event that is lost, or that could not be made.
func errorsOf(log *slog.Logger) *zap.SugaredLogger {
	core := zapcore.NewCore(zapcore.NewJSONEncoder(zapcore.EncoderConfig{}), zapcore.AddSync(io.Discard), zap.ErrorLevel)
	return zap.New(core, zap.Hooks(func(entry zapcore.Entry) error {
		log.Error("A PingSource did not send", "error", entry.Message)
		return nil
	})).Sugar()
}

func listAndWatch(client versioned.Interface) cache.ListerWatcher {
	sources := client.SourcesV1().PingSources(metav1.NamespaceAll)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return sources.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return sources.Watch(ctx, options)
		},
	}
}
