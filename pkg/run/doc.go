// Package run holds the life of one Update, as pure functions: whether it may
// be launched, what Job it becomes, what its run is told, and how its end is
// settled.
//
// It promises that the same Update and Workspace give the same Job, byte for
// byte, that an Update which was taken is never launched again, and that each
// end of a run has a reason and a message. No client, no clock and no
// environment are used here.
package run
