package run

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	kjson "sigs.k8s.io/json"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
)

// PodTemplate is a Workspace's podTemplate as it is understood.
type PodTemplate struct {
	Metadata EmbeddedMetadata `json:"metadata"`
	Spec     corev1.PodSpec   `json:"spec"`
}

// EmbeddedMetadata is the part of a pod's metadata that a template may set.
type EmbeddedMetadata struct {
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// typedWorkspace is a Workspace whose pod template is typed, so that a strategic
// merge knows how to merge its lists.
type typedWorkspace struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              typedWorkspaceSpec           `json:"spec"`
	Status            autov1alpha1.WorkspaceStatus `json:"status"`
}

type typedWorkspaceSpec struct {
	autov1alpha1.WorkspaceSpec `json:",inline"`
	PodTemplate                *PodTemplate `json:"podTemplate,omitempty"`
}

// MergeWorkspace merges a template over a Workspace by the rules of a strategic
// merge patch. It fails for a template that has not the form of a Workspace.
func MergeWorkspace(ws *autov1alpha1.Workspace, template *runtime.RawExtension) (*autov1alpha1.Workspace, error) {
	merged := &autov1alpha1.Workspace{}
	return merged, merge(ws, template, &typedWorkspace{}, merged)
}

// MergeUpdate merges a template over an Update by the rules of a strategic merge
// patch. It fails for a template that has not the form of an Update.
func MergeUpdate(update *autov1alpha1.Update, template *runtime.RawExtension) (*autov1alpha1.Update, error) {
	merged := &autov1alpha1.Update{}
	err := merge(update, template, &autov1alpha1.Update{}, merged)
	return merged, err
}

// mergePod merges a Workspace's pod template over a pod.
func mergePod(pod corev1.PodTemplateSpec, template *runtime.RawExtension) (corev1.PodTemplateSpec, error) {
	merged := corev1.PodTemplateSpec{}
	err := merge(&pod, template, &corev1.PodTemplateSpec{}, &merged)
	return merged, err // in two steps: Go may read merged before it calls merge
}

// merge merges a template over base, as the type of typed, into out.
func merge(base any, template *runtime.RawExtension, typed, out any) error {
	original, err := json.Marshal(base)
	if err != nil {
		return fmt.Errorf("cannot encode what a template is merged over: %w", err)
	}
	if template == nil || len(template.Raw) == 0 {
		return json.Unmarshal(original, out)
	}
	if err := decodeStrict(template.Raw, typed); err != nil {
		return err
	}
	patched, err := patch(original, template.Raw, typed)
	if err != nil {
		return fmt.Errorf("cannot merge: %w", err)
	}
	if err := json.Unmarshal(patched, out); err != nil {
		return fmt.Errorf("cannot decode what the merge gave: %w", err)
	}
	return nil
}

// patch is a strategic merge that a directive of a form it does not expect, as
// "$retainKeys": [{}], does not bring down.
func patch(original, template []byte, typed any) (patched []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("a directive of a strategic merge patch has the wrong form: %v", r)
		}
	}()
	return strategicpatch.StrategicMergePatch(original, template, typed)
}

// decodeStrict decodes a patch and refuses what is no field.
func decodeStrict(raw []byte, into any) error {
	stripped, err := withoutDirectives(raw)
	if err != nil {
		return err
	}
	problems, err := kjson.UnmarshalStrict(stripped, into)
	if err != nil {
		return fmt.Errorf("cannot decode: %w", err)
	}
	if len(problems) > 0 {
		return fmt.Errorf("cannot decode: %w", problems[0])
	}
	return nil
}

// withoutDirectives drops the keys of a strategic merge patch that are no
// fields ($patch, $setElementOrder/..., $deleteFromPrimitiveList/..., $retainKeys).
func withoutDirectives(raw []byte) ([]byte, error) {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return nil, fmt.Errorf("cannot decode: %w", err)
	}
	return json.Marshal(strip(value))
}

func strip(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, field := range v {
			if len(key) > 0 && key[0] == '$' {
				delete(v, key)
				continue
			}
			v[key] = strip(field)
		}
	case []any:
		for i := range v {
			v[i] = strip(v[i])
		}
	}
	return value
}
