// Package observe makes what functions and runs do visible: traces, metrics, and a
// log line for each look that did something. It is set up from the keys of Knative's
// config-observability and config-logging.
//
// It promises that it costs nothing when it is off: no exporter, no goroutine, no
// span. When it is on, spans are sent before a request is answered, since the pod
// may be gone after it; a collector that does not answer holds that up once, for
// patience at most, and not again before it is back. It fails nothing.
//
// Metrics are pushed now and then, and when a function ends. What cannot be pushed
// is lost, and nothing waits for it.
//
// A change has one trace, though each of its events may have come with another:
// an Update carries its trace's traceparent as an annotation, and a look at it
// (Saw) joins. A span holds names, states and counts, and no value, output or
// error text: these may be secret.
package observe
