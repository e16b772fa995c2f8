// Package fetch puts the source of a run into its share, so that the link
// run.WorkspaceLink leads to the folder that holds Pulumi.yaml.
//
// It promises that what it writes lies below the share, that the workspace
// folder is writable and new for each run (but for a Local source, which is
// used where it is), that fetching twice gives what fetching once gives, and
// that a source it does not serve is an error and never an empty folder.
//
// Each kind of source is one function that brings it; a new kind is one more.
package fetch
