// Package transport carries CloudEvents over HTTP to and from functions, and is
// the one place where the consequence of an error becomes an HTTP answer.
//
// It promises that a function answers 204 without a body for what is done (a
// body that is no CloudEvent would count as a failure), 503 for "later" (the
// Broker brings the event back), 422 for "never", 400 for what is no CloudEvent,
// and that a look which met a conflict looks again before it answers.
package transport
