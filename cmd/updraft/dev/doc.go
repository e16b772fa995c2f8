// Package dev is the embedded mode, put together: a real API server and its
// controllers, Knative's own source adapter, filters and cron, pods as local
// processes, and all functions, in one process.
//
// It promises that the functions are the ones of a cluster, routed by the same
// Triggers and acting under the same ServiceAccounts with the same rights, and
// that Stop leaves no process behind.
package dev
