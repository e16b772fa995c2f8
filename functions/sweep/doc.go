// Package sweep is the function that finds what an event may have missed: it
// lists our kinds in all namespaces, sends a due for what is not at rest, and
// deletes Updates that have outlived their time.
//
// It promises that whatever was lost is looked at again within one period, and
// that it writes nothing but the deletion of expired Updates.
package sweep
