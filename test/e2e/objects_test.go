//go:build e2e

package e2e

import (
	"strings"
	"testing"
)

// TestAProgramMakesRealObjects runs the Kubernetes provider as the Stack's
// ServiceAccount, which may do what its Role says and nothing else.
func TestAProgramMakesRealObjects(t *testing.T) {
	if testing.Short() {
		t.Skip("an image with the Kubernetes provider: make e2e-long")
	}
	t.Parallel()
	s := newSpace(t)
	s.apply(`
apiVersion: v1
kind: ServiceAccount
metadata: {name: deployer}
---
apiVersion: pulumi.com/v1
kind: Program
metadata: {name: objects}
program:
  configuration: {colour: {type: String, default: red}}
  resources:
    settings:
      type: kubernetes:core/v1:ConfigMap
      properties:
        metadata: {name: settings}
        data: {colour: "${colour}"}
  outputs: {name: "${settings.metadata.name}"}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: state}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 100Mi}}}
`)
	s.apply(s.stackOf("app", `
programRef: {name: objects}
serviceAccountName: deployer
destroyOnFinalize: true
retryMaxBackoffDurationSeconds: 5
workspaceTemplate:
  spec:
    podTemplate:
      spec:
        containers: [{name: pulumi, volumeMounts: [{name: state, mountPath: /share/state}]}]
        volumes: [{name: state, persistentVolumeClaim: {claimName: state}}]
`))
	s.awaitReason(patience, "app", "RetryingAfterFailure", "forbidden")
	s.apply(`
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: deployer}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, list, watch, create, update, patch, delete]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: deployer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: deployer}
subjects: [{kind: ServiceAccount, name: deployer}]
`)
	colour := func() string { return s.kubectl("get", "configmap", "settings", "-o", "jsonpath={.data.colour}") }
	s.awaitReady("app")
	if got := colour(); got != "red" {
		t.Errorf("the ConfigMap says %q", got)
	}
	s.kubectl("patch", "stack", "app", "--type", "merge", "-p", `{"spec":{"config":{"colour":"blue"}}}`)
	s.awaitReady("app")
	if got := colour(); got != "blue" {
		t.Errorf("after the change the ConfigMap says %q", got)
	}
	s.kubectl("delete", "stack", "app", "--wait=false")
	s.awaitGone("app")
	if left := s.kubectl("get", "configmaps", "-o", "name"); strings.Contains(left, "settings") {
		t.Errorf("after the destroy there is %s", left)
	}
}
