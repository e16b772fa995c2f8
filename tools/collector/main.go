// Command collector is the OpenTelemetry collector with what tests and dev mode
// need of it: it receives OTLP by HTTP and gRPC, and writes what it received to a
// file, a line of JSON each, or sends it on.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"sync"

	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/prometheusexporter"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/deltatocumulativeprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/transformprocessor"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/envprovider"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/otlphttpexporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/batchprocessor"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
)

func main() {
	settings := otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{Command: "collector", Description: "OpenTelemetry collector", Version: "v0.148.0"},
		Factories: factories,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			ProviderFactories: []confmap.ProviderFactory{envprovider.NewFactory(), fileprovider.NewFactory(), yamlprovider.NewFactory()},
		}},
	}
	if err := otelcol.NewCommand(settings).Execute(); err != nil {
		log.Fatal(err)
	}
}

func factories() (otelcol.Factories, error) {
	f := otelcol.Factories{Telemetry: otelconftelemetry.NewFactory()}
	var err error
	if f.Receivers, err = otelcol.MakeFactoryMap(otlpreceiver.NewFactory()); err != nil {
		return f, err
	}
	if f.Processors, err = otelcol.MakeFactoryMap(batchprocessor.NewFactory(), deltatocumulativeprocessor.NewFactory(), transformprocessor.NewFactory()); err != nil {
		return f, err
	}
	f.Exporters, err = otelcol.MakeFactoryMap(newFileFactory(), otlphttpexporter.NewFactory(), prometheusexporter.NewFactory())
	return f, err
}

// fileConfig is where the exporter writes.
type fileConfig struct {
	Path string `mapstructure:"path"`
}

// newFileFactory makes an exporter that appends OTLP's JSON to a file. The
// collector's own is in its contributed modules, which are large.
func newFileFactory() exporter.Factory {
	return exporter.NewFactory(component.MustNewType("file"),
		func() component.Config { return &fileConfig{} },
		exporter.WithTraces(func(ctx context.Context, set exporter.Settings, c component.Config) (exporter.Traces, error) {
			f := &file{path: c.(*fileConfig).Path}
			return exporterhelper.NewTraces(ctx, set, c, func(_ context.Context, t ptrace.Traces) error {
				return f.write((&ptrace.JSONMarshaler{}).MarshalTraces(t))
			})
		}, component.StabilityLevelStable),
		exporter.WithMetrics(func(ctx context.Context, set exporter.Settings, c component.Config) (exporter.Metrics, error) {
			f := &file{path: c.(*fileConfig).Path}
			return exporterhelper.NewMetrics(ctx, set, c, func(_ context.Context, m pmetric.Metrics) error {
				return f.write((&pmetric.JSONMarshaler{}).MarshalMetrics(m))
			})
		}, component.StabilityLevelStable))
}

type file struct {
	mu   sync.Mutex
	path string
}

// write appends a line, in one write, so that lines of two signals do not mix.
func (f *file) write(line []byte, err error) error {
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	out, err := os.OpenFile(f.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("cannot open: %w", err)
	}
	if _, err := out.Write(append(line, '\n')); err != nil {
		_ = out.Close()
		return fmt.Errorf("cannot write: %w", err)
	}
	return out.Close()
}
