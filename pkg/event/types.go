package event

// Types of Updraft's own events.
const (
	// TypeDue says: look at this object.
	TypeDue = "dev.updraft.due"
	// TypePing is the type of a PingSource's event, which an alarm is.
	TypePing = "dev.knative.sources.ping"

	// PrefixRun begins the types of events about a run.
	PrefixRun = "dev.updraft.run."
	// TypeRunTaken is an agent's first report: this pod takes the run.
	TypeRunTaken = "dev.updraft.run.taken"
	// TypeRunRunning is an agent's report that the operation has begun.
	TypeRunRunning = "dev.updraft.run.running"
	// TypeRunFinished is an agent's report of how the operation ended; sent by
	// the status function to the Broker, it tells other systems the same
	// without outputs.
	TypeRunFinished = "dev.updraft.run.finished"
	// TypeRunStarted tells other systems that a run began.
	TypeRunStarted = "dev.updraft.run.started"

	// TypeStackSucceeded tells other systems that an Update of a Stack succeeded.
	TypeStackSucceeded = "dev.updraft.stack.succeeded"
	// TypeStackFailed tells other systems that an Update of a Stack failed.
	TypeStackFailed = "dev.updraft.stack.failed"
	// TypeStackStalled tells other systems that a Stack needs a person.
	TypeStackStalled = "dev.updraft.stack.stalled"
	// TypeStackDrifted tells other systems that resources of a Stack were not as
	// they were left.
	TypeStackDrifted = "dev.updraft.stack.drifted"
	// TypeStackDeleted tells other systems that a Stack is let go of.
	TypeStackDeleted = "dev.updraft.stack.deleted"
)

// TypePush says: somebody pushed to this ref of this repository.
const TypePush = "dev.updraft.push"

// PrefixRequest begins the type of every request from outside; what is asked for
// follows. Only the gateway takes them.
const PrefixRequest = "dev.updraft.request."

// PrefixAPIServer begins the type of every event of an ApiServerSource in
// Reference mode.
const PrefixAPIServer = "dev.knative.apiserver.ref."

// Kinds of objects that events are about.
const (
	KindStack      = "Stack"
	KindProgram    = "Program"
	KindWorkspace  = "Workspace"
	KindUpdate     = "Update"
	KindJob        = "Job"
	KindPod        = "Pod"
	KindDeployment = "Deployment"
	// KindPoll is no object of ours: its name is a hash of a git repository, a
	// ref and where the credentials are, and stands for the Stacks of the
	// namespace that share them. It is the name of the PingSource that rings for
	// it. An alarm, or a due, of this kind asks which commit the ref names now.
	KindPoll = "Poll"
	// KindPush is no object of ours: its name is a hash of a git repository,
	// whatever its URL is spelt like, and a ref. It is the name of the alarm that
	// gathers pushes, and stands for the polls of all namespaces that ask for
	// these.
	KindPush = "Push"
	// KindSweep is no object: an alarm of this kind asks for a sweep.
	KindSweep = "Sweep"
)
