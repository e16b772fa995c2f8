package run

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
)

// Names in a run's pod.
const (
	// Container is the name of the container that runs the CLI.
	Container = "pulumi"
	// Bootstrap is the name of our init container.
	Bootstrap = "bootstrap"
	// AgentCommand is where the agent is in our image.
	AgentCommand = "/ko-app/agent"
)

const (
	// DefaultImage has the CLI; the reference's default too.
	DefaultImage = "pulumi/pulumi:latest-nonroot"
	// DefaultImageBaseline has the CLI, for the baseline profile.
	DefaultImageBaseline = "pulumi/pulumi:latest"
	// DefaultTimeout is how long a run may take before it is asked to stop.
	DefaultTimeout = time.Hour
	// grace is how long a run has to stop: the longest resource operation that a
	// graceful cancel waits for. The reference has the same.
	grace = 10 * time.Minute
	// tokenExpiry is how long a pod's token for its report is valid; the kubelet
	// renews it.
	tokenExpiry = time.Hour
	// jobTTL deletes a Job that nobody else did.
	jobTTL = 24 * time.Hour
	// nonroot is the user and group of the image's user; the reference's too.
	nonroot = 1000
)

// Settings of an installation that a Job depends on.
type Settings struct {
	// AgentImage is our image, with the agent.
	AgentImage string
	// ReportURL is where the agent reports to.
	ReportURL string
	// RunImage is the image of a Workspace that names none; "" for the
	// reference's default.
	RunImage string
	// Timeout of an Update that names none; 0 for DefaultTimeout.
	Timeout time.Duration
	// Traces says where runs send spans.
	Traces Traces
	// Traceparent is the span that launches the run, as W3C writes it; "" if there
	// is none. It changes nothing else of a Job.
	Traceparent string
}

// Traces says where a run sends its spans.
type Traces struct {
	// Endpoint is the URL that spans are posted to, or the address of a gRPC
	// receiver; "" for none.
	Endpoint string
	// Protocol is http/protobuf or grpc.
	Protocol string
}

// Job is the run of an Update in a Workspace. It fails, with a message for the
// user, if the Workspace's pod template cannot be merged.
func Job(update *autov1alpha1.Update, ws *autov1alpha1.Workspace, s Settings) (*batchv1.Job, error) {
	pod, err := mergePod(basePod(update, ws, s), ws.Spec.PodTemplate)
	if err != nil {
		return nil, fmt.Errorf("podTemplate: %w", err)
	}
	arrange(&pod, update)
	var (
		none     = int32(0)
		one      = int32(1)
		deadline = int64(timeout(update, s) / time.Second)
		ttl      = int32(jobTTL / time.Second)
		replace  = batchv1.Failed
	)
	return &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: ownedBy(update, update.Name),
		Spec: batchv1.JobSpec{
			Parallelism: &one, Completions: &one, BackoffLimit: &none,
			PodReplacementPolicy: &replace, ActiveDeadlineSeconds: &deadline,
			TTLSecondsAfterFinished: &ttl, Template: pod,
		},
	}, nil
}

func timeout(update *autov1alpha1.Update, s Settings) time.Duration {
	switch {
	case update.Spec.Timeout != nil && update.Spec.Timeout.Duration >= time.Second:
		return update.Spec.Timeout.Duration
	case s.Timeout >= time.Second:
		return s.Timeout
	default:
		return DefaultTimeout
	}
}

// ownedBy is the metadata of what an Update owns.
func ownedBy(update *autov1alpha1.Update, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: update.Namespace,
		Labels: map[string]string{pulumiv1.LabelUpdate: update.Name},
		OwnerReferences: []metav1.OwnerReference{
			controllerRef(update, "Update"),
		},
	}
}

// OwnedByUpdate says whether an object's controller is this very Update.
func OwnedByUpdate(object metav1.Object, update *autov1alpha1.Update) bool {
	owner := metav1.GetControllerOf(object)
	return owner != nil && owner.UID == update.UID
}

func basePod(update *autov1alpha1.Update, ws *autov1alpha1.Workspace, s Settings) corev1.PodTemplateSpec {
	seconds := int64(grace / time.Second)
	restricted := ws.Spec.SecurityProfile != autov1alpha1.SecurityProfileBaseline
	pod := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{pulumiv1.LabelUpdate: update.Name}},
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyNever,
			ServiceAccountName:            ws.Spec.ServiceAccountName,
			TerminationGracePeriodSeconds: &seconds,
			SecurityContext:               podSecurity(restricted),
			Volumes:                       volumes(update),
			InitContainers:                []corev1.Container{bootstrap(ws, s, restricted)},
			Containers:                    []corev1.Container{pulumi(ws, s, restricted)},
		},
	}
	return pod
}

func volumes(update *autov1alpha1.Update) []corev1.Volume {
	seconds := int64(tokenExpiry / time.Second)
	return []corev1.Volume{
		{Name: "share", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "run", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: ConfigMapName(update.Name)},
		}}},
		{Name: "identity", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
				Audience: TokenAudience, ExpirationSeconds: &seconds, Path: "token",
			}}},
		}}},
	}
}

func bootstrap(ws *autov1alpha1.Workspace, s Settings, restricted bool) corev1.Container {
	return corev1.Container{
		Name:    Bootstrap,
		Image:   s.AgentImage,
		Command: []string{AgentCommand, "init"},
		Env:     append(traceEnvironment(s, ws.Spec.Env), gitEnvironment(ws.Spec.Git)...),
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("64Mi"),
			corev1.ResourceEphemeralStorage: resource.MustParse("64Mi"),
		}},
		VolumeMounts: []corev1.VolumeMount{
			{Name: "share", MountPath: Root},
			{Name: "run", MountPath: Root + "/" + SpecFolder, ReadOnly: true},
		},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext:          containerSecurity(restricted),
	}
}

func pulumi(ws *autov1alpha1.Workspace, s Settings, restricted bool) corev1.Container {
	return corev1.Container{
		Name:            Container,
		Image:           image(ws, s),
		ImagePullPolicy: ws.Spec.ImagePullPolicy,
		Command:         []string{"$(" + EnvRoot + ")/" + AgentPath, "run"},
		WorkingDir:      Root,
		Env:             slices.Concat([]corev1.EnvVar{{Name: EnvReportURL, Value: s.ReportURL}}, traceEnvironment(s, ws.Spec.Env), ws.Spec.Env),
		EnvFrom:         ws.Spec.EnvFrom,
		Resources:       ws.Spec.Resources,
		VolumeMounts: []corev1.VolumeMount{
			{Name: "share", MountPath: Root},
			{Name: "run", MountPath: Root + "/" + SpecFolder, ReadOnly: true},
			{Name: "identity", MountPath: Root + "/identity", ReadOnly: true},
		},
		SecurityContext: containerSecurity(restricted),
	}
}

// traceEnvironment tells the agent of the trace that the run is a part of, if
// that is kept, and where its spans go. A user's own trace wins.
func traceEnvironment(s Settings, users []corev1.EnvVar) []corev1.EnvVar {
	if s.Traces.Endpoint == "" || !strings.HasSuffix(s.Traceparent, "-01") {
		return nil
	}
	env := []corev1.EnvVar{{Name: EnvTracesEndpoint, Value: s.Traces.Endpoint}, {Name: EnvTracesProtocol, Value: s.Traces.Protocol}}
	if !slices.ContainsFunc(users, func(e corev1.EnvVar) bool { return e.Name == EnvTraceparent }) {
		env = append(env, corev1.EnvVar{Name: EnvTraceparent, Value: s.Traceparent})
	}
	return env
}

func image(ws *autov1alpha1.Workspace, s Settings) string {
	switch {
	case ws.Spec.Image != "":
		return ws.Spec.Image
	case s.RunImage != "":
		return s.RunImage
	case ws.Spec.SecurityProfile == autov1alpha1.SecurityProfileBaseline:
		return DefaultImageBaseline
	default:
		return DefaultImage
	}
}

// requested fills in what the reference requests, and storage, for want of which
// pods were evicted there. A limit, of a template too, is not exceeded.
func requested(r corev1.ResourceRequirements) corev1.ResourceRequirements {
	if r.Requests == nil {
		r.Requests = corev1.ResourceList{}
	}
	for name, quantity := range map[corev1.ResourceName]string{
		corev1.ResourceMemory: "64Mi", corev1.ResourceCPU: "100m", corev1.ResourceEphemeralStorage: "256Mi",
	} {
		if _, ok := r.Requests[name]; ok {
			continue
		}
		wanted := resource.MustParse(quantity)
		if limit, ok := r.Limits[name]; ok && limit.Cmp(wanted) < 0 {
			wanted = limit
		}
		r.Requests[name] = wanted
	}
	return r
}

func podSecurity(restricted bool) *corev1.PodSecurityContext {
	c := &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
	if restricted {
		yes, id := true, int64(nonroot)
		c.RunAsNonRoot, c.RunAsUser, c.RunAsGroup, c.FSGroup = &yes, &id, &id, &id
	}
	return c
}

func containerSecurity(restricted bool) *corev1.SecurityContext {
	if !restricted {
		return nil
	}
	no := false
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: &no,
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

// arrange puts our init container first and turns a template's other containers
// into sidecars, so that they end with the run. It puts our label back, and
// completes what a merge may have reordered or changed.
func arrange(pod *corev1.PodTemplateSpec, update *autov1alpha1.Update) {
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[pulumiv1.LabelUpdate] = update.Name
	var first, others []corev1.Container
	for _, c := range pod.Spec.InitContainers {
		if c.Name == Bootstrap {
			first = append(first, c)
		} else {
			others = append(others, c)
		}
	}
	always := corev1.ContainerRestartPolicyAlways
	var kept []corev1.Container
	for _, c := range pod.Spec.Containers {
		if c.Name == Container {
			c.Resources = requested(c.Resources)
			kept = append(kept, c)
			continue
		}
		c.RestartPolicy = &always
		others = append(others, c)
	}
	pod.Spec.InitContainers = slices.Concat(first, others)
	pod.Spec.Containers = kept
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			containers[i].Env = environment(containers[i].Env)
		}
	}
}

// environment of a container, with the share's place first, so that the values
// after it may refer to it, and with the file that adds to the CLI's environment,
// unless another is named.
func environment(env []corev1.EnvVar) []corev1.EnvVar {
	own := []corev1.EnvVar{{Name: EnvRoot, Value: Root}}
	named := func(name string) func(corev1.EnvVar) bool {
		return func(e corev1.EnvVar) bool { return e.Name == name }
	}
	if !slices.ContainsFunc(env, named(EnvPulumiEnv)) {
		own = append(own, corev1.EnvVar{Name: EnvPulumiEnv, Value: "$(" + EnvRoot + ")/" + EnvFile})
	}
	return append(own, slices.DeleteFunc(env, named(EnvRoot))...)
}

// SpecConfigMap is what the run of an Update is told. The program is nil unless
// the Workspace's source is a Program.
func SpecConfigMap(update *autov1alpha1.Update, ws *autov1alpha1.Workspace, program *pulumiv1.Program, ended []autov1alpha1.LockHolder) (*corev1.ConfigMap, error) {
	spec := Spec{
		Namespace: update.Namespace, Name: update.Name, UID: string(update.UID),
		Source: Source{
			Program: ws.Spec.Program, Git: ws.Spec.Git, Flux: ws.Spec.Flux,
			Local: ws.Spec.Local, ProjectInfo: ws.Spec.ProjectInfo,
		},
		Operation:    operation(&update.Spec),
		Stack:        stackOf(ws, update.Spec.StackName),
		LogVerbosity: ws.Spec.PulumiLogVerbosity,
		Ended:        ended,
	}
	for _, item := range spec.Stack.Config {
		if item.Secret != nil && *item.Secret && item.Value != nil {
			return nil, fmt.Errorf("workspace %s: config %s: a secret value may not be written inline; keep it in a Secret and use valueFrom", ws.Name, item.Key)
		}
	}
	data := map[string]string{}
	if program != nil {
		text, err := ProgramText(program)
		if err != nil {
			return nil, err
		}
		data[ProgramFile] = text
		spec.Source.Program = &autov1alpha1.ProgramSource{Name: program.Name, Generation: program.Generation}
	}
	text, err := json.MarshalIndent(spec, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("cannot encode the run of Update %s: %w", update.Name, err)
	}
	data[SpecFile] = string(text)
	immutable := true
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: ownedBy(update, ConfigMapName(update.Name)),
		Immutable:  &immutable, Data: data,
	}, nil
}

func operation(spec *autov1alpha1.UpdateSpec) Operation {
	is := func(b *bool) bool { return b != nil && *b }
	o := Operation{
		Type: spec.Type, Parallel: spec.Parallel, ExpectNoChanges: is(spec.ExpectNoChanges),
		Replace: spec.Replace, Target: spec.Target, TargetDependents: is(spec.TargetDependents),
		Refresh: is(spec.Refresh), ContinueOnError: is(spec.ContinueOnError),
		Remove: is(spec.Remove), RunProgram: is(spec.RunProgram),
	}
	if spec.Message != nil {
		o.Message = *spec.Message
	}
	return o
}

func stackOf(ws *autov1alpha1.Workspace, name string) autov1alpha1.WorkspaceStack {
	for _, s := range ws.Spec.Stacks {
		if s.Name == name {
			return s
		}
	}
	return autov1alpha1.WorkspaceStack{Name: name}
}

// ProgramText is the Pulumi.yaml of a Program: its name, the runtime yaml and
// its body. The project has the Program's name, as in the reference.
func ProgramText(program *pulumiv1.Program) (string, error) {
	text, err := yaml.Marshal(struct {
		Name    string `json:"name"`
		Runtime string `json:"runtime"`
		pulumiv1.ProgramSpec
	}{program.Name, "yaml", program.Program})
	if err != nil {
		return "", fmt.Errorf("cannot encode Program %s: %w", program.Name, err)
	}
	return strings.TrimSpace(string(text)) + "\n", nil
}

func controllerRef(object metav1.Object, kind string) metav1.OwnerReference {
	yes := true
	return metav1.OwnerReference{
		APIVersion: autov1alpha1.SchemeGroupVersion.String(), Kind: kind,
		Name: object.GetName(), UID: object.GetUID(), Controller: &yes,
	}
}
