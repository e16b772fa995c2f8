// Package update is the function that launches: it wakes on Updates, takes the
// Workspace's lock and makes the one Job that runs the Update, or stops it.
//
// It reads the Workspace, then the Update, then the Stack, and takes the lock
// with that Workspace's resourceVersion: whoever took it in between makes the
// write fail. It settles only what no pod ever took.
package update
