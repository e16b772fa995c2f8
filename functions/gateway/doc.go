// Package gateway is the gateway function: it takes requests from outside, as
// CloudEvents over HTTP in binary, structured and batch mode, and turns each into
// what kubectl could do: an annotation of a Stack, or an Update.
//
// It promises that nothing is read or told before the API server has said who
// asks (a TokenReview) and that they may (a SubjectAccessReview for the very
// request that kubectl would make): who may not learns nothing, not even whether a
// Stack exists. The reviews come first, of a batch for all of its events; then,
// for each event, the Stack is read, an Update that was asked for is created, and
// the Stack's annotations are written in one compare-and-swap, with the event's
// identity among them. Cut off between the two writes, the sender has no answer,
// sends again, meets the Update by its name, and the annotations follow.
//
// What is too much is refused early: a body by its length before it is read and
// before a review, JSON by its depth before it is parsed.
package gateway
