// Package agent is what happens inside a run's pod: init brings the source,
// run does the operation and reports.
//
// It promises:
//
//   - A run that another pod took, or that is settled, is left alone: no CLI is
//     started before the report "taken" was accepted.
//   - The CLI is never killed. A stop is one SIGINT, after which the CLI cancels
//     gracefully for as long as the pod's grace lasts.
//   - Each end is told twice: as the container's termination message first, then
//     as the report "finished", which is sent until it is accepted.
//   - A stack's lock is broken only if every holder that the CLI names is the
//     process of an earlier run, proven to be gone.
//   - No secret value is in a message, a log line of its own or the arguments of
//     a process. Secret outputs are in the report "finished" alone.
//
// The life of a run:
//
//	take ──refused──► exit 0
//	  │ accepted
//	prepare: CLI, install, stack, config, environments ──► failed
//	  │
//	operate ──locked by the dead──► cancel, operate once more
//	  │                          └─locked by others──► failed, UpdateConflict
//	settle: termination message, report "finished" ──► exit 0 or 1
package agent
