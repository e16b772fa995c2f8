package run

import (
	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
)

// Places in a run's pod. All lie below the share, whose path is in the
// environment variable EnvRoot, and are given relative to it.
const (
	// EnvRoot names the share: /share in a pod, a folder in dev mode.
	EnvRoot = "UPDRAFT_ROOT"
	// EnvReportURL is where the agent reports to: the status function.
	EnvReportURL = "UPDRAFT_REPORT_URL"
	// EnvTerminationLog is the file of the termination message, if it is not
	// /dev/termination-log.
	EnvTerminationLog = "UPDRAFT_TERMINATION_LOG"
	// EnvTraceparent is the span that the run is below, as the Pulumi CLI reads it
	// too. A user's own wins.
	EnvTraceparent = "TRACEPARENT"
	// EnvTracesEndpoint and EnvTracesProtocol say where the agent sends spans. They
	// are not OpenTelemetry's own names, which are for the user and for programs.
	EnvTracesEndpoint = "UPDRAFT_TRACES_ENDPOINT"
	EnvTracesProtocol = "UPDRAFT_TRACES_PROTOCOL"
	// EnvPulumiEnv names a file of KEY=VALUE lines that init containers may
	// append to; they join the environment of the CLI.
	EnvPulumiEnv = "PULUMI_ENV"

	// Root is the share's mount path in a pod.
	Root = "/share"
	// AgentPath is where bootstrap puts the agent.
	AgentPath = "bin/agent"
	// SpecFolder is where the ConfigMap <update>-run is mounted.
	SpecFolder = "run"
	// SpecFile is the key of the ConfigMap that holds a Spec as JSON.
	SpecFile = "run.json"
	// ProgramFile is the key of the ConfigMap that holds a Program's
	// Pulumi.yaml.
	ProgramFile = "Pulumi.yaml"
	// SourceFolder is where bootstrap puts the source.
	SourceFolder = "source"
	// WorkspaceLink is a link to the folder that holds Pulumi.yaml.
	WorkspaceLink = "workspace"
	// TokenFile holds the pod's token for its report.
	TokenFile = "identity/token"
	// EnvFile is where EnvPulumiEnv points.
	EnvFile = ".env"

	// TokenAudience is the audience of the pod's token for its report.
	TokenAudience = "updraft"
)

// Spec is what a run is to do: the content of SpecFile. It holds no secret
// value, only where in the pod a secret value is found.
type Spec struct {
	// Namespace, Name and UID of the Update.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`

	// Source of the program.
	Source Source `json:"source"`
	// Operation to run.
	Operation Operation `json:"operation"`
	// Stack to run it on.
	Stack autov1alpha1.WorkspaceStack `json:"stack"`
	// LogVerbosity of the CLI; 0 is off.
	LogVerbosity int32 `json:"logVerbosity,omitempty"`
	// Ended are the processes of earlier runs of the same Workspace, each
	// proven to be gone: a stack lock that one of these holds is nobody's.
	Ended []autov1alpha1.LockHolder `json:"ended,omitempty"`
}

// Source of a program; exactly one field is set, or none if an init container
// of the user makes the workspace folder.
type Source struct {
	// Program says that ProgramFile is the program, of this name and
	// generation.
	Program *autov1alpha1.ProgramSource `json:"program,omitempty"`
	// Git is a git repository. Credentials are in the environment of the
	// container bootstrap alone.
	Git *autov1alpha1.GitSource `json:"git,omitempty"`
	// Flux is a Flux artifact.
	Flux *autov1alpha1.FluxSource `json:"flux,omitempty"`
	// Local is a folder of the image or of a volume.
	Local *autov1alpha1.LocalSource `json:"local,omitempty"`
	// ProjectInfo makes a Pulumi.yaml of a name and a runtime.
	ProjectInfo *autov1alpha1.ProjectInfo `json:"projectInfo,omitempty"`
}

// Operation is the part of an Update's spec that the CLI is told.
type Operation struct {
	Type             autov1alpha1.UpdateType `json:"type"`
	Parallel         *int32                  `json:"parallel,omitempty"`
	Message          string                  `json:"message,omitempty"`
	ExpectNoChanges  bool                    `json:"expectNoChanges,omitempty"`
	Replace          []string                `json:"replace,omitempty"`
	Target           []string                `json:"target,omitempty"`
	TargetDependents bool                    `json:"targetDependents,omitempty"`
	Refresh          bool                    `json:"refresh,omitempty"`
	ContinueOnError  bool                    `json:"continueOnError,omitempty"`
	Remove           bool                    `json:"remove,omitempty"`
	RunProgram       bool                    `json:"runProgram,omitempty"`
}

// ConfigMapName is the name of the ConfigMap that holds a run's Spec.
func ConfigMapName(update string) string { return update + "-run" }

// OutputsSecretName is the name of the Secret that holds an Update's outputs.
func OutputsSecretName(update string) string { return update + "-stack-outputs" }

// Phases of a run, in their order, as its spans and its report name them. Fetch is
// in a container of its own, before the others.
const (
	PhaseFetch        = "fetch"
	PhaseInstall      = "install"
	PhaseSelect       = "select"
	PhaseConfig       = "config"
	PhaseEnvironments = "environments"
	PhaseOperation    = "operation"
)

// Phases are all of them.
var Phases = []string{PhaseFetch, PhaseInstall, PhaseSelect, PhaseConfig, PhaseEnvironments, PhaseOperation}
