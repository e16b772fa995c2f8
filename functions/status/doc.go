// Package status is the function that settles: it takes the reports of runs and
// wakes on Updates, Jobs and Pods, settles the Update, folds it into its Stack,
// unlocks the Workspace once the run has ended, tells the world, and lets the
// Update go. Of a run that was launched and not yet taken it records, onto the
// Update, what its pod waits for, and asks for a look at the Stack as long as that
// does not say the same.
//
// The writes at the end of one run, in order: the outputs Secret; the Update,
// settled, with all that the fold needs; the Stack, in one write; the end of the
// run onto the Update; the Workspace, unlocked; the events; the ConfigMap of the
// log; the Job, deleted; the Update's finalizer. Each may be the last before a
// crash: whoever looks next goes on from there.
package status
