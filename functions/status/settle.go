package status

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/event"
	"github.com/updraft-dev/updraft/pkg/run"
)

// masked stands for a secret output wherever an output is shown. The reference
// has the same.
const masked = `"[secret]"`

// reasons that a run may give for a failure; any other is Unknown. Those that
// only its pod tells (run.OnlyFound) are not for it to give.
var reasons = map[autov1alpha1.ConditionReason]bool{
	autov1alpha1.ReasonUpdateFailed: true, autov1alpha1.ReasonUpdateConflict: true,
	autov1alpha1.ReasonInvalidAccessToken: true, autov1alpha1.ReasonPulumiVersionTooLow: true,
	autov1alpha1.ReasonWorkspaceFailed: true, autov1alpha1.ReasonCanceled: true,
	autov1alpha1.ReasonAborted: true, autov1alpha1.ReasonDeadlineExceeded: true,
	autov1alpha1.ReasonUnknown: true, autov1alpha1.ReasonOutOfMemory: true,
}

// settle puts what a run came to, by its own word, onto its Update: all that the
// fold needs, and no secret.
func settle(u *autov1alpha1.Update, f event.Finished, now metav1.Time) {
	if !reasons[autov1alpha1.ConditionReason(f.Reason)] {
		f.Reason = string(autov1alpha1.ReasonUnknown)
	}
	put(u, f, now)
}

// settleFound puts what was found of a run that did not report onto its Update.
func settleFound(u *autov1alpha1.Update, t event.Termination, now metav1.Time) {
	f := event.Finished{State: t.State, Reason: t.Reason, Message: t.Message}
	if run.OnlyFound(autov1alpha1.ConditionReason(t.Reason)) {
		put(u, f, now)
		return
	}
	settle(u, f, now)
}

// put settles an Update for a reason that is ours to give.
func put(u *autov1alpha1.Update, f event.Finished, now metav1.Time) {
	result := &autov1alpha1.UpdateResult{
		State: autov1alpha1.ResultState(f.State), Changes: f.Changes, Commit: f.Commit,
		Permalink: f.Permalink, PulumiVersion: f.PulumiVersion, Message: f.Message,
	}
	if f.Project != "" {
		result.ProjectInfo = &autov1alpha1.ProjectInfo{Name: f.Project, Runtime: f.Runtime}
	}
	if f.Outputs != nil {
		result.Outputs = maskedOutputs(f.Outputs)
		u.Status.Outputs = run.OutputsSecretName(u.Name)
	}
	u.Status.Permalink, u.Status.ProjectInfo, u.Status.Result = f.Permalink, result.ProjectInfo, result
	switch result.State {
	case autov1alpha1.ResultSucceeded:
		u.MarkSucceeded(now)
	case autov1alpha1.ResultCanceled:
		u.MarkFailed(now, autov1alpha1.ReasonCanceled, f.Message)
	default: // failed, or what only a forger says
		result.State = autov1alpha1.ResultFailed
		u.MarkFailed(now, autov1alpha1.ConditionReason(f.Reason), f.Message)
	}
}

func maskedOutputs(outputs map[string]event.Output) map[string]apiextensionsv1.JSON {
	shown := make(map[string]apiextensionsv1.JSON, len(outputs))
	for key, o := range byKey(outputs) {
		value := []byte(o.Value)
		if o.Secret {
			value = []byte(masked)
		}
		shown[key] = apiextensionsv1.JSON{Raw: value}
	}
	return shown
}

// byKey are outputs by the key that a Secret allows. Of several that have the
// same key one is kept, which is secret if any of them is.
func byKey(outputs map[string]event.Output) map[string]event.Output {
	kept := make(map[string]event.Output, len(outputs))
	for _, name := range slices.Sorted(maps.Keys(outputs)) {
		key, o := outputKey(name), outputs[name]
		if len(o.Value) == 0 {
			o.Value = json.RawMessage("null")
		}
		o.Secret = o.Secret || kept[key].Secret
		kept[key] = o
	}
	return kept
}

var notInKey = regexp.MustCompile(`[^-._a-zA-Z0-9]`)

// outputKey is an output's name as a Secret allows it as a key.
func outputKey(name string) string {
	key := notInKey.ReplaceAllString(name, "_")
	switch {
	case key == "":
		return "_"
	case key == ".", strings.HasPrefix(key, ".."): // these name folders
		return "_" + key[1:]
	default:
		return key
	}
}

// outputsSecret holds an Update's outputs in clear, each as JSON, in the shape
// of the reference.
func outputsSecret(u *autov1alpha1.Update, outputs map[string]event.Output) (*corev1.Secret, error) {
	data, secret := map[string][]byte{}, []string{}
	for key, o := range byKey(outputs) {
		data[key] = o.Value
		if o.Secret {
			secret = append(secret, key)
		}
	}
	slices.Sort(secret)
	marked, err := json.Marshal(secret)
	if err != nil {
		return nil, err
	}
	immutable, controller := true, true
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: run.OutputsSecretName(u.Name), Namespace: u.Namespace,
			Labels: map[string]string{
				"auto.pulumi.com/component":   "update",
				"auto.pulumi.com/update-name": u.Name,
				pulumiv1.LabelUpdate:          u.Name,
			},
			Annotations: map[string]string{pulumiv1.AnnotationSecretOutputs: string(marked)},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: autov1alpha1.SchemeGroupVersion.String(), Kind: "Update",
				Name: u.Name, UID: u.UID, Controller: &controller,
			}},
		},
		Immutable: &immutable, Type: corev1.SecretTypeOpaque, Data: data,
	}, nil
}
