// Package source is the function that asks git repositories what they have: it
// wakes on polls, finds the commit that a ref names, once for all Stacks of a
// namespace that share it, and writes it onto each as status.source.
// A push makes the polls due that ask for what was pushed to, however many come in
// a burst, once: the first sets an alarm, some seconds on, that stands for all.
//
// It promises to write only when what it found has changed, so that a poll which
// finds nothing new wakes nobody; to keep what was seen before when a repository
// cannot be read, with a message, until the next poll; and to read no Secret but
// those that the Stacks of the namespace name for the repository.
package source
