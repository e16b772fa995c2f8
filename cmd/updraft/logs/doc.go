// Package logs is updraft logs: what the run of a Stack's Update said, from its
// pod while that is there, and afterwards from the tail that was kept.
//
// It promises that an Update's log is never taken for another's, and that where
// there is none it says why. It needs the rights of the person who calls it: get
// Stacks, Updates, ConfigMaps and pods/log, get and list Pods.
package logs
