// Package stack is the function that decides: it wakes on Stacks, Programs and
// Workspaces, sees to the poll of a git source, assesses the Stack, claims an Update, and makes the Workspace and
// the Update.
//
// The writes of one change, in order: the Stack's finalizer; the claim
// (status.currentUpdate); the Workspace; the Update. Each may be the last before
// a crash: whoever looks next goes on from there. Other systems are told that a
// Stack is stalled, or let go of, before the write that makes it so: nothing would
// remember it afterwards.
package stack
