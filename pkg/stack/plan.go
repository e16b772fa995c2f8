package stack

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/run"
)

// updateTTL is how long a Stack's Updates are kept once they are Complete. The
// reference has the same.
const updateTTL = 24 * 60 * 60 // seconds

// Plan is what is made for a Stack to be run: in this order.
type Plan struct {
	// Wanted is what the Update is to stand for.
	Wanted For
	// Secret holds the secret values that the user wrote inline; nil if none.
	Secret *corev1.Secret
	// Workspace as it should be, with our finalizer.
	Workspace *autov1alpha1.Workspace
	// update as it should be but for its name and its Workspace.
	update *autov1alpha1.Update
}

// NewPlan makes a plan of a Stack. It fails, with a message for the user, if the
// templates do not have the form of what they are merged over. The same Stack
// and revision give the same plan, byte for byte.
func NewPlan(stack *pulumiv1.Stack, wanted For, why string) (*Plan, error) {
	secret := inlineSecret(stack)
	workspace, err := newWorkspace(stack, wanted, secret)
	if err != nil {
		return nil, err
	}
	update, err := newUpdate(stack, wanted, why)
	if err != nil {
		return nil, err
	}
	return &Plan{Wanted: wanted, Secret: secret, Workspace: workspace, update: update}, nil
}

// Update is the Update that a claim names, to run in the Workspace as a write
// answered it.
func (p *Plan) Update(name string, ws *autov1alpha1.Workspace) *autov1alpha1.Update {
	update := p.update.DeepCopy()
	update.Name = name
	update.Spec.WorkspaceName = ws.Name
	update.Annotations[pulumiv1.AnnotationWorkspace] = WorkspaceVersion(ws)
	if len(update.OwnerReferences) > 0 {
		yes := true
		update.OwnerReferences = append(update.OwnerReferences, metav1.OwnerReference{
			APIVersion: autov1alpha1.SchemeGroupVersion.String(), Kind: "Workspace",
			Name: ws.Name, UID: ws.UID, Controller: &yes,
		})
	}
	return update
}

// owners of what is made for a Stack: the Stack, unless it is being deleted.
// Foreground deletion would delete the Workspace and the Update of its destroy
// before the destroy was done.
func owners(stack *pulumiv1.Stack, controller bool) []metav1.OwnerReference {
	if deleting(stack) {
		return nil
	}
	ref := metav1.OwnerReference{APIVersion: pulumiv1.SchemeGroupVersion.String(), Kind: "Stack", Name: stack.Name, UID: stack.UID}
	if controller {
		yes := true
		ref.Controller = &yes
	}
	return []metav1.OwnerReference{ref}
}

func objectMeta(stack *pulumiv1.Stack, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:        name,
		Namespace:   stack.Namespace,
		Labels:      map[string]string{pulumiv1.LabelComponent: "stack", pulumiv1.LabelStackName: stack.Name},
		Annotations: map[string]string{pulumiv1.AnnotationStackUID: string(stack.UID)},
	}
}

func newUpdate(stack *pulumiv1.Stack, wanted For, why string) (*autov1alpha1.Update, error) {
	base := &autov1alpha1.Update{
		TypeMeta:   metav1.TypeMeta{APIVersion: autov1alpha1.SchemeGroupVersion.String(), Kind: "Update"},
		ObjectMeta: objectMeta(stack, ""),
		Spec: autov1alpha1.UpdateSpec{
			StackName:         stack.Spec.Stack,
			Type:              wanted.Type,
			Message:           &why,
			TtlAfterCompleted: &metav1.Duration{Duration: updateTTL * 1e9},
		},
	}
	if wanted.Type == autov1alpha1.DestroyType {
		base.Spec.RunProgram = truth(stack.Spec.RunProgram)
	} else {
		base.Spec.Target = stack.Spec.Targets
		base.Spec.TargetDependents = truth(stack.Spec.TargetDependents)
		base.Spec.Refresh = truth(stack.Spec.Refresh)
	}
	update, err := run.MergeUpdate(base, stack.Spec.UpdateTemplate)
	if err != nil {
		return nil, fmt.Errorf("updateTemplate: %w", err)
	}
	if wanted.Type == autov1alpha1.DestroyType || update.Spec.Type == "" {
		update.Spec.Type = wanted.Type // a deleted Stack may go only after a destroy
	}
	if update.Spec.Message == nil {
		update.Spec.Message = &why
	}
	update.TypeMeta, update.Status = base.TypeMeta, autov1alpha1.UpdateStatus{}
	seal(&update.ObjectMeta, base.ObjectMeta)
	update.Annotations[pulumiv1.AnnotationFor] = wanted.String()
	update.OwnerReferences = owners(stack, false)
	return update, nil
}

// seal leaves of merged metadata what a template may set, labels, annotations
// and finalizers, puts back what it may not change of these, and adds our
// finalizer.
func seal(merged *metav1.ObjectMeta, base metav1.ObjectMeta) {
	sealed := base
	sealed.Labels, sealed.Annotations = both(merged.Labels, base.Labels), both(merged.Annotations, base.Annotations)
	sealed.Finalizers = merged.Finalizers
	if !slices.Contains(sealed.Finalizers, pulumiv1.Finalizer) {
		sealed.Finalizers = append(sealed.Finalizers, pulumiv1.Finalizer)
	}
	*merged = sealed
}

// both holds all of a and b, and b's where both have a key.
func both(a, b map[string]string) map[string]string {
	all := make(map[string]string, len(a)+len(b))
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}

func newWorkspace(stack *pulumiv1.Stack, wanted For, secret *corev1.Secret) (*autov1alpha1.Workspace, error) {
	mounts := &mounts{}
	base := &autov1alpha1.Workspace{
		TypeMeta:   metav1.TypeMeta{APIVersion: autov1alpha1.SchemeGroupVersion.String(), Kind: "Workspace"},
		ObjectMeta: objectMeta(stack, stack.Name),
		Spec: autov1alpha1.WorkspaceSpec{
			ServiceAccountName: stack.Spec.ServiceAccountName,
			Env:                environment(stack),
		},
	}
	source(stack, wanted, &base.Spec)
	config := configuration(stack, secret, mounts)
	template, err := mounts.podTemplate()
	if err != nil {
		return nil, err
	}
	base.Spec.PodTemplate = template
	ws, err := run.MergeWorkspace(base, stack.Spec.WorkspaceTemplate)
	if err != nil {
		return nil, fmt.Errorf("workspaceTemplate: %w", err)
	}
	ws.TypeMeta, ws.Status = base.TypeMeta, autov1alpha1.WorkspaceStatus{}
	ws.Spec.EnvFrom = append(ws.Spec.EnvFrom, environmentFrom(stack)...)
	create := !stack.Spec.UseLocalStackOnly
	ws.Spec.Stacks = append(withoutStack(ws.Spec.Stacks, stack.Spec.Stack), autov1alpha1.WorkspaceStack{
		Name: stack.Spec.Stack, Create: &create, SecretsProvider: stack.Spec.SecretsProvider,
		Config: config, Environment: stack.Spec.Environment,
	})
	if ws.Spec.ServiceAccountName == "" {
		ws.Spec.ServiceAccountName = "default"
	}
	if ws.Spec.SecurityProfile == "" {
		ws.Spec.SecurityProfile = autov1alpha1.SecurityProfileRestricted
	}
	seal(&ws.ObjectMeta, base.ObjectMeta)
	ws.OwnerReferences = owners(stack, true)
	return ws, nil
}

func withoutStack(stacks []autov1alpha1.WorkspaceStack, name string) []autov1alpha1.WorkspaceStack {
	kept := make([]autov1alpha1.WorkspaceStack, 0, len(stacks)+1)
	for _, s := range stacks {
		if s.Name != name {
			kept = append(kept, s)
		}
	}
	return kept
}

func source(stack *pulumiv1.Stack, wanted For, spec *autov1alpha1.WorkspaceSpec) {
	switch {
	case Sourceless(stack):
		p := stack.Status.ProjectInfo
		spec.ProjectInfo = &autov1alpha1.ProjectInfo{Name: p.Name, Runtime: p.Runtime}
	case hasGit(stack):
		spec.Git = gitWorkspace(stack, wanted.Revision)
	case stack.Spec.ProgramRef != nil:
		generation, err := strconv.ParseInt(wanted.Revision, 10, 64)
		if err != nil {
			generation = 0 // the one found
		}
		spec.Program = &autov1alpha1.ProgramSource{Name: stack.Spec.ProgramRef.Name, Generation: generation}
	}
}

// hasSource says whether a run in the Workspace may find a project: one of a source,
// or one that an init container or a volume of the template brings.
func hasSource(ws *autov1alpha1.Workspace) bool {
	spec := &ws.Spec
	if spec.Git != nil || spec.Flux != nil || spec.Local != nil || spec.Program != nil || spec.ProjectInfo != nil {
		return true
	}
	var pod run.PodTemplate
	if spec.PodTemplate == nil || json.Unmarshal(spec.PodTemplate.Raw, &pod) != nil {
		return false
	}
	return len(pod.Spec.InitContainers) > 0 || slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return strings.HasPrefix(m.MountPath, projectFolder) })
	})
}

// projectFolder is where a run looks for its project.
const projectFolder = run.Root + "/" + run.WorkspaceLink

// inlineSecret holds the secret values that the user wrote into the Stack, so
// that they enter no other object. Its name tells its content and its Stack
// apart: one that an earlier Stack of the same name left is about to go. So is
// one that the Stack itself owns once it is being deleted, if in the foreground:
// its destroy has its own.
func inlineSecret(stack *pulumiv1.Stack) *corev1.Secret {
	data := map[string][]byte{}
	for key, value := range stack.Spec.Secrets {
		data[fileOf(key)] = []byte(value)
	}
	for key, ref := range stack.Spec.SecretRefs {
		if ref.SelectorType == pulumiv1.ResourceSelectorLiteral {
			data[fileOf(key)] = []byte(ref.LiteralRef.Value)
		}
	}
	if len(data) == 0 {
		return nil
	}
	content, err := json.Marshal(data)
	if err != nil {
		panic(err) // a map of bytes always encodes
	}
	content = append(content, stack.UID...)
	if deleting(stack) {
		content = append(content, "/destroy"...)
	}
	meta := objectMeta(stack, stack.Name+"-inline-"+hash(content))
	meta.OwnerReferences = owners(stack, true)
	immutable := true
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: meta, Immutable: &immutable, Type: corev1.SecretTypeOpaque, Data: data,
	}
}

// fileOf is a key of a Secret for a configuration key, which may have characters
// that the former may not.
func fileOf(key string) string { return "config-" + hash([]byte(key)) }

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:5])
}

func environment(stack *pulumiv1.Stack) []corev1.EnvVar {
	var env []corev1.EnvVar
	if stack.Spec.Backend != "" {
		env = append(env, corev1.EnvVar{Name: "PULUMI_BACKEND_URL", Value: stack.Spec.Backend})
	}
	if name := stack.Spec.AccessTokenSecret; name != "" {
		env = append(env, corev1.EnvVar{Name: "PULUMI_ACCESS_TOKEN", ValueFrom: secretKey(name, "accessToken")})
	}
	for _, key := range sortedKeys(stack.Spec.EnvRefs) {
		switch ref := stack.Spec.EnvRefs[key]; ref.SelectorType {
		case pulumiv1.ResourceSelectorLiteral:
			env = append(env, corev1.EnvVar{Name: key, Value: ref.LiteralRef.Value})
		case pulumiv1.ResourceSelectorSecret:
			env = append(env, corev1.EnvVar{Name: key, ValueFrom: secretKey(ref.SecretRef.Name, ref.SecretRef.Key)})
		case pulumiv1.ResourceSelectorEnv, pulumiv1.ResourceSelectorFS: // Validate refuses them
		}
	}
	return env
}

func secretKey(name, key string) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key,
	}}
}

func environmentFrom(stack *pulumiv1.Stack) []corev1.EnvFromSource {
	var from []corev1.EnvFromSource
	for _, name := range stack.Spec.Envs {
		from = append(from, corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}})
	}
	for _, name := range stack.Spec.SecretEnvs {
		from = append(from, corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}})
	}
	return from
}

// configuration of the stack, sorted by key: a later source of the same key
// takes the place of an earlier one, as in the reference.
func configuration(stack *pulumiv1.Stack, inline *corev1.Secret, m *mounts) []autov1alpha1.ConfigItem {
	items := map[string]autov1alpha1.ConfigItem{}
	yes := true
	for key, value := range stack.Spec.Config {
		items[key] = autov1alpha1.ConfigItem{Key: key, Value: &apiextensionsv1.JSON{Raw: value.Raw}}
	}
	for key, ref := range stack.Spec.ConfigRef {
		items[key] = autov1alpha1.ConfigItem{Key: key, ValueFrom: &autov1alpha1.ConfigValueFrom{Path: m.configMap(ref.Name, ref.Key), JSON: ref.JSON}}
	}
	for key := range stack.Spec.Secrets {
		items[key] = autov1alpha1.ConfigItem{Key: key, Secret: &yes, ValueFrom: &autov1alpha1.ConfigValueFrom{Path: m.secret(inline.Name, fileOf(key))}}
	}
	for key, ref := range stack.Spec.SecretRefs {
		var path string
		if ref.SelectorType == pulumiv1.ResourceSelectorLiteral {
			path = m.secret(inline.Name, fileOf(key))
		} else {
			path = m.secret(ref.SecretRef.Name, ref.SecretRef.Key)
		}
		items[key] = autov1alpha1.ConfigItem{Key: key, Secret: &yes, ValueFrom: &autov1alpha1.ConfigValueFrom{Path: path}}
	}
	config := make([]autov1alpha1.ConfigItem, 0, len(items))
	for _, key := range sortedKeys(items) {
		config = append(config, items[key])
	}
	return config
}

// mounts are the Secrets and ConfigMaps that configuration values are read from,
// by name.
type mounts struct {
	secrets, configMaps map[string]bool
}

func (m *mounts) secret(name, key string) string {
	if m.secrets == nil {
		m.secrets = map[string]bool{}
	}
	m.secrets[name] = true
	return "secrets/" + name + "/" + key
}

func (m *mounts) configMap(name, key string) string {
	if m.configMaps == nil {
		m.configMaps = map[string]bool{}
	}
	m.configMaps[name] = true
	return "configmaps/" + name + "/" + key
}

// podTemplate mounts them all below the share.
func (m *mounts) podTemplate() (*runtime.RawExtension, error) {
	if len(m.secrets)+len(m.configMaps) == 0 {
		return nil, nil
	}
	template := run.PodTemplate{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: run.Container}}}}
	add := func(volume, path string, from corev1.VolumeSource) {
		template.Spec.Volumes = append(template.Spec.Volumes, corev1.Volume{Name: volume, VolumeSource: from})
		c := &template.Spec.Containers[0]
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: run.Root + "/" + path, ReadOnly: true})
	}
	for _, name := range sortedKeys(m.configMaps) {
		add(volumeName("configmap-", name), "configmaps/"+name, corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}})
	}
	for _, name := range sortedKeys(m.secrets) {
		add(volumeName("secret-", name), "secrets/"+name, corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}})
	}
	raw, err := json.Marshal(template)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the pod template: %w", err)
	}
	return &runtime.RawExtension{Raw: raw}, nil
}

// volumeName is prefix and name, or a hash of it where a volume may not be named
// so.
func volumeName(prefix, name string) string {
	if v := prefix + name; len(validation.IsDNS1123Label(v)) == 0 {
		return v
	}
	return prefix + hash([]byte(name))
}

func truth(b bool) *bool {
	if !b {
		return nil
	}
	return &b
}

// SameSpec says whether two specs say the same, whatever the order of keys in
// their free-form parts.
func SameSpec(a, b *autov1alpha1.WorkspaceSpec) bool {
	var parsed [2]any
	for i, spec := range []*autov1alpha1.WorkspaceSpec{a, b} {
		text, err := json.Marshal(spec)
		if err != nil || json.Unmarshal(text, &parsed[i]) != nil {
			return false
		}
	}
	return equality.Semantic.DeepEqual(parsed[0], parsed[1])
}
