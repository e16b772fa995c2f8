// Package gitremote speaks to a git repository elsewhere: which commit a ref
// names now, and the objects of a commit.
//
// It promises that an error is one sentence for a person which stays the same
// as long as its cause does (no port, no time, no text of a server's in it) and
// names no credential; that the causes which a caller may have to tell apart can
// be, with errors.Is; and that a commit which is asked for by its hash is that
// one or an error, whatever the server allows to be asked for.
//
// It writes no file but through the storage that it is given.
package gitremote
