// Package webhook turns the webhooks of git hosts into events: a push that was
// verified becomes dev.updraft.push, a reason to look at the Stacks that follow
// the ref.
//
// It promises that a request is verified before it is parsed, in constant time,
// against the secret of its receiver as it is in the mounted file now; that a
// receiver which does not exist is answered as one whose secret is another; and
// that nothing of a payload goes further than the repository's key and the ref:
// forging one could do no more than make somebody look.
package webhook
