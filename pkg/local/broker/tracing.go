package broker

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/propagation"
	"knative.dev/pkg/observability/tracing"
)

// The trace is read from and written to the headers here, not by the HTTP client: that one asks the process's global propagator,
// which does nothing unless somebody has set it, and a package must not set globals.

func extract(ctx context.Context, header http.Header) context.Context {
	return tracing.DefaultTextMapPropagator().Extract(ctx, propagation.HeaderCarrier(header))
}

func inject(ctx context.Context, header http.Header) http.Header {
	header = header.Clone()
	if header == nil {
		header = http.Header{}
	}
	tracing.DefaultTextMapPropagator().Inject(ctx, propagation.HeaderCarrier(header))
	return header
}
