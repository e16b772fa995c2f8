package install_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/updraft-dev/updraft/config"
	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	"github.com/updraft-dev/updraft/pkg/local/controlplane"
	"github.com/updraft-dev/updraft/pkg/local/controlplane/planetest"
	"github.com/updraft-dev/updraft/pkg/run"
)

var (
	stacks      = schema.GroupVersionResource{Group: "pulumi.com", Version: "v1", Resource: "stacks"}
	updates     = schema.GroupVersionResource{Group: "auto.pulumi.com", Version: "v1alpha1", Resource: "updates"}
	pingSources = schema.GroupVersionResource{Group: "sources.knative.dev", Version: "v1", Resource: "pingsources"}
)

// account is what a function may, under the rights and policies of config/.
type account struct {
	dynamic dynamic.Interface
	client  kubernetes.Interface
}

func as(t *testing.T, plane *controlplane.Plane, name string) account {
	t.Helper()
	c := rest.CopyConfig(plane.Config)
	c.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:updraft-system:" + name,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:updraft-system", "system:authenticated"},
	}
	return account{dynamic: must(dynamic.NewForConfig(c)), client: must(kubernetes.NewForConfig(c))}
}

func adminOf(plane *controlplane.Plane) account {
	return account{dynamic: must(dynamic.NewForConfig(plane.Config)), client: must(kubernetes.NewForConfig(plane.Config))}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// theStack has what a user may write and Go's types would lose: an empty list.
const theStack = `{"apiVersion":"pulumi.com/v1","kind":"Stack","metadata":{"name":"app","namespace":"default",
"labels":{"team":"a"},"annotations":{"team":"a","updraft.dev/x":"1"},"finalizers":["example.com/theirs"]},
"spec":{"stack":"dev","programRef":{"name":"app"},"envs":[]}}`

// TestWhatAFunctionMayDoAndMayNot holds 210-admission.yaml: what RBAC lets
// through, the policies refuse.
func TestWhatAFunctionMayDoAndMayNot(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, config.Files); err != nil {
		t.Fatal(err)
	}
	plane := planetest.Start(t, filepath.Join(dir, "100-crds"))
	for _, file := range []string{"100-namespace.yaml", "200-accounts.yaml", "200-rights.yaml", "210-admission.yaml"} {
		if err := plane.Apply(t.Context(), filepath.Join(dir, file)); err != nil {
			t.Fatal(err)
		}
	}
	admin := adminOf(plane)
	for name, labels := range map[string]map[string]string{"knative-serving": nil, "kube-mine": nil, "closed": {"updraft.dev/runs": "refused"}} {
		_, err := admin.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	stack := &unstructured.Unstructured{}
	if err := stack.UnmarshalJSON([]byte(theStack)); err != nil {
		t.Fatal(err)
	}
	stack = must(admin.dynamic.Resource(stacks).Namespace("default").Create(t.Context(), stack, metav1.CreateOptions{}))
	foreign := job("default", "foreign", nil)
	if _, err := admin.client.BatchV1().Jobs("default").Create(t.Context(), foreign, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	gateway := as(t, plane, "updraft-gateway")
	brain, launcher, status := as(t, plane, "updraft-stack"), as(t, plane, "updraft-update"), as(t, plane, "updraft-status")
	planetest.Eventually(t, "the policies are in force", func() error {
		if err := create(t.Context(), launcher, job("kube-mine", "canary", nil)); !apierrors.IsInvalid(err) {
			return fmt.Errorf("the answer is: %v", err)
		}
		return nil
	})
	patch := func(who account, body string) error {
		_, err := who.dynamic.Resource(stacks).Namespace("default").Patch(t.Context(), "app", types.MergePatchType, []byte(body), metav1.PatchOptions{})
		return err
	}
	for what, c := range map[string]struct {
		do      func() error
		refused string // "" if it must pass
	}{
		"the finalizer and an annotation of ours": {do: func() error {
			return patch(brain, `{"metadata":{"finalizers":["example.com/theirs","finalizer.stack.pulumi.com"],"annotations":{"pulumi.com/reconciliation-request":"2"}}}`)
		}},
		"the spec":          {do: func() error { return patch(brain, `{"spec":{"stack":"prod"}}`) }, refused: "spec"},
		"the spec, emptied": {do: func() error { return patch(brain, `{"spec":{"envs":null}}`) }, refused: "spec"},
		"a label":           {do: func() error { return patch(brain, `{"metadata":{"labels":{"team":"b"}}}`) }, refused: "labels"},
		"an owner": {do: func() error {
			return patch(brain, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"y"}]}}`)
		}, refused: "owners"},
		"another annotation":      {do: func() error { return patch(brain, `{"metadata":{"annotations":{"team":"b"}}}`) }, refused: "annotations"},
		"another annotation gone": {do: func() error { return patch(brain, `{"metadata":{"annotations":{"team":null}}}`) }, refused: "annotations"},
		"a new annotation":        {do: func() error { return patch(brain, `{"metadata":{"annotations":{"example.com/x":"b"}}}`) }, refused: "annotations"},
		"another finalizer":       {do: func() error { return patch(brain, `{"metadata":{"finalizers":["finalizer.stack.pulumi.com"]}}`) }, refused: "finalizers"},
		"an admin's spec":         {do: func() error { return patch(admin, `{"spec":{"refresh":true},"metadata":{"labels":{"team":"c"}}}`) }},

		"what a request asks": {do: func() error {
			return patch(gateway, `{"metadata":{"annotations":{"pulumi.com/reconciliation-request":"3","updraft.dev/cancel":"x","updraft.dev/requests":"x","updraft.dev/requested-by":"x","updraft.dev/traceparent":"x"}}}`)
		}},
		"a request that lets go": {do: func() error { return patch(gateway, `{"metadata":{"annotations":{"updraft.dev/let-go":"true"}}}`) }, refused: "ask for something"},
		"a request that forgets": {do: func() error { return patch(gateway, `{"metadata":{"annotations":{"updraft.dev/x":null}}}`) }, refused: "ask for something"},
		"a request with a finalizer": {do: func() error {
			if err := patch(admin, `{"metadata":{"finalizers":["example.com/theirs"]}}`); err != nil {
				return err
			}
			return patch(gateway, `{"metadata":{"finalizers":["example.com/theirs","finalizer.stack.pulumi.com"]}}`)
		}, refused: "The gateway may not change a Stack's finalizers"},
		"a request for another spec": {do: func() error { return patch(gateway, `{"spec":{"stack":"prod"}}`) }, refused: "spec"},
		"an Update that is asked for": {do: func() error {
			return update(t.Context(), gateway, metav1.ObjectMeta{Annotations: map[string]string{"updraft.dev/request": "x", "updraft.dev/requested-by": "y", "updraft.dev/traceparent": "z"}})
		}},
		"an Update that nobody asked for": {do: func() error { return update(t.Context(), gateway, metav1.ObjectMeta{}) }, refused: "by hand"},
		"an Update made for a Stack": {do: func() error {
			return update(t.Context(), gateway, metav1.ObjectMeta{Annotations: map[string]string{"updraft.dev/request": "x", "updraft.dev/stack-uid": "1"}})
		}, refused: "by hand"},
		"an Update with a label": {do: func() error {
			return update(t.Context(), gateway, metav1.ObjectMeta{Annotations: map[string]string{"updraft.dev/request": "x"}, Labels: map[string]string{"a": "b"}})
		}, refused: "by hand"},
		"an Update of an owner": {do: func() error {
			return update(t.Context(), gateway, metav1.ObjectMeta{Annotations: map[string]string{"updraft.dev/request": "x"}, OwnerReferences: []metav1.OwnerReference{stackRef(stack)}})
		}, refused: "by hand"},
		"an admin's Update": {do: func() error {
			return update(t.Context(), admin, metav1.ObjectMeta{Labels: map[string]string{"a": "b"}})
		}},

		"the Job of an Update": {do: func() error { return create(t.Context(), launcher, job("default", "run", of("run"))) }},
		"a Job of nothing":     {do: func() error { return create(t.Context(), launcher, job("default", "x", nil)) }, refused: "controller is an Update"},
		"a Job of a Stack": {do: func() error {
			o := of("x")
			o.Kind = "Stack"
			return create(t.Context(), launcher, job("default", "x", o))
		}, refused: "controller is an Update"},
		"a Job of another's Update": {do: func() error {
			o := of("x")
			o.APIVersion = "example.com/v1"
			return create(t.Context(), launcher, job("default", "x", o))
		}, refused: "controller is an Update"},
		"a Job of an Update's that is no controller": {do: func() error {
			o := of("x")
			o.Controller = nil
			return create(t.Context(), launcher, job("default", "x", o))
		}, refused: "controller is an Update"},
		"a second Job of an Update":           {do: func() error { return create(t.Context(), launcher, job("default", "x", of("run"))) }, refused: "name of its Update"},
		"a Job in kube-system":                {do: func() error { return create(t.Context(), launcher, job("kube-system", "x", of("x"))) }, refused: "runs nothing in namespace kube-system"},
		"a Job beside Knative":                {do: func() error { return create(t.Context(), launcher, job("knative-serving", "x", of("x"))) }, refused: "runs nothing"},
		"a Job beside the functions":          {do: func() error { return create(t.Context(), launcher, job("updraft-system", "x", of("x"))) }, refused: "runs nothing"},
		"a Job in a namespace that is closed": {do: func() error { return create(t.Context(), launcher, job("closed", "x", of("x"))) }, refused: "runs nothing"},
		"a Job that is tried twice": {do: func() error {
			j := job("default", "x", of("x"))
			j.Spec.BackoffLimit = nil
			return create(t.Context(), launcher, j)
		}, refused: "started once"},
		"the deletion of another's Job": {do: func() error {
			return status.client.BatchV1().Jobs("default").Delete(t.Context(), "foreign", metav1.DeleteOptions{})
		}, refused: "controller is an Update"},
		"an admin's Job": {do: func() error { return create(t.Context(), admin, job("kube-system", "x", nil)) }},

		"the Secret of a Stack": {do: func() error { return secret(t.Context(), brain, corev1.SecretTypeOpaque, stackRef(stack)) }},
		"a Secret of nothing":   {do: func() error { return secret(t.Context(), brain, corev1.SecretTypeOpaque) }, refused: "owns"},
		"a token": {do: func() error {
			return secret(t.Context(), brain, corev1.SecretTypeServiceAccountToken, stackRef(stack))
		}, refused: "Opaque"},
		"a ConfigMap of nothing": {do: func() error {
			_, err := launcher.client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{})
			return err
		}, refused: "owns"},
		"an alarm of a Stack": {do: func() error { return ping(t.Context(), brain, "x", stackRef(stack)) }},
		"an alarm of nothing": {do: func() error { return ping(t.Context(), brain, "y") }, refused: "owns"},
		"an alarm that gathers pushes": {do: func() error {
			return pingIn(t.Context(), as(t, plane, "updraft-source"), "updraft-system", "updraft-push-1")
		}},
		"another alarm of nothing":   {do: func() error { return pingIn(t.Context(), as(t, plane, "updraft-source"), "updraft-system", "x") }, refused: "owns"},
		"one that gathers elsewhere": {do: func() error { return pingIn(t.Context(), as(t, plane, "updraft-source"), "default", "updraft-push-1") }, refused: "owns"},
		"another's PingSource, deleted": {do: func() error {
			if err := ping(t.Context(), admin, "theirs"); err != nil {
				return err
			}
			return brain.dynamic.Resource(pingSources).Namespace("default").Delete(t.Context(), "theirs", metav1.DeleteOptions{})
		}, refused: "owns"},
	} {
		t.Run(strings.ReplaceAll(what, " ", "-"), func(t *testing.T) {
			err := c.do()
			switch {
			case c.refused == "" && err != nil:
				t.Errorf("it is refused: %v", err)
			case c.refused != "" && err == nil:
				t.Error("it passes")
			case c.refused != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), c.refused)):
				t.Errorf("it is refused for another reason than %q: %v", c.refused, err)
			}
		})
	}
	t.Run("its own Job, deleted", func(t *testing.T) {
		err := status.client.BatchV1().Jobs("default").Delete(t.Context(), "run", metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
}

func update(ctx context.Context, who account, meta metav1.ObjectMeta) error {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "auto.pulumi.com/v1alpha1", "kind": "Update", "spec": map[string]any{"workspaceName": "app", "stackName": "dev", "type": "preview"},
	}}
	u.SetGenerateName("u-")
	u.SetAnnotations(meta.Annotations)
	u.SetLabels(meta.Labels)
	u.SetOwnerReferences(meta.OwnerReferences)
	_, err := who.dynamic.Resource(updates).Namespace("default").Create(ctx, u, metav1.CreateOptions{})
	return err
}

// of is the reference that makes an Update the controller of its Job.
func of(update string) *metav1.OwnerReference {
	yes := true
	return &metav1.OwnerReference{APIVersion: autov1alpha1.SchemeGroupVersion.String(), Kind: "Update", Name: update, UID: "1", Controller: &yes}
}

func stackRef(s *unstructured.Unstructured) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "pulumi.com/v1", Kind: "Stack", Name: s.GetName(), UID: s.GetUID()}
}

// job is a run as pkg/run makes it.
func job(namespace, name string, owner *metav1.OwnerReference) *batchv1.Job {
	update := &autov1alpha1.Update{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, UID: "1"}}
	j := must(run.Job(update, &autov1alpha1.Workspace{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}, run.Settings{AgentImage: "agent"}))
	j.OwnerReferences = nil
	if owner != nil {
		j.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	return j
}

func create(ctx context.Context, who account, j *batchv1.Job) error {
	_, err := who.client.BatchV1().Jobs(j.Namespace).Create(ctx, j, metav1.CreateOptions{DryRun: dry(j.Name)})
	return err
}

// dry leaves out what need not be there.
func dry(name string) []string {
	if name == "run" {
		return nil
	}
	return []string{metav1.DryRunAll}
}

func secret(ctx context.Context, who account, kind corev1.SecretType, owners ...metav1.OwnerReference) error {
	_, err := who.client.CoreV1().Secrets("default").Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "s-", OwnerReferences: owners, Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"}}, Type: kind,
	}, metav1.CreateOptions{})
	return err
}

func ping(ctx context.Context, who account, name string, owners ...metav1.OwnerReference) error {
	return pingIn(ctx, who, "default", name, owners...)
}

func pingIn(ctx context.Context, who account, namespace, name string, owners ...metav1.OwnerReference) error {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "sources.knative.dev/v1", "kind": "PingSource", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"schedule": "* * * * *", "sink": map[string]any{"uri": "http://localhost"}},
	}}
	o.SetOwnerReferences(owners)
	_, err := who.dynamic.Resource(pingSources).Namespace(namespace).Create(ctx, o, metav1.CreateOptions{})
	return err
}
