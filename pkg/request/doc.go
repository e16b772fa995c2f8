// Package request decides what a request from outside comes to: a CloudEvent in,
// and with the Stack as it was read a change of its annotations or an Update to
// create, or a problem in words for who asked.
//
// It promises that an event is one request: its source and id are its identity,
// of which a Stack's annotation keeps the last ones in the same write as what
// they ask for, so that the same event, however often and whenever it comes, asks
// once. What it decides is what kubectl could do: `kubectl annotate` for an update
// and a cancel, `kubectl create` of an Update for the rest.
//
// No client is imported here.
package request
