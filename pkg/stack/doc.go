// Package stack decides what a Stack needs next, and folds what an Update came
// to into it. It holds the state machine of a Stack; no client, no clock and
// no environment are used here.
//
// The states, by what is on the object:
//
//	no finalizer ──► finalizer ──► claim (status.currentUpdate) ──► Workspace ──► Update
//	                     ▲             │ withdrawn, superseded                      │
//	                     │             ▼                                            │ settled
//	                 in step ◄──── no claim ◄──────────────── fold ◄────────────────┘
//
// A claim is a name only. As long as the Update that it names does not exist,
// it means "not created yet", and whoever looks next finishes it, with the
// Stack as it is then. What an Update stood for is read from the Update, never
// from the claim.
//
// Assess promises to be total (each world has a verdict), to be repeatable (the
// verdict's writes done, the same look gives Nothing or the next step) and to
// give exactly one of Ready, Reconciling and Stalled.
package stack
