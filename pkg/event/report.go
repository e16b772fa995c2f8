package event

import "encoding/json"

// Taken is the data of TypeRunTaken: an agent takes the run of an Update.
type Taken struct {
	// UID of the Update that the pod was made for.
	UID string `json:"uid"`
}

// Running is the data of TypeRunRunning: the operation has begun.
type Running struct {
	// UID of the Update that the pod was made for.
	UID string `json:"uid"`
	// Host name and Pid of the CLI's process, as a state backend's lock would
	// name it.
	Host string `json:"host"`
	Pid  int64  `json:"pid"`
}

// Finished is the data of TypeRunFinished when an agent sends it.
type Finished struct {
	// UID of the Update that the pod was made for.
	UID string `json:"uid"`
	// State is succeeded, failed or canceled.
	State string `json:"state"`
	// Reason of a failure, one of the reasons of an Update's condition Failed.
	Reason string `json:"reason,omitempty"`
	// Message of a failure, for a person.
	Message string `json:"message,omitempty"`
	// Permalink to the operation in the backend's console.
	Permalink string `json:"permalink,omitempty"`
	// Changes counts resources by operation.
	Changes map[string]int64 `json:"changes,omitempty"`
	// Outputs of the stack by name. Nil if the operation has none to tell.
	Outputs map[string]Output `json:"outputs,omitempty"`
	// Commit is the revision of the source that was fetched.
	Commit string `json:"commit,omitempty"`
	// Project and Runtime of the program.
	Project string `json:"project,omitempty"`
	Runtime string `json:"runtime,omitempty"`
	// PulumiVersion of the CLI.
	PulumiVersion string `json:"pulumiVersion,omitempty"`
	// Phases is how long each phase of the run took, in seconds, as far as it came.
	Phases map[string]float64 `json:"phases,omitempty"`
}

// Output is one output of a stack.
type Output struct {
	// Value as JSON, in clear even if secret.
	Value json.RawMessage `json:"value"`
	// Secret says that the value may be shown to nobody but in a Secret.
	Secret bool `json:"secret,omitempty"`
}

// Termination is what an agent leaves as its container's termination message,
// as JSON, in case that its report does not arrive. It holds no output.
type Termination struct {
	State   string `json:"state"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}
