// Package broker is a Knative Broker in one process: it takes the Trigger objects that a cluster gets and does with an event what
// the cluster would do, with Knative's own filters and Knative's own dispatcher.
//
// What it promises, as the multi-tenant channel-based broker with an asynchronous in-memory channel (the Broker that config/ sets up):
//
//   - An event is answered 202 before anybody has seen it, 400 if it is malformed, 503 once the broker is closing.
//   - Each Trigger whose filters let it pass gets it, all at the same time and in no order, with the tries, waits and dead letter sink
//     of its own `delivery`; that block replaces the Broker's as a whole.
//   - A 2xx answer with a body that is no CloudEvent is a failure, as 502. One that is a CloudEvent goes through the broker in turn,
//     at most 255 times for one origin.
//   - Nothing is kept: what waits for its next try at the end is lost.
//   - A traceparent that comes with an event goes on to the subscribers; an event without one begins a trace.
//
// Not here: authentication, TLS trust bundles, metrics, automatic EventTypes.
package broker
