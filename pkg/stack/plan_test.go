package stack

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
	"github.com/updraft-dev/updraft/pkg/run"
)

var upAt7 = For{Generation: 2, Revision: revision, Type: autov1alpha1.UpType}

func planOf(t *testing.T, s *pulumiv1.Stack, wanted For) *Plan {
	t.Helper()
	plan, err := NewPlan(s, wanted, "Initial stack update")
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// answered is a Workspace as the API server answers its write.
func answered(ws *autov1alpha1.Workspace) *autov1alpha1.Workspace {
	ws = ws.DeepCopy()
	ws.UID, ws.Generation = "uid-of-workspace", 4
	return ws
}

func updateOf(t *testing.T, s *pulumiv1.Stack, wanted For) *autov1alpha1.Update {
	t.Helper()
	plan := planOf(t, s, wanted)
	return plan.Update(claimed, answered(plan.Workspace))
}

func yamlOf(t *testing.T, object any) string {
	t.Helper()
	text, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// rich is a Stack that uses what there is to use.
func rich(s *pulumiv1.Stack) {
	yes := true
	s.Spec.Backend, s.Spec.AccessTokenSecret = "s3://state", "account"
	s.Spec.Envs, s.Spec.SecretEnvs = []string{"more", "and-more"}, []string{"secrets"}
	withEnv("ZONE", literal("eu"))(s)
	withEnv("PASSPHRASE", secretRef("", "app", "passphrase"))(s)
	s.Spec.Config = map[string]apiextensionsv1.JSON{
		"b": jsonOf("two"), "a:n": {Raw: []byte(`{"z":1,"y":[true]}`)}, "c": jsonOf(3), "over": jsonOf("written"),
	}
	s.Spec.ConfigRef = map[string]pulumiv1.ConfigMapRef{
		"d": {Name: "settings", Key: "d.json", JSON: &yes}, "over": {Name: "settings", Key: "over"}, "e": {Name: "others", Key: "e"},
	}
	s.Spec.Secrets = map[string]string{"f": "hunter2", "over": "hunter3"}
	withSecretRef("aws:key", secretRef("team", "aws", "key"))(s)
	withSecretRef("g", literal("hunter4"))(s)
	s.Spec.Environment = []string{"org/base", "org/app"}
	s.Spec.SecretsProvider = "awskms://alias/x"
	s.Spec.ServiceAccountName = "deployer"
	s.Spec.Targets, s.Spec.TargetDependents, s.Spec.Refresh = []string{"urn:pulumi:dev::web::x"}, true, true
}

func TestTheWorkspaceOfARichStack(t *testing.T) {
	plan := planOf(t, aStack(rich), upAt7)
	inline := plan.Secret.Name
	want := `apiVersion: auto.pulumi.com/v1alpha1
kind: Workspace
metadata:
  annotations:
    updraft.dev/stack-uid: uid-of-app
  finalizers:
  - finalizer.stack.pulumi.com
  labels:
    pulumi.com/component: stack
    pulumi.com/stack-name: app
  name: app
  namespace: team
  ownerReferences:
  - apiVersion: pulumi.com/v1
    controller: true
    kind: Stack
    name: app
    uid: uid-of-app
spec:
  env:
  - name: PULUMI_BACKEND_URL
    value: s3://state
  - name: PULUMI_ACCESS_TOKEN
    valueFrom:
      secretKeyRef:
        key: accessToken
        name: account
  - name: PASSPHRASE
    valueFrom:
      secretKeyRef:
        key: passphrase
        name: app
  - name: ZONE
    value: eu
  envFrom:
  - configMapRef:
      name: more
  - configMapRef:
      name: and-more
  - secretRef:
      name: secrets
  podTemplate:
    metadata: {}
    spec:
      containers:
      - name: pulumi
        resources: {}
        volumeMounts:
        - mountPath: /share/configmaps/others
          name: configmap-others
          readOnly: true
        - mountPath: /share/configmaps/settings
          name: configmap-settings
          readOnly: true
        - mountPath: /share/secrets/` + inline + `
          name: secret-` + inline + `
          readOnly: true
        - mountPath: /share/secrets/aws
          name: secret-aws
          readOnly: true
      volumes:
      - configMap:
          name: others
        name: configmap-others
      - configMap:
          name: settings
        name: configmap-settings
      - name: secret-` + inline + `
        secret:
          secretName: ` + inline + `
      - name: secret-aws
        secret:
          secretName: aws
  program:
    generation: 7
    name: web
  resources: {}
  securityProfile: restricted
  serviceAccountName: deployer
  stacks:
  - config:
    - key: a:n
      value:
        "y":
        - true
        z: 1
    - key: aws:key
      secret: true
      valueFrom:
        path: secrets/aws/key
    - key: b
      value: two
    - key: c
      value: 3
    - key: d
      valueFrom:
        json: true
        path: configmaps/settings/d.json
    - key: e
      valueFrom:
        path: configmaps/others/e
    - key: f
      secret: true
      valueFrom:
        path: secrets/` + inline + `/` + fileOf("f") + `
    - key: g
      secret: true
      valueFrom:
        path: secrets/` + inline + `/` + fileOf("g") + `
    - key: over
      secret: true
      valueFrom:
        path: secrets/` + inline + `/` + fileOf("over") + `
    create: true
    environment:
    - org/base
    - org/app
    name: dev
    secretsProvider: awskms://alias/x
status: {}
`
	if diff := cmp.Diff(want, yamlOf(t, plan.Workspace)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTheUpdateOfARichStack(t *testing.T) {
	want := `apiVersion: auto.pulumi.com/v1alpha1
kind: Update
metadata:
  annotations:
    updraft.dev/for: '{"generation":2,"revision":"7","type":"up"}'
    updraft.dev/stack-uid: uid-of-app
    updraft.dev/workspace: uid-of-workspace/4
  finalizers:
  - finalizer.stack.pulumi.com
  labels:
    pulumi.com/component: stack
    pulumi.com/stack-name: app
  name: app-19cb6d0f8e0
  namespace: team
  ownerReferences:
  - apiVersion: pulumi.com/v1
    kind: Stack
    name: app
    uid: uid-of-app
  - apiVersion: auto.pulumi.com/v1alpha1
    controller: true
    kind: Workspace
    name: app
    uid: uid-of-workspace
spec:
  message: Initial stack update
  refresh: true
  stackName: dev
  target:
  - urn:pulumi:dev::web::x
  targetDependents: true
  ttlAfterCompleted: 24h0m0s
  type: up
  workspaceName: app
status:
  endTime: null
  startTime: null
`
	if diff := cmp.Diff(want, yamlOf(t, updateOf(t, aStack(rich), upAt7))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTheWorkspaceOfTheLeastStack(t *testing.T) {
	plan := planOf(t, aStack(func(s *pulumiv1.Stack) { s.Spec.ProgramRef = nil }), For{Generation: 2, Type: autov1alpha1.UpType})
	create := true
	want := autov1alpha1.WorkspaceSpec{
		ServiceAccountName: "default", SecurityProfile: autov1alpha1.SecurityProfileRestricted,
		Stacks: []autov1alpha1.WorkspaceStack{{Name: "dev", Create: &create, Config: []autov1alpha1.ConfigItem{}}},
	}
	if diff := cmp.Diff(want, plan.Workspace.Spec); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if plan.Secret != nil {
		t.Errorf("There is a Secret of no secret: %v", plan.Secret)
	}
}

func TestWhatAPlanSays(t *testing.T) {
	workspace := func(t *testing.T, edits ...edit) autov1alpha1.WorkspaceSpec {
		return planOf(t, aStack(edits...), upAt7).Workspace.Spec
	}
	t.Run("A stack that may only be selected is not created", func(t *testing.T) {
		spec := workspace(t, func(s *pulumiv1.Stack) { s.Spec.UseLocalStackOnly = true })
		if *spec.Stacks[0].Create {
			t.Error("create is true")
		}
	})
	t.Run("A destroy without source has the project that is known", func(t *testing.T) {
		spec := workspace(t, destroys, known, deleted)
		if spec.Program != nil || spec.ProjectInfo == nil || *spec.ProjectInfo != (autov1alpha1.ProjectInfo{Name: "web", Runtime: "yaml"}) {
			t.Errorf("program %v, projectInfo %v", spec.Program, spec.ProjectInfo)
		}
	})
	t.Run("A destroy keeps its configuration", func(t *testing.T) {
		spec := workspace(t, rich, destroys, known, deleted)
		if len(spec.Stacks[0].Config) != 9 || spec.PodTemplate == nil {
			t.Errorf("config = %v", spec.Stacks[0].Config)
		}
	})
	t.Run("A revision that is no generation names the Program found", func(t *testing.T) {
		plan := planOf(t, aStack(), For{Generation: 2, Revision: "odd", Type: autov1alpha1.UpType})
		if got := *plan.Workspace.Spec.Program; got != (autov1alpha1.ProgramSource{Name: "web"}) {
			t.Errorf("program = %v", got)
		}
	})
	t.Run("A preview looks at the same targets as an up", func(t *testing.T) {
		u := updateOf(t, aStack(rich, previews), For{Generation: 2, Type: autov1alpha1.PreviewType})
		if u.Spec.Type != autov1alpha1.PreviewType || u.Spec.Target == nil || u.Spec.Refresh == nil {
			t.Errorf("spec = %+v", u.Spec)
		}
	})
	t.Run("A destroy is told nothing but whether to run the program", func(t *testing.T) {
		u := updateOf(t, aStack(rich, destroys, runsProgram, deleted), For{Generation: 3, Type: autov1alpha1.DestroyType})
		if u.Spec.Target != nil || u.Spec.TargetDependents != nil || u.Spec.Refresh != nil || u.Spec.RunProgram == nil || !*u.Spec.RunProgram {
			t.Errorf("spec = %+v", u.Spec)
		}
	})
	t.Run("An up is not told to run the program", func(t *testing.T) {
		if u := updateOf(t, aStack(runsProgram), upAt7); u.Spec.RunProgram != nil {
			t.Error("runProgram is set")
		}
	})
	t.Run("What a deleted Stack makes has no owner", func(t *testing.T) {
		plan := planOf(t, aStack(rich, destroys, deleted), For{Generation: 3, Type: autov1alpha1.DestroyType})
		u := plan.Update(claimed, answered(plan.Workspace))
		if plan.Workspace.OwnerReferences != nil || u.OwnerReferences != nil || plan.Secret.OwnerReferences != nil {
			t.Errorf("owners: %v, %v, %v", plan.Workspace.OwnerReferences, u.OwnerReferences, plan.Secret.OwnerReferences)
		}
		if !MadeFor(u, stackUID) || !MadeFor(plan.Workspace, stackUID) {
			t.Error("It does not say which Stack it was made for")
		}
	})
	t.Run("A plan makes any number of Updates, each its own", func(t *testing.T) {
		plan := planOf(t, aStack(), upAt7)
		first := plan.Update("app-1", answered(plan.Workspace))
		second := plan.Update("app-2", answered(plan.Workspace))
		if first.Name != "app-1" || len(second.OwnerReferences) != 2 || first.Annotations[pulumiv1.AnnotationWorkspace] != "uid-of-workspace/4" {
			t.Errorf("first %+v, second %+v", first.ObjectMeta, second.ObjectMeta)
		}
	})
}

func TestAPlanIsTheSameByteForByte(t *testing.T) {
	text := func() []byte {
		plan := planOf(t, aStack(rich, func(s *pulumiv1.Stack) {
			s.Spec.WorkspaceTemplate = raw(`{"metadata":{"labels":{"b":"1","a":"2"}},"spec":{"env":[{"name":"X","value":"y"}],"podTemplate":{"spec":{"containers":[{"name":"side"},{"name":"pulumi","env":[{"name":"Z"}]}]}}}}`)
			s.Spec.UpdateTemplate = raw(`{"spec":{"parallel":4,"continueOnError":true}}`)
		}), upAt7)
		b, err := json.Marshal([]any{plan.Secret, plan.Workspace, plan.Update(claimed, answered(plan.Workspace))})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	first := text()
	for range 50 {
		if again := text(); !bytes.Equal(first, again) {
			t.Fatalf("first %s\nagain %s", first, again)
		}
	}
}

func TestNoInlineSecretLeavesItsSecret(t *testing.T) {
	s := aStack(rich)
	plan := planOf(t, s, upAt7)
	b, err := json.Marshal([]any{plan.Workspace, plan.Update(claimed, answered(plan.Workspace)), plan.Wanted, plan.Secret.ObjectMeta})
	if err != nil {
		t.Fatal(err)
	}
	// An overridden value is a secret all the same.
	for _, secret := range []string{"hunter2", "hunter3", "hunter4"} {
		for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret))} {
			if strings.Contains(string(b), form) {
				t.Errorf("%s is in %s", form, b)
			}
		}
	}
	want := map[string][]byte{fileOf("f"): []byte("hunter2"), fileOf("over"): []byte("hunter3"), fileOf("g"): []byte("hunter4")}
	if diff := cmp.Diff(want, plan.Secret.Data); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if plan.Secret.Immutable == nil || !*plan.Secret.Immutable || plan.Secret.Type != corev1.SecretTypeOpaque {
		t.Errorf("secret = %+v", plan.Secret)
	}
}

func TestTheNameOfAnInlineSecretTellsWhatItHolds(t *testing.T) {
	secret := func(key, value string) edit {
		return func(s *pulumiv1.Stack) { s.Spec.Secrets = map[string]string{key: value} }
	}
	name := func(edits ...edit) string { return planOf(t, aStack(edits...), upAt7).Secret.Name }
	base := name(secret("a", "1"))
	if len(validation.IsDNS1123Subdomain(base)) > 0 || !strings.HasPrefix(base, "app-inline-") {
		t.Errorf("name = %s", base)
	}
	if again := name(secret("a", "1"), ran()); again != base {
		t.Errorf("The same content has the names %s and %s", base, again)
	}
	for why, other := range map[string]string{
		"another value": name(secret("a", "2")),
		"another key":   name(secret("b", "1")),
		"one more":      name(secret("a", "1"), withSecretRef("b", literal("1"))),
		"another Stack": name(secret("a", "1"), func(s *pulumiv1.Stack) { s.UID = "uid-of-another" }),
		// It must not be the one that the Stack owns: a foreground deletion
		// deletes that one under the destroy.
		"its destroy": name(secret("a", "1"), destroys, deleted),
	} {
		if other == base {
			t.Errorf("With %s the name is the same", why)
		}
	}
	if got := name(withSecretRef("a", literal("1"))); got != base {
		t.Errorf("A literal of secretsRef is no inline secret like another: %s and %s", got, base)
	}
}

func TestVolumesAreNamedAsAVolumeMayBe(t *testing.T) {
	long := strings.Repeat("long-", 20) + "name"
	names := []string{"app", "app.v1", long, strings.Repeat("a", 56), strings.Repeat("a", 57)}
	s := aStack()
	for _, name := range names {
		withSecretRef(name, secretRef("", name, "key"))(s)
		if s.Spec.ConfigRef == nil {
			s.Spec.ConfigRef = map[string]pulumiv1.ConfigMapRef{}
		}
		s.Spec.ConfigRef["map-"+name] = pulumiv1.ConfigMapRef{Name: name, Key: "key"}
	}
	var template run.PodTemplate
	if err := json.Unmarshal(planOf(t, s, upAt7).Workspace.Spec.PodTemplate.Raw, &template); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, v := range template.Spec.Volumes {
		if problems := validation.IsDNS1123Label(v.Name); len(problems) > 0 || seen[v.Name] {
			t.Errorf("volume %s: seen %v, %v", v.Name, seen[v.Name], problems)
		}
		seen[v.Name] = true
	}
	if len(seen) != 2*len(names) || !seen["secret-app"] || !seen["configmap-app"] {
		t.Errorf("volumes = %v", seen)
	}
}

func TestTemplates(t *testing.T) {
	template := func(workspace, update string) *pulumiv1.Stack {
		return aStack(func(s *pulumiv1.Stack) {
			s.Spec.WorkspaceTemplate, s.Spec.UpdateTemplate = raw(workspace), raw(update)
			withEnv("A", literal("of the Stack"))(s)
			s.Spec.Envs = []string{"last"}
			withSecretRef("token", secretRef("", "app", "token"))(s)
		})
	}
	t.Run("A workspaceTemplate is merged, containers and variables by name", func(t *testing.T) {
		spec := planOf(t, template(`{"apiVersion":"auto.pulumi.com/v1alpha1","kind":"Workspace","spec":{
			"image":"mine","serviceAccountName":"other","securityProfile":"baseline","pulumiLogLevel":3,
			"env":[{"name":"B","value":"more"},{"name":"A","value":"of the template"}],
			"envFrom":[{"secretRef":{"name":"first"}}],
			"resources":{"limits":{"memory":"1Gi"}},
			"stacks":[{"name":"dev","config":[{"key":"lost","value":"x"}]},{"name":"kept","create":false}],
			"podTemplate":{"metadata":{"labels":{"team":"a"}},"spec":{
				"nodeSelector":{"disk":"ssd"},
				"containers":[{"name":"pulumi","volumeMounts":[{"name":"state","mountPath":"/share/state"}]},{"name":"proxy","image":"p"}],
				"volumes":[{"name":"state","persistentVolumeClaim":{"claimName":"state"}}]}}}}`, "{}"), upAt7).Workspace.Spec
		env := map[string]string{}
		for _, e := range spec.Env {
			env[e.Name] = e.Value
		}
		if diff := cmp.Diff(map[string]string{"A": "of the template", "B": "more"}, env); diff != "" {
			t.Errorf("env: %s", diff)
		}
		if spec.Image != "mine" || spec.ServiceAccountName != "other" || spec.SecurityProfile != "baseline" || spec.PulumiLogVerbosity != 3 {
			t.Errorf("spec = %+v", spec)
		}
		if len(spec.EnvFrom) != 2 || spec.EnvFrom[0].SecretRef == nil || spec.EnvFrom[1].ConfigMapRef.Name != "last" {
			t.Errorf("envFrom = %+v", spec.EnvFrom)
		}
		if len(spec.Stacks) != 2 || spec.Stacks[0].Name != "kept" || len(spec.Stacks[1].Config) != 1 || spec.Stacks[1].Config[0].Key != "token" {
			t.Errorf("stacks = %+v", spec.Stacks)
		}
		var pod run.PodTemplate
		if err := json.Unmarshal(spec.PodTemplate.Raw, &pod); err != nil {
			t.Fatal(err)
		}
		if len(pod.Spec.Containers) != 2 || len(pod.Spec.Volumes) != 2 || pod.Spec.NodeSelector["disk"] != "ssd" || pod.Metadata.Labels["team"] != "a" {
			t.Errorf("podTemplate = %s", spec.PodTemplate.Raw)
		}
		for _, c := range pod.Spec.Containers {
			if c.Name == run.Container && len(c.VolumeMounts) != 2 {
				t.Errorf("mounts = %+v", c.VolumeMounts)
			}
		}
	})
	t.Run("An updateTemplate is merged, the type too", func(t *testing.T) {
		u := updateOf(t, template("{}", `{"spec":{"type":"refresh","parallel":4,"ttlAfterCompleted":"1h","timeout":"2h","continueOnError":true,
			"replace":["urn"],"expectNoChanges":true,"remove":true,"message":"Mine","stackName":"other"}}`), upAt7)
		if u.Spec.Type != autov1alpha1.RefreshType || *u.Spec.Parallel != 4 || u.Spec.TtlAfterCompleted.Hours() != 1 || u.Spec.Timeout.Hours() != 2 ||
			!*u.Spec.ContinueOnError || u.Spec.Replace[0] != "urn" || !*u.Spec.ExpectNoChanges || !*u.Spec.Remove || *u.Spec.Message != "Mine" || u.Spec.StackName != "other" {
			t.Errorf("spec = %+v", u.Spec)
		}
	})
	t.Run("A destroy is one whatever the updateTemplate says", func(t *testing.T) {
		s := template("{}", `{"spec":{"type":"preview","remove":true}}`)
		destroys(s)
		deleted(s)
		u := updateOf(t, s, For{Generation: 3, Type: autov1alpha1.DestroyType})
		if u.Spec.Type != autov1alpha1.DestroyType || !*u.Spec.Remove {
			t.Errorf("spec = %+v", u.Spec)
		}
	})
	t.Run("A template cannot change what an object is, nor take what makes it ours", func(t *testing.T) {
		meta := `{"apiVersion":"v2","kind":"Odd","metadata":{"name":"other","namespace":"kube-system","generateName":"g","uid":"u","resourceVersion":"5",
			"finalizers":["finalizer.stack.pulumi.com","mine.example.com/x"],"labels":{"pulumi.com/stack-name":"other","mine":"1"},
			"annotations":{"updraft.dev/stack-uid":"other","mine":"1"},
			"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"x"}],"deletionTimestamp":"2026-01-01T00:00:00Z"},
			"status":{"observedGeneration":9}%s}`
		s := template(strings.Replace(meta, "%s", "", 1), strings.Replace(meta, "%s", `,"spec":{"workspaceName":"other"}`, 1))
		s.Spec.UpdateTemplate.Raw = bytes.Replace(s.Spec.UpdateTemplate.Raw, []byte(`"updraft.dev/stack-uid":"other"`), []byte(`"updraft.dev/for":"{}","updraft.dev/workspace":"x"`), 1)
		plan := planOf(t, s, upAt7)
		u := plan.Update(claimed, answered(plan.Workspace))
		clean := planOf(t, template("{}", "{}"), upAt7)
		wantWorkspace, wantUpdate := clean.Workspace, clean.Update(claimed, answered(clean.Workspace))
		for _, o := range []metav1.Object{wantWorkspace, wantUpdate} {
			o.GetLabels()["mine"], o.GetAnnotations()["mine"] = "1", "1"
			o.SetFinalizers([]string{"finalizer.stack.pulumi.com", "mine.example.com/x"})
		}
		if diff := cmp.Diff(wantWorkspace, plan.Workspace); diff != "" {
			t.Errorf("Workspace: -want +got:\n%s", diff)
		}
		if diff := cmp.Diff(wantUpdate, u); diff != "" {
			t.Errorf("Update: -want +got:\n%s", diff)
		}
	})
	t.Run("A template that takes away what is there leaves what is ours", func(t *testing.T) {
		none := `{"metadata":{"labels":null,"annotations":null,"finalizers":null},"spec":{"message":null,"type":null,"serviceAccountName":null}}`
		plan := planOf(t, template(strings.Replace(none, `"message":null,"type":null,`, "", 1), strings.Replace(none, `,"serviceAccountName":null`, "", 1)), upAt7)
		u := plan.Update(claimed, answered(plan.Workspace))
		if !MadeFor(u, stackUID) || u.Annotations[pulumiv1.AnnotationFor] == "" || !hasFinalizer(u) || u.Labels[pulumiv1.LabelStackName] != "app" {
			t.Errorf("metadata = %+v", u.ObjectMeta)
		}
		if u.Spec.Message == nil || *u.Spec.Message != "Initial stack update" {
			t.Errorf("message = %v", u.Spec.Message)
		}
		if u.Spec.Type != autov1alpha1.UpType {
			t.Errorf("type = %q", u.Spec.Type)
		}
	})
	t.Run("Directives of a strategic merge are no fields", func(t *testing.T) {
		spec := planOf(t, template(`{"spec":{"env":[{"name":"A","$patch":"delete"}],"podTemplate":{"spec":{"$setElementOrder/containers":[{"name":"pulumi"}],
			"containers":[{"name":"pulumi"}],"volumes":[{"$patch":"replace"},{"name":"only","emptyDir":{}}]}}}}`, "{}"), upAt7).Workspace.Spec
		var pod run.PodTemplate
		if err := json.Unmarshal(spec.PodTemplate.Raw, &pod); err != nil {
			t.Fatal(err)
		}
		if len(spec.Env) != 0 || len(pod.Spec.Volumes) != 1 || pod.Spec.Volumes[0].Name != "only" {
			t.Errorf("env %v, volumes %v", spec.Env, pod.Spec.Volumes)
		}
	})
	t.Run("A field that is none is refused by its name", func(t *testing.T) {
		_, err := NewPlan(template(`{"spec":{"Image":"x"}}`, "{}"), upAt7, "why")
		if err == nil || !strings.Contains(err.Error(), `workspaceTemplate: `) || !strings.Contains(err.Error(), `"spec.Image"`) {
			t.Errorf("error = %v", err)
		}
	})
}

func TestSameSpec(t *testing.T) {
	spec := func(template string) *autov1alpha1.WorkspaceSpec {
		return &autov1alpha1.WorkspaceSpec{Image: "x", PodTemplate: raw(template)}
	}
	cases := map[string]struct {
		a, b *autov1alpha1.WorkspaceSpec
		want bool
	}{
		"The order of keys does not count": {spec(`{"a":1,"b":{"c":2,"d":3}}`), spec(`{ "b": {"d":3,"c":2}, "a":1 }`), true},
		"The order of a list counts":       {spec(`{"a":[1,2]}`), spec(`{"a":[2,1]}`), false},
		"A value counts":                   {spec(`{"a":1}`), spec(`{"a":2}`), false},
		"Nothing is like nothing":          {&autov1alpha1.WorkspaceSpec{}, &autov1alpha1.WorkspaceSpec{Env: []corev1.EnvVar{}}, true},
		"What cannot be read is like none": {spec(`{`), spec(`{`), false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := SameSpec(c.a, c.b); got != c.want {
				t.Errorf("SameSpec = %v", got)
			}
		})
	}
}
