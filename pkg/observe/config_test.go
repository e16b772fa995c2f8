package observe

import (
	"log/slog"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap/zapcore"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/observability/metrics"
	"knative.dev/pkg/observability/tracing"
)

func TestParse(t *testing.T) {
	type data = map[string]string
	on := Tracing{Protocol: ProtocolHTTP, Endpoint: "http://c:4318/v1/traces", Rate: 1}
	with := func(more data) data {
		all := data{"tracing-protocol": "http/protobuf", "tracing-endpoint": "http://c:4318/v1/traces", "tracing-sampling-rate": "1"}
		maps.Copy(all, more)
		return all
	}
	off, none := Tracing{Protocol: ProtocolNone}, Metrics{Protocol: ProtocolNone}
	cases := map[string]struct {
		observability, logging data
		want                   Config
		refused                bool
	}{
		"Nothing is off":                         {want: Config{Tracing: off, Runs: off}},
		"Everything":                             {observability: with(nil), want: Config{Tracing: on, Runs: on}},
		"Another endpoint for runs":              {observability: with(data{"run-tracing-endpoint": "http://d/v1/traces"}), want: Config{Tracing: on, Runs: Tracing{ProtocolHTTP, "http://d/v1/traces", 1}}},
		"No spans of runs":                       {observability: with(data{"run-tracing-endpoint": "none"}), want: Config{Tracing: on}},
		"An endpoint for runs that is none":      {observability: with(data{"run-tracing-endpoint": "://"}), refused: true},
		"An endpoint without scheme":             {observability: with(data{"tracing-endpoint": "c:4317", "tracing-protocol": "grpc"}), want: Config{Tracing: Tracing{ProtocolGRPC, "https://c:4317", 1}, Runs: Tracing{ProtocolGRPC, "https://c:4317", 1}}},
		"Spans into a function's log, not runs'": {observability: data{"tracing-protocol": "stdout"}, want: Config{Tracing: Tracing{Protocol: ProtocolStdout, Rate: 1}}},
		"A rate that is no number":               {observability: with(data{"tracing-sampling-rate": "all"}), refused: true},
		"A rate of NaN":                          {observability: with(data{"tracing-sampling-rate": "NaN"}), refused: true},
		"Metrics": {observability: data{"metrics-protocol": "grpc", "metrics-endpoint": "http://c:4317", "metrics-export-interval": "30s"},
			want: Config{Tracing: off, Runs: off, Metrics: Metrics{ProtocolGRPC, "http://c:4317", 30 * time.Second}}},
		"Metrics that are to be fetched":  {observability: data{"metrics-protocol": "prometheus"}, refused: true},
		"An interval that is no duration": {observability: data{"metrics-export-interval": "30"}, refused: true},
		"The level of all":                {logging: data{"zap-logger-config": `{"level":"warn","encoding":"json"}`}, want: Config{Tracing: off, Runs: off, Level: slog.LevelWarn}},
		"The level of one":                {logging: data{"zap-logger-config": `{"level":"warn"}`, "loglevel.updraft-stack": "debug", "loglevel.updraft-status": "error"}, want: Config{Tracing: off, Runs: off, Level: slog.LevelDebug}},
		"A level that is none":            {logging: data{"loglevel.updraft-stack": "loud"}, refused: true},
		"A logger that is no JSON":        {logging: data{"zap-logger-config": "level: info"}, refused: true},
		"What is wrong leaves the level":  {observability: data{"tracing-protocol": "smoke"}, logging: data{"loglevel.updraft-stack": "debug"}, want: Config{Level: slog.LevelDebug}, refused: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if c.want.Metrics == (Metrics{}) && !c.refused {
				c.want.Metrics = none
			}
			got, err := Parse(c.observability, c.logging, "updraft-stack")
			if diff := cmp.Diff(c.want, got); diff != "" || (err != nil) != c.refused {
				t.Errorf("error %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// What Knative reads from the same keys is what Updraft reads.
func TestTheKeysMeanWhatTheyMeanToKnative(t *testing.T) {
	for _, protocol := range []string{"", "none", "grpc", "http/protobuf", "stdout", "zipkin"} {
		for _, endpoint := range []string{"", "http://c:4318/v1/traces", "https://c"} {
			for _, rate := range []string{"", "0", "0.5", "1", "1.5", "-1", "x"} {
				data := map[string]string{}
				for key, value := range map[string]string{"tracing-protocol": protocol, "tracing-endpoint": endpoint, "tracing-sampling-rate": rate} {
					if value != "" {
						data[key] = value
					}
				}
				theirs, theirErr := tracing.NewFromMap(data)
				ours, err := Parse(data, nil, "x")
				if (err != nil) != (theirErr != nil) {
					t.Errorf("%v: Knative says %v, we say %v", data, theirErr, err)
				}
				if protocol == ProtocolStdout {
					theirs.SamplingRate = 1 // which it does when it makes the sampler
				}
				if err == nil && (ours.Tracing != Tracing{theirs.Protocol, theirs.Endpoint, theirs.SamplingRate}) {
					t.Errorf("%v: Knative reads %+v, we read %+v", data, theirs, ours.Tracing)
				}
			}
		}
	}
	for _, protocol := range []string{"", "none", "grpc", "http/protobuf", "stdout"} {
		for _, endpoint := range []string{"", "http://c:4318/v1/metrics", "https://c"} {
			for _, interval := range []string{"", "0s", "10s", "-1s", "x", "10"} {
				data := map[string]string{}
				for key, value := range map[string]string{"metrics-protocol": protocol, "metrics-endpoint": endpoint, "metrics-export-interval": interval} {
					if value != "" {
						data[key] = value
					}
				}
				theirs, theirErr := metrics.NewFromMap(data)
				ours, err := Parse(data, nil, "x")
				if (err != nil) != (theirErr != nil) || err == nil && ours.Metrics != (Metrics{theirs.Protocol, theirs.Endpoint, theirs.ExportInterval}) {
					t.Errorf("%v: Knative reads %+v (%v), we read %+v (%v)", data, theirs, theirErr, ours.Metrics, err)
				}
			}
		}
	}
	levels := map[zapcore.Level]slog.Level{
		zapcore.DebugLevel: slog.LevelDebug, zapcore.InfoLevel: slog.LevelInfo, zapcore.WarnLevel: slog.LevelWarn,
		zapcore.ErrorLevel: slog.LevelError, zapcore.DPanicLevel: slog.LevelError, zapcore.PanicLevel: slog.LevelError, zapcore.FatalLevel: slog.LevelError,
	}
	for _, level := range []string{"debug", "info", "warn", "error", "dpanic", "panic", "fatal", "INFO", "loud"} {
		data := map[string]string{"loglevel.x": level}
		theirs, theirErr := logging.NewConfigFromMap(data)
		ours, err := Parse(nil, data, "x")
		if (err != nil) != (theirErr != nil) || err == nil && levels[theirs.LoggingLevel["x"]] != ours.Level {
			t.Errorf("%s: Knative reads %v (%v), we read %v (%v)", level, theirs, theirErr, ours.Level, err)
		}
	}
}

func TestTheEnvironmentHasTheKeysAsTheyAre(t *testing.T) {
	got := FromEnvironment([]string{"PATH=/bin", "LOGGING_loglevel.updraft-stack=debug", "LOGGING__example=x=y", "LOGGING_zap-logger-config={\"a\":\"=\"}", "OBSERVABILITY_a=b"}, PrefixLogging)
	want := map[string]string{"loglevel.updraft-stack": "debug", "zap-logger-config": `{"a":"="}`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestOfRun(t *testing.T) {
	const kept, dropped = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
	ours := Tracing{Protocol: ProtocolHTTP, Endpoint: "http://ours/v1/traces", Rate: 1}
	cases := map[string]struct {
		env         map[string]string
		traceparent string
		want        Tracing
	}{
		"Told by its Job":                     {traceparent: kept, want: ours},
		"Not told of a trace":                 {},
		"A trace that is not kept":            {traceparent: dropped},
		"What is no trace":                    {traceparent: "x"},
		"A user's own collector":              {traceparent: kept, env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://theirs:4318/"}, want: Tracing{ProtocolHTTP, "http://theirs:4318/v1/traces", 1}},
		"A user's own collector, for traces":  {traceparent: kept, env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://theirs:4318/t", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, want: Tracing{ProtocolGRPC, "http://theirs:4318/t", 1}},
		"A user's protocol that is not known": {traceparent: kept, env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}},
		"A user who wants none":               {traceparent: kept, env: map[string]string{"OTEL_SDK_DISABLED": "true"}},
		"A user who exports none":             {traceparent: kept, env: map[string]string{"OTEL_TRACES_EXPORTER": "none"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := OfRun(func(key string) string { return c.env[key] }, c.traceparent, ours.Endpoint, ours.Protocol)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
