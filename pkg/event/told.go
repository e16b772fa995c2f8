package event

// What other systems are told, as data of events that go through the Broker:
// names, states, counts and links, and nothing that a program or a user wrote. A
// failure's message is in the status of the Stack and of the Update, where who may
// read it is decided.
//
// hack/events makes the schemas, the documentation and the EventTypes of these.

// Run names the run that an event tells of.
type Run struct {
	// Update is the name of the Update, in the namespace of the event's subject.
	Update string `json:"update" jsonschema:"minLength=1,example=app-19a7c3f0b2d"`
	// Type of the operation.
	Type string `json:"type" jsonschema:"enum=up,enum=preview,enum=refresh,enum=destroy"`
}

// Counts is what the run of an event came to in numbers, and where to read on.
type Counts struct {
	// Changes counts resources by what the operation did to each, in Pulumi's
	// words: create, update, delete, replace, same and others.
	Changes map[string]int64 `json:"changes,omitempty"`
	// Permalink to the operation in the state backend's console, if that has one.
	Permalink string `json:"permalink,omitempty"`
}

// RunStarted is the data of TypeRunStarted: the operation of an Update began.
type RunStarted struct {
	Run
	// Stack is the name of the Stack that the Update was made for. An Update that
	// was made by hand has none.
	Stack string `json:"stack,omitempty"`
}

// RunEnded is the data of TypeRunFinished as the Broker has it: the operation of
// an Update ended, or its pod did.
type RunEnded struct {
	Run
	// Stack is the name of the Stack that the Update was made for. An Update that
	// was made by hand has none.
	Stack string `json:"stack,omitempty"`
	// State in which the run ended.
	State string `json:"state" jsonschema:"enum=succeeded,enum=failed,enum=canceled"`
	// Reason of a run that did not succeed: one of the reasons of the runbook.
	Reason string `json:"reason,omitempty" jsonschema:"pattern=^[A-Z][A-Za-z]*$"`
	Counts
}

// StackSucceeded is the data of TypeStackSucceeded: an Update of the Stack did what
// it should.
type StackSucceeded struct {
	Run
	Counts
}

// StackFailed is the data of TypeStackFailed: an Update of the Stack failed or was
// cancelled. If it is not tried again, TypeStackStalled is told too.
type StackFailed struct {
	Run
	// State in which the run ended.
	State string `json:"state" jsonschema:"enum=failed,enum=canceled"`
	// Reason of the failure: one of the reasons of the runbook.
	Reason string `json:"reason" jsonschema:"pattern=^[A-Z][A-Za-z]*$"`
	Counts
}

// StackStalled is the data of TypeStackStalled: nothing more happens to the Stack
// until a person, or what it waits for, does something.
type StackStalled struct {
	// Reason of the Stack's condition Stalled: one of the reasons of the runbook.
	Reason string `json:"reason" jsonschema:"pattern=^[A-Z][A-Za-z]*$"`
	// Update whose end stalled the Stack, if one did.
	Update string `json:"update,omitempty"`
}

// StackDrifted is the data of TypeStackDrifted: resources were not as the last run
// left them, though nobody had asked for a change.
type StackDrifted struct {
	Run
	// Resources is how many were other. An operation of type up has put them right
	// again; a refresh has taken over what it found.
	Resources int64 `json:"resources" jsonschema:"minimum=1"`
	Counts
}

// StackDeleted is the data of TypeStackDeleted: the Stack is let go of.
type StackDeleted struct {
	// Destroyed says whether its resources were destroyed. They are kept if the
	// Stack has no destroyOnFinalize, or was released by annotation.
	Destroyed bool `json:"destroyed"`
}
