// Package record is how functions read the world and write to it: each write of
// an object that exists carries the resourceVersion that was read, each delete
// the UID, an alarm is a PingSource owned by what it wakes, and a poll is one
// owned by all Stacks that share it.
//
// It decides nothing: what to write is decided in pkg/stack and pkg/run.
package record
