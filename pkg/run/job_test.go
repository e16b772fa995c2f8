package run

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	pulumiv1 "github.com/updraft-dev/updraft/pkg/apis/pulumi/v1"
)

var settings = Settings{AgentImage: "example.com/agent:v1", ReportURL: "http://status.updraft-system.svc"}

func jobOf(t *testing.T, ws *autov1alpha1.Workspace) *batchv1.Job {
	t.Helper()
	job, err := Job(madeUpdate(), ws, settings)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func yamlOf(t *testing.T, object any) string {
	t.Helper()
	text, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func containerOf(t *testing.T, pod corev1.PodSpec, name string) corev1.Container {
	t.Helper()
	for _, c := range append(pod.InitContainers, pod.Containers...) {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("there is no container %s in %+v", name, pod)
	return corev1.Container{}
}

func names(containers []corev1.Container) []string {
	var all []string
	for _, c := range containers {
		all = append(all, c.Name)
	}
	return all
}

func TestAJob(t *testing.T) {
	want := `apiVersion: batch/v1
kind: Job
metadata:
  labels:
    updraft.dev/update: app-1
  name: app-1
  namespace: team
  ownerReferences:
  - apiVersion: auto.pulumi.com/v1alpha1
    controller: true
    kind: Update
    name: app-1
    uid: uid-of-app-1
spec:
  activeDeadlineSeconds: 3600
  backoffLimit: 0
  completions: 1
  parallelism: 1
  podReplacementPolicy: Failed
  template:
    metadata:
      labels:
        updraft.dev/update: app-1
    spec:
      containers:
      - command:
        - $(UPDRAFT_ROOT)/bin/agent
        - run
        env:
        - name: UPDRAFT_ROOT
          value: /share
        - name: PULUMI_ENV
          value: $(UPDRAFT_ROOT)/.env
        - name: UPDRAFT_REPORT_URL
          value: http://status.updraft-system.svc
        - name: PULUMI_BACKEND_URL
          value: s3://state
        envFrom:
        - configMapRef:
            name: more
        image: pulumi/pulumi:latest-nonroot
        name: pulumi
        resources:
          requests:
            cpu: 100m
            ephemeral-storage: 256Mi
            memory: 64Mi
        securityContext:
          allowPrivilegeEscalation: false
          capabilities:
            drop:
            - ALL
        volumeMounts:
        - mountPath: /share
          name: share
        - mountPath: /share/run
          name: run
          readOnly: true
        - mountPath: /share/identity
          name: identity
          readOnly: true
        workingDir: /share
      initContainers:
      - command:
        - /ko-app/agent
        - init
        env:
        - name: UPDRAFT_ROOT
          value: /share
        - name: PULUMI_ENV
          value: $(UPDRAFT_ROOT)/.env
        image: example.com/agent:v1
        name: bootstrap
        resources:
          requests:
            cpu: 50m
            ephemeral-storage: 64Mi
            memory: 64Mi
        securityContext:
          allowPrivilegeEscalation: false
          capabilities:
            drop:
            - ALL
        terminationMessagePolicy: FallbackToLogsOnError
        volumeMounts:
        - mountPath: /share
          name: share
        - mountPath: /share/run
          name: run
          readOnly: true
      restartPolicy: Never
      securityContext:
        fsGroup: 1000
        runAsGroup: 1000
        runAsNonRoot: true
        runAsUser: 1000
        seccompProfile:
          type: RuntimeDefault
      serviceAccountName: deployer
      terminationGracePeriodSeconds: 600
      volumes:
      - emptyDir: {}
        name: share
      - configMap:
          name: app-1-run
        name: run
      - name: identity
        projected:
          sources:
          - serviceAccountToken:
              audience: updraft
              expirationSeconds: 3600
              path: token
  ttlSecondsAfterFinished: 86400
status: {}
`
	job := jobOf(t, aWorkspace(func(ws *autov1alpha1.Workspace) {
		ws.Spec.Env = []corev1.EnvVar{{Name: "PULUMI_BACKEND_URL", Value: "s3://state"}}
		ws.Spec.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "more"}}}}
	}))
	if diff := cmp.Diff(want, yamlOf(t, job)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !OwnedByUpdate(job, madeUpdate()) || OwnedByUpdate(job, handMadeUpdate(func(u *autov1alpha1.Update) { u.UID = "uid-of-another" })) {
		t.Error("It is not told whose Job it is")
	}
}

func TestAJobIsTheSameByteForByte(t *testing.T) {
	text := func() []byte {
		ws := aWorkspace(podTemplate(`{"metadata":{"annotations":{"b":"1","a":"2"}},"spec":{"nodeSelector":{"b":"1","a":"2"},
			"initContainers":[{"name":"plugins","image":"x"}],"containers":[{"name":"proxy","image":"p"},{"name":"pulumi","env":[{"name":"X","value":"$(UPDRAFT_ROOT)/x"}]}]}}`))
		ws.Spec.Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")}
		config, err := SpecConfigMap(madeUpdate(), ws, aProgram(7), nil)
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal([]any{jobOf(t, ws), config})
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

func TestTheDeadlineOfAJob(t *testing.T) {
	for name, c := range map[string]struct {
		update, installation time.Duration
		want                 int64
	}{
		"The default":                        {0, 0, 3600},
		"The installation's":                 {0, 30 * time.Minute, 1800},
		"The Update's own":                   {2 * time.Hour, 30 * time.Minute, 7200},
		"A part of a second does not count":  {90*time.Second + 900*time.Millisecond, 0, 90},
		"Less than a second is none":         {time.Millisecond, 30 * time.Minute, 1800},
		"A negative one is none":             {-time.Hour, -time.Hour, 3600},
		"Less than a second is no setting's": {0, time.Millisecond, 3600},
	} {
		u := madeUpdate(func(u *autov1alpha1.Update) {
			if c.update != 0 {
				u.Spec.Timeout = &metav1.Duration{Duration: c.update}
			}
		})
		job, err := Job(u, aWorkspace(), Settings{Timeout: c.installation})
		if err != nil {
			t.Fatal(err)
		}
		if got := *job.Spec.ActiveDeadlineSeconds; got != c.want {
			t.Errorf("%s: %d", name, got)
		}
	}
}

func TestTheImageOfARun(t *testing.T) {
	for name, c := range map[string]struct {
		workspace, installation string
		profile                 autov1alpha1.SecurityProfile
		want                    string
	}{
		"The reference's":              {"", "", "restricted", "pulumi/pulumi:latest-nonroot"},
		"The reference's for baseline": {"", "", "baseline", "pulumi/pulumi:latest"},
		"The installation's":           {"", "ours", "baseline", "ours"},
		"The Workspace's own":          {"mine", "ours", "restricted", "mine"},
	} {
		ws := aWorkspace(func(ws *autov1alpha1.Workspace) {
			ws.Spec.Image, ws.Spec.SecurityProfile, ws.Spec.ImagePullPolicy = c.workspace, c.profile, corev1.PullAlways
		})
		job, err := Job(madeUpdate(), ws, Settings{RunImage: c.installation})
		if err != nil {
			t.Fatal(err)
		}
		got := job.Spec.Template.Spec.Containers[0]
		if got.Image != c.want || got.ImagePullPolicy != corev1.PullAlways {
			t.Errorf("%s: %s, %s", name, got.Image, got.ImagePullPolicy)
		}
	}
}

func TestTheSecurityOfARun(t *testing.T) {
	for profile, restricted := range map[autov1alpha1.SecurityProfile]bool{"restricted": true, "": true, "odd": true, "baseline": false} {
		pod := jobOf(t, aWorkspace(func(ws *autov1alpha1.Workspace) { ws.Spec.SecurityProfile = profile })).Spec.Template.Spec
		if pod.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Errorf("profile %q: seccomp %+v", profile, pod.SecurityContext.SeccompProfile)
		}
		if got := pod.SecurityContext.RunAsNonRoot != nil && *pod.SecurityContext.RunAsNonRoot; got != restricted {
			t.Errorf("profile %q: runAsNonRoot %v", profile, got)
		}
		for _, c := range append(pod.InitContainers, pod.Containers...) {
			s := c.SecurityContext
			if got := s != nil && !*s.AllowPrivilegeEscalation && s.Capabilities.Drop[0] == "ALL" && s.Capabilities.Add == nil; got != restricted {
				t.Errorf("profile %q, container %s: %+v", profile, c.Name, s)
			}
		}
	}
}

func TestTheRequestsOfARun(t *testing.T) {
	list := func(pairs ...string) corev1.ResourceList {
		if len(pairs) == 0 {
			return nil
		}
		l := corev1.ResourceList{}
		for i := 0; i < len(pairs); i += 2 {
			l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
		}
		return l
	}
	cases := map[string]struct {
		why              string
		requests, limits corev1.ResourceList
		template         string
		want             corev1.ResourceList
	}{
		"What is not said has a default": {want: list("memory", "64Mi", "cpu", "100m", "ephemeral-storage", "256Mi")},
		"What is said stays": {
			requests: list("memory", "1Mi", "cpu", "2", "ephemeral-storage", "10Gi", "nvidia.com/gpu", "1"),
			want:     list("memory", "1Mi", "cpu", "2", "ephemeral-storage", "10Gi", "nvidia.com/gpu", "1")},
		"A lower limit lowers the default": {
			why:    "a request above its limit is refused",
			limits: list("memory", "32Mi", "cpu", "1", "ephemeral-storage", "1Mi"),
			want:   list("memory", "32Mi", "cpu", "100m", "ephemeral-storage", "1Mi")},
		"A lower limit of the template does too": {
			template: `{"spec":{"containers":[{"name":"pulumi","resources":{"limits":{"cpu":"50m"}}}]}}`,
			want:     list("memory", "64Mi", "cpu", "50m", "ephemeral-storage", "256Mi")},
		"A request of the template stays": {
			template: `{"spec":{"containers":[{"name":"pulumi","resources":{"requests":{"cpu":"50m"}}}]}}`,
			want:     list("memory", "64Mi", "cpu", "50m", "ephemeral-storage", "256Mi")},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			ws := aWorkspace(func(ws *autov1alpha1.Workspace) {
				ws.Spec.Resources = corev1.ResourceRequirements{Requests: c.requests, Limits: c.limits}
				if c.template != "" {
					podTemplate(c.template)(ws)
				}
			})
			read := ws.DeepCopy()
			got := containerOf(t, jobOf(t, ws).Spec.Template.Spec, Container).Resources
			same := cmp.Comparer(func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 })
			if diff := cmp.Diff(c.want, got.Requests, same); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", c.why, diff)
			}
			if diff := cmp.Diff(read, ws, same); diff != "" {
				t.Errorf("Job changed the Workspace: %s", diff)
			}
		})
	}
}

func TestAPodTemplate(t *testing.T) {
	pod := func(t *testing.T, template string) corev1.PodTemplateSpec {
		t.Helper()
		return jobOf(t, aWorkspace(podTemplate(template))).Spec.Template
	}
	first := func(t *testing.T, c corev1.Container) {
		t.Helper()
		if len(c.Env) == 0 || c.Env[0] != (corev1.EnvVar{Name: EnvRoot, Value: Root}) {
			t.Errorf("the first variable of %s is not the root: %v", c.Name, c.Env)
		}
		for _, e := range c.Env[1:] {
			if e.Name == EnvRoot {
				t.Errorf("the root of %s is there twice: %v", c.Name, c.Env)
			}
		}
	}
	t.Run("Its containers become sidecars, and bootstrap comes first", func(t *testing.T) {
		spec := pod(t, `{"spec":{"initContainers":[{"name":"plugins"},{"name":"own-sidecar","restartPolicy":"Always"}],
			"containers":[{"name":"proxy"},{"name":"pulumi"},{"name":"logs"}],"restartPolicy":"Always"}}`).Spec
		if diff := cmp.Diff([]string{"bootstrap", "plugins", "own-sidecar", "proxy", "logs"}, names(spec.InitContainers)); diff != "" {
			t.Errorf("init containers: -want +got:\n%s", diff)
		}
		if diff := cmp.Diff([]string{"pulumi"}, names(spec.Containers)); diff != "" {
			t.Errorf("containers: -want +got:\n%s", diff)
		}
		for _, c := range spec.InitContainers {
			wants := c.Name == "proxy" || c.Name == "logs" || c.Name == "own-sidecar"
			if got := c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways; got != wants {
				t.Errorf("restartPolicy of %s: %v", c.Name, c.RestartPolicy)
			}
		}
		if spec.RestartPolicy != corev1.RestartPolicyNever {
			t.Errorf("restartPolicy: %s", spec.RestartPolicy)
		}
	})
	t.Run("Its variables may refer to the root", func(t *testing.T) {
		spec := pod(t, `{"spec":{"containers":[{"name":"pulumi","env":[{"name":"A","value":"$(UPDRAFT_ROOT)/a"},{"name":"UPDRAFT_REPORT_URL","value":"x"}]}]}}`).Spec
		first(t, containerOf(t, spec, Container))
	})
	t.Run("It cannot move the root", func(t *testing.T) {
		first(t, containerOf(t, pod(t, `{"spec":{"containers":[{"name":"pulumi","env":[{"name":"UPDRAFT_ROOT","value":"/tmp"}]}]}}`).Spec, Container))
		ws := aWorkspace(func(ws *autov1alpha1.Workspace) { ws.Spec.Env = []corev1.EnvVar{{Name: EnvRoot, Value: "/tmp"}} })
		first(t, containerOf(t, jobOf(t, ws).Spec.Template.Spec, Container))
	})
	t.Run("All containers know where to add to the environment", func(t *testing.T) {
		spec := pod(t, `{"spec":{"initContainers":[{"name":"login","env":[{"name":"A","value":"$(PULUMI_ENV)"}]}],"containers":[{"name":"proxy"}]}}`).Spec
		for _, c := range append(spec.InitContainers, spec.Containers...) {
			first(t, c)
			if len(c.Env) < 2 || c.Env[1] != (corev1.EnvVar{Name: EnvPulumiEnv, Value: "$(UPDRAFT_ROOT)/.env"}) {
				t.Errorf("container %s: %v", c.Name, c.Env)
			}
		}
	})
	t.Run("The place of added environment is the Workspace's, if it says one", func(t *testing.T) {
		ws := aWorkspace(func(ws *autov1alpha1.Workspace) { ws.Spec.Env = []corev1.EnvVar{{Name: EnvPulumiEnv, Value: "/mine"}} })
		var found []string
		for _, e := range containerOf(t, jobOf(t, ws).Spec.Template.Spec, Container).Env {
			if e.Name == EnvPulumiEnv {
				found = append(found, e.Value)
			}
		}
		if found[len(found)-1] != "/mine" {
			t.Errorf("PULUMI_ENV is %v", found)
		}
	})
	t.Run("It changes our containers by name, and the rest of the pod", func(t *testing.T) {
		merged := pod(t, `{"metadata":{"labels":{"team":"a","updraft.dev/update":"other"},"annotations":{"b":"c"}},"spec":{
			"serviceAccountName":"other","terminationGracePeriodSeconds":1200,"tolerations":[{"key":"spot"}],
			"securityContext":{"runAsUser":2000},
			"initContainers":[{"name":"bootstrap","resources":{"limits":{"memory":"1Gi"}}}],
			"containers":[{"name":"pulumi","image":"mine","volumeMounts":[{"name":"cache","mountPath":"/share/cache"}]}],
			"volumes":[{"name":"cache","emptyDir":{}},{"name":"share","emptyDir":{"sizeLimit":"5Gi"}}]}}`)
		spec := merged.Spec
		if merged.Labels["team"] != "a" || merged.Labels[pulumiv1.LabelUpdate] != "app-1" || merged.Annotations["b"] != "c" {
			t.Errorf("metadata = %+v", merged.ObjectMeta)
		}
		if spec.ServiceAccountName != "other" || *spec.TerminationGracePeriodSeconds != 1200 || len(spec.Tolerations) != 1 ||
			*spec.SecurityContext.RunAsUser != 2000 || !*spec.SecurityContext.RunAsNonRoot || len(spec.Volumes) != 4 {
			t.Errorf("spec = %+v", spec)
		}
		main, bootstrap := containerOf(t, spec, Container), containerOf(t, spec, Bootstrap)
		if main.Image != "mine" || len(main.VolumeMounts) != 4 || main.Command == nil || bootstrap.Image != settings.AgentImage || len(bootstrap.Resources.Limits) != 1 {
			t.Errorf("pulumi = %+v\nbootstrap = %+v", main, bootstrap)
		}
	})
	t.Run("It may take all labels away but ours", func(t *testing.T) {
		if got := pod(t, `{"metadata":{"labels":null}}`).Labels; got[pulumiv1.LabelUpdate] != "app-1" {
			t.Errorf("labels = %v", got)
		}
	})
	t.Run("A field that is none is refused by its name", func(t *testing.T) {
		for template, want := range map[string]string{
			`{"spec":{"containers":[{"name":"pulumi","comand":["x"]}]}}`: `podTemplate: cannot decode: unknown field "spec.containers[0].comand"`,
			`{"spec":{"containers":[{"image":"x"}]}}`:                    "podTemplate: cannot merge: ",
			`[]`: "podTemplate: cannot decode: ",
			`{`:  "podTemplate: cannot decode: ",
		} {
			_, err := Job(madeUpdate(), aWorkspace(podTemplate(template)), settings)
			if err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s: %v", template, err)
			}
		}
	})
	t.Run("An empty one changes nothing", func(t *testing.T) {
		want := jobOf(t, aWorkspace())
		for _, template := range []string{"", "{}", "null", `{"spec":{}}`} {
			if diff := cmp.Diff(want, jobOf(t, aWorkspace(podTemplate(template)))); diff != "" {
				t.Errorf("%q: -want +got:\n%s", template, diff)
			}
		}
	})
}

func TestWhatARunIsTold(t *testing.T) {
	yes, four, message := true, int32(4), "Initial stack update"
	u := madeUpdate(func(u *autov1alpha1.Update) {
		u.Spec = autov1alpha1.UpdateSpec{
			WorkspaceName: "app", StackName: "dev", Type: autov1alpha1.UpType, Parallel: &four, Message: &message,
			ExpectNoChanges: &yes, Replace: []string{"r"}, Target: []string{"t"}, TargetDependents: &yes,
			Refresh: &yes, ContinueOnError: &yes, Remove: &yes, RunProgram: &yes,
		}
	})
	ws := aWorkspace(func(ws *autov1alpha1.Workspace) {
		ws.Spec.PulumiLogVerbosity = 3
		ws.Spec.Stacks = []autov1alpha1.WorkspaceStack{{Name: "other"}, {
			Name: "dev", Create: &yes, SecretsProvider: "passphrase", Environment: []string{"org/base"},
			Config: []autov1alpha1.ConfigItem{
				{Key: "a", Value: &apiextensionsv1.JSON{Raw: []byte(`{"b":1}`)}},
				{Key: "token", Secret: &yes, ValueFrom: &autov1alpha1.ConfigValueFrom{Path: "secrets/app/token"}},
			},
		}}
	})
	got, err := SpecConfigMap(u, ws, aProgram(8), []autov1alpha1.LockHolder{{Host: "app-0-xyz", Pid: 12}})
	if err != nil {
		t.Fatal(err)
	}
	want := `apiVersion: v1
data:
  Pulumi.yaml: |
    name: web
    runtime: yaml
  run.json: |-
    {
      "namespace": "team",
      "name": "app-1",
      "uid": "uid-of-app-1",
      "source": {
        "program": {
          "name": "web",
          "generation": 8
        }
      },
      "operation": {
        "type": "up",
        "parallel": 4,
        "message": "Initial stack update",
        "expectNoChanges": true,
        "replace": [
          "r"
        ],
        "target": [
          "t"
        ],
        "targetDependents": true,
        "refresh": true,
        "continueOnError": true,
        "remove": true,
        "runProgram": true
      },
      "stack": {
        "name": "dev",
        "create": true,
        "secretsProvider": "passphrase",
        "config": [
          {
            "key": "a",
            "value": {
              "b": 1
            }
          },
          {
            "key": "token",
            "valueFrom": {
              "path": "secrets/app/token"
            },
            "secret": true
          }
        ],
        "environment": [
          "org/base"
        ]
      },
      "logVerbosity": 3,
      "ended": [
        {
          "host": "app-0-xyz",
          "pid": 12
        }
      ]
    }
immutable: true
kind: ConfigMap
metadata:
  labels:
    updraft.dev/update: app-1
  name: app-1-run
  namespace: team
  ownerReferences:
  - apiVersion: auto.pulumi.com/v1alpha1
    controller: true
    kind: Update
    name: app-1
    uid: uid-of-app-1
`
	if diff := cmp.Diff(want, yamlOf(t, got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTheSourceThatARunIsTold(t *testing.T) {
	cases := map[string]autov1alpha1.WorkspaceSpec{
		"git":         {Git: &autov1alpha1.GitSource{URL: "https://example.com/x", Ref: "main"}},
		"flux":        {Flux: &autov1alpha1.FluxSource{URL: "http://source"}},
		"local":       {Local: &autov1alpha1.LocalSource{Dir: "/app"}},
		"projectInfo": {ProjectInfo: &autov1alpha1.ProjectInfo{Name: "web", Runtime: "yaml"}},
		"":            {},
	}
	for name, spec := range cases {
		got, err := SpecConfigMap(madeUpdate(), aWorkspace(func(ws *autov1alpha1.Workspace) { ws.Spec = spec }), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		var told struct {
			Source map[string]any `json:"source"`
			Stack  map[string]any `json:"stack"`
		}
		if err := json.Unmarshal([]byte(got.Data[SpecFile]), &told); err != nil {
			t.Fatal(err)
		}
		if _, ok := told.Source[name]; len(told.Source) > 1 || ok != (name != "") {
			t.Errorf("%q: source %v", name, told.Source)
		}
		if told.Stack["name"] != "dev" || len(told.Stack) != 1 {
			t.Errorf("%q: a stack that the Workspace does not list is only a name: %v", name, told.Stack)
		}
		if _, ok := got.Data[ProgramFile]; ok {
			t.Errorf("%q: there is a program", name)
		}
	}
}

func TestAProgramIsReadAsItWasWritten(t *testing.T) {
	text := `
configuration:
  "on":
    default: "yes"
    type: String
  size:
    default: 9007199254740993
    type: Number
  zones:
    default: [1, 2.5, -3]
    type: List<Number>
outputs:
  big: 12345678901234567
  date: "2026-03-04"
  empty: ""
  float: 1.5
  "null": null
  octal: "0123"
  quoted: "say \"hi\": # no comment"
  text: "two\nlines\n"
  true: "true"
  url: ${bucket.url}
  wide: "ä → ü"
packages:
  random: 4.0.0
resources:
  bucket:
    options:
      dependsOn: ["${other}"]
      protect: true
    properties:
      acl: private
      tags: {a: "1", b: null}
    type: aws:s3:Bucket
  other:
    get:
      id: x
      state: {a: 1}
    type: aws:s3:Bucket
variables:
  v:
    fn::invoke: {function: "aws:getRegion"}
`
	var program pulumiv1.Program
	program.Name = "web"
	if err := yaml.UnmarshalStrict([]byte(text), &program.Program); err != nil {
		t.Fatal(err)
	}
	written, err := ProgramText(&program)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Name    string `json:"name"`
		Runtime string `json:"runtime"`
		pulumiv1.ProgramSpec
	}
	if err := yaml.UnmarshalStrict([]byte(written), &got); err != nil {
		t.Fatalf("%v in:\n%s", err, written)
	}
	if got.Name != "web" || got.Runtime != "yaml" {
		t.Errorf("name %q, runtime %q", got.Name, got.Runtime)
	}
	if diff := cmp.Diff(program.Program, got.ProgramSpec); diff != "" {
		t.Errorf("-want +got:\n%s\n%s", diff, written)
	}
	if again, err := ProgramText(&program); err != nil || again != written {
		t.Errorf("Written again it differs: %v\n%s", err, again)
	}
}

func TestMergeOfATemplateThatIsNone(t *testing.T) {
	ws := aWorkspace()
	for _, template := range []*runtime.RawExtension{nil, {}, {Raw: []byte("{}")}} {
		got, err := MergeWorkspace(ws, template)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(ws, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}
