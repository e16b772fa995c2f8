package run

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
)

// FuzzTemplates merges what a user may write: it is merged or refused with a
// word, and never more than that.
func FuzzTemplates(f *testing.F) {
	for _, seed := range []string{
		`{}`, `null`, `[]`, `"x"`, `{`, `{"spec":null}`, `{"spec":[]}`, `{"metadata":{"labels":{"a":1}}}`,
		`{"spec":{"image":"x","env":[{"name":"A","value":"b"}]}}`,
		`{"spec":{"env":[{"value":"b"}]}}`, `{"spec":{"env":[null]}}`, `{"spec":{"env":[{"name":"A","$patch":"delete"}]}}`,
		`{"$patch":"delete"}`, `{"$patch":"odd"}`, `{"$retainKeys":["x"]}`, `{"$retainKeys":1}`, `{"$retainKeys":[{}]}`, `{"spec":{"podTemplate":{"spec":{"$retainKeys":[[]]}}}}`, `{"spec":{"$setElementOrder/env":[{"name":"A"}]}}`,
		`{"spec":{"$setElementOrder/env":1}}`, `{"spec":{"$deleteFromPrimitiveList/stacks":[1]}}`, `{"spec":{"$deleteFromPrimitiveList/x":{}}}`,
		`{"spec":{"podTemplate":{"spec":{"containers":[{"name":"pulumi","resources":{"limits":{"cpu":"x"}}}]}}}}`,
		`{"spec":{"podTemplate":{"spec":{"containers":[{"name":"pulumi","ports":[{"containerPort":80}]}],"volumes":[{"$patch":"replace"}]}}}}`,
		`{"spec":{"stacks":[{"name":"dev","config":[{"key":"a","value":{"b":[1]}}]}]}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		template := &runtime.RawExtension{Raw: []byte(text)}
		base := aWorkspace(podTemplate(`{"spec":{"containers":[{"name":"pulumi","volumeMounts":[{"name":"x","mountPath":"/share/x"}]}],"volumes":[{"name":"x","emptyDir":{}}]}}`))
		ws, err := MergeWorkspace(base, template)
		if err != nil && err.Error() == "" {
			t.Error("It is refused without a word")
		}
		if err == nil {
			_, _ = Job(madeUpdate(), ws, settings)
		}
		_, _ = MergeUpdate(madeUpdate(), template)
		_, _ = Job(madeUpdate(), aWorkspace(func(ws *autov1alpha1.Workspace) { ws.Spec.PodTemplate = template }), settings)
	})
}
