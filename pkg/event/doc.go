// Package event defines Updraft's own CloudEvents: their types, how they are
// made and how they are read.
//
// It promises that an event names what to look at and nothing more (an event
// is a reason to look, never a fact), with the extensions kind, namespace and
// name that Knative's ApiServerSource sets too, so that Triggers filter all
// alike. The one exception is a run's report, which carries facts, goes to the
// status function directly and is authenticated by the pod's own token.
//
// No client is imported here.
package event
