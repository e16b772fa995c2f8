package install_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	eventingv1 "knative.dev/eventing/pkg/apis/eventing/v1"
	eventingv1beta3 "knative.dev/eventing/pkg/apis/eventing/v1beta3"
	"knative.dev/eventing/pkg/apis/feature"
	sourcesv1 "knative.dev/eventing/pkg/apis/sources/v1"
	"knative.dev/pkg/apis"
	servingv1 "knative.dev/serving/pkg/apis/serving/v1"
	"sigs.k8s.io/yaml"

	"github.com/updraft-dev/updraft/cmd/internal/start"
	"github.com/updraft-dev/updraft/config"
	"github.com/updraft-dev/updraft/functions/gateway"
	"github.com/updraft-dev/updraft/pkg/observe"
)

// known are the kinds that config/ may hold, as the Go types of those who define
// them.
var known = map[string]func() metav1.Object{
	"v1/Namespace":      func() metav1.Object { return &corev1.Namespace{} },
	"v1/ServiceAccount": func() metav1.Object { return &corev1.ServiceAccount{} },
	"v1/ConfigMap":      func() metav1.Object { return &corev1.ConfigMap{} },
	"apiextensions.k8s.io/v1/CustomResourceDefinition":                 func() metav1.Object { return &apiextensionsv1.CustomResourceDefinition{} },
	"rbac.authorization.k8s.io/v1/ClusterRole":                         func() metav1.Object { return &rbacv1.ClusterRole{} },
	"rbac.authorization.k8s.io/v1/ClusterRoleBinding":                  func() metav1.Object { return &rbacv1.ClusterRoleBinding{} },
	"admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy":        func() metav1.Object { return &admissionv1.ValidatingAdmissionPolicy{} },
	"admissionregistration.k8s.io/v1/ValidatingAdmissionPolicyBinding": func() metav1.Object { return &admissionv1.ValidatingAdmissionPolicyBinding{} },
	"eventing.knative.dev/v1/Broker":                                   func() metav1.Object { return &eventingv1.Broker{} },
	"eventing.knative.dev/v1beta3/EventType":                           func() metav1.Object { return &eventingv1beta3.EventType{} },
	"eventing.knative.dev/v1/Trigger":                                  func() metav1.Object { return &eventingv1.Trigger{} },
	"sources.knative.dev/v1/ApiServerSource":                           func() metav1.Object { return &sourcesv1.ApiServerSource{} },
	"sources.knative.dev/v1/PingSource":                                func() metav1.Object { return &sourcesv1.PingSource{} },
	"serving.knative.dev/v1/Service":                                   func() metav1.Object { return &servingv1.Service{} },
}

// manifest is an object of config/, and the file that it is in.
type manifest struct {
	file   string
	object metav1.Object
	kind   string
}

// manifests are all of config/, in the order of installation.
func manifests(t *testing.T) []manifest {
	t.Helper()
	var all []manifest
	err := fs.WalkDir(config.Files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path == "kustomization.yaml" {
			return err
		}
		content, err := config.Files.ReadFile(path)
		if err != nil {
			return err
		}
		for _, document := range documents(t, content) {
			var kind metav1.TypeMeta
			if err := yaml.Unmarshal(document, &kind); err != nil {
				return err
			}
			name := kind.APIVersion + "/" + kind.Kind
			if known[name] == nil {
				t.Fatalf("%s has a %s, a kind that this test does not know", path, name)
			}
			object := known[name]()
			if err := yaml.UnmarshalStrict(document, object); err != nil {
				t.Errorf("%s: %s: %v", path, name, err)
			}
			all = append(all, manifest{file: path, object: object, kind: kind.Kind})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(all, func(a, b manifest) int { return strings.Compare(number(a.file), number(b.file)) })
	return all
}

func number(file string) string { return file[:3] }

func documents(t *testing.T, content []byte) [][]byte {
	t.Helper()
	var found [][]byte
	for reader := utilyaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(content))); ; {
		buffer := make([]byte, len(content)+1)
		n, err := reader.Read(buffer)
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		var object map[string]any
		if err := yaml.Unmarshal(buffer[:n], &object); err != nil {
			t.Fatal(err)
		}
		if len(object) > 0 {
			found = append(found, buffer[:n])
		}
	}
}

// each calls do for every object of one type.
func each[T metav1.Object](t *testing.T, do func(T)) {
	t.Helper()
	found := false
	for _, m := range manifests(t) {
		if object, ok := m.object.(T); ok {
			found = true
			do(object)
		}
	}
	if !found {
		t.Fatalf("config/ has no %v", reflect.TypeFor[T]())
	}
}

func TestNumbersOrderWhatDependsOnWhat(t *testing.T) {
	made := map[string]string{}
	needs := func(m manifest, kind, name string) {
		t.Helper()
		at, there := made[kind+"/"+name]
		if !there {
			t.Errorf("%s: %s %s comes before %s %s, which it needs", m.file, m.kind, m.object.GetName(), kind, name)
		} else if at == m.file && kind != "ServiceAccount" && kind != "ClusterRole" && kind != "ValidatingAdmissionPolicy" {
			t.Errorf("%s has both %s %s and %s %s, which it needs: give them numbers", m.file, m.kind, m.object.GetName(), kind, name)
		}
	}
	for _, m := range manifests(t) {
		if namespace := m.object.GetNamespace(); namespace != "" {
			needs(m, "Namespace", namespace)
		}
		switch o := m.object.(type) {
		case *rbacv1.ClusterRoleBinding:
			needs(m, "ClusterRole", o.RoleRef.Name)
			for _, s := range o.Subjects {
				needs(m, s.Kind, s.Name)
			}
		case *admissionv1.ValidatingAdmissionPolicyBinding:
			needs(m, "ValidatingAdmissionPolicy", o.Spec.PolicyName)
		case *servingv1.Service:
			needs(m, "ServiceAccount", o.Spec.Template.Spec.ServiceAccountName)
			for _, e := range o.Spec.Template.Spec.Containers[0].Env {
				if e.ValueFrom != nil && e.ValueFrom.ConfigMapKeyRef != nil {
					needs(m, "ConfigMap", e.ValueFrom.ConfigMapKeyRef.Name)
				}
			}
		case *eventingv1.Trigger:
			needs(m, "Broker", o.Spec.Broker)
			needs(m, "Service", o.Spec.Subscriber.Ref.Name)
		case *eventingv1beta3.EventType:
			needs(m, "Broker", o.Spec.Reference.Name)
		case *sourcesv1.ApiServerSource:
			needs(m, "ServiceAccount", o.Spec.ServiceAccountName)
			needs(m, o.Spec.Sink.Ref.Kind, o.Spec.Sink.Ref.Name)
			needs(m, "Trigger", "updraft-sweep") // else its first event wakes nobody
		case *sourcesv1.PingSource:
			needs(m, "Broker", o.Spec.Sink.Ref.Name)
		}
		made[m.kind+"/"+m.object.GetName()] = m.file
	}
}

// What Serving and Eventing would refuse, by their own code and with their
// features as they are by default.
func TestKnativeTakesTheManifests(t *testing.T) {
	features, err := feature.NewFlagsConfigFromMap(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range manifests(t) {
		object, ok := m.object.(interface {
			apis.Defaultable
			apis.Validatable
		})
		if !ok {
			continue
		}
		ctx := feature.ToContext(apis.WithinCreate(t.Context()), features)
		object.SetDefaults(ctx)
		if err := object.Validate(ctx); err != nil {
			t.Errorf("%s: %s %s: %v", m.file, m.kind, m.object.GetName(), err)
		}
	}
}

// The test above would see a field that Serving refuses.
func TestServingRefusesWhatTheManifestsMustNotHave(t *testing.T) {
	each(t, func(s *servingv1.Service) {
		for what, spoil := range map[string]func(*servingv1.RevisionSpec){
			"a field reference": func(r *servingv1.RevisionSpec) {
				r.Containers[0].Env = append(r.Containers[0].Env, corev1.EnvVar{Name: "X", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}})
			},
			"a security context of the pod": func(r *servingv1.RevisionSpec) {
				r.SecurityContext = &corev1.PodSecurityContext{RunAsUser: new(int64)}
			},
			"a node selector": func(r *servingv1.RevisionSpec) { r.NodeSelector = map[string]string{"a": "b"} },
		} {
			spoilt := s.DeepCopy()
			spoil(&spoilt.Spec.Template.Spec)
			spoilt.SetDefaults(t.Context())
			if spoilt.Validate(t.Context()) == nil {
				t.Errorf("Serving takes %s", what)
			}
		}
	})
}

func TestEachFunctionHasServiceAccountRightsAndTrigger(t *testing.T) {
	accounts, roles, bindings, services, triggers := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]*servingv1.Service{}, map[string]bool{}
	for _, m := range manifests(t) {
		switch o := m.object.(type) {
		case *corev1.ServiceAccount:
			accounts[o.Name] = true
		case *rbacv1.ClusterRole:
			roles[o.Name] = true
		case *rbacv1.ClusterRoleBinding:
			bindings[o.Name] = o.RoleRef.Name == o.Name && len(o.Subjects) == 1 && o.Subjects[0].Name == o.Name
		case *servingv1.Service:
			services[o.Name] = o
		case *eventingv1.Trigger:
			triggers[o.Spec.Subscriber.Ref.Name] = true
		}
	}
	functions := functions(t)
	for _, function := range functions {
		name := "updraft-" + function
		service := services[name]
		if service == nil {
			t.Errorf("the function %s has no Knative Service", function)
			continue
		}
		if image := service.Spec.Template.Spec.Containers[0].Image; image != "ko://github.com/updraft-dev/updraft/cmd/"+function {
			t.Errorf("the function %s runs the image %s", function, image)
		}
		if service.Spec.Template.Spec.ServiceAccountName != name || !accounts[name] || !roles[name] || !bindings[name] {
			t.Errorf("the function %s lacks a ServiceAccount of its own, its rights or their binding", function)
		}
		if !triggers[name] && name != gateway.Name {
			t.Errorf("no Trigger wakes the function %s", function)
		}
	}
	if len(services) != len(functions) {
		t.Errorf("there are %d Services for %d functions", len(services), len(functions))
	}
}

// functions are the folders of cmd/ whose main serves one.
func functions(t *testing.T) []string {
	t.Helper()
	mains, err := filepath.Glob(filepath.Join(root(), "cmd", "*", "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, main := range mains {
		content, err := os.ReadFile(main)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(content, []byte("start.Main(")) || bytes.Contains(content, []byte("start.MainHTTP(")) {
			names = append(names, filepath.Base(filepath.Dir(main)))
		}
	}
	if len(names) < 6 {
		t.Fatalf("found only the functions %v", names)
	}
	return names
}

func TestAFunctionWaitsAsLongAsItsTrigger(t *testing.T) {
	timeouts := map[string]string{}
	each(t, func(trigger *eventingv1.Trigger) {
		timeouts[trigger.Spec.Subscriber.Ref.Name] = *trigger.Spec.Delivery.Timeout
	})
	each(t, func(s *servingv1.Service) {
		outside := s.Name == gateway.Name // no Trigger wakes it
		if got := *s.Spec.Template.Spec.TimeoutSeconds; got != 60 || timeouts[s.Name] != "PT60S" && !outside {
			t.Errorf("%s has %d seconds, its Trigger %s", s.Name, got, timeouts[s.Name])
		}
		if local := s.Labels["networking.knative.dev/visibility"] == "cluster-local"; local == outside {
			t.Errorf("%s is reached from outside: %v", s.Name, !local)
		}
	})
}

// settings are the keys of config-updraft and the variables they are read from.
var settings = map[string]string{
	"broker-url": "BROKER_URL", "report-url": "REPORT_URL",
	"default-run-image": "DEFAULT_RUN_IMAGE", "default-timeout": "DEFAULT_TIMEOUT",
	"gateway-audience": "GATEWAY_AUDIENCE", "gateway-cluster-tokens": "GATEWAY_CLUSTER_TOKENS",
}

// A key that has no effect is a lie, and a default that is not the one as well.
func TestTheExampleOfTheSettingsIsTrue(t *testing.T) {
	read := map[string]string{}
	each(t, func(s *servingv1.Service) {
		for _, e := range s.Spec.Template.Spec.Containers[0].Env {
			if e.ValueFrom == nil {
				continue
			}
			ref := e.ValueFrom.ConfigMapKeyRef
			if ref == nil || ref.Optional == nil || !*ref.Optional || ref.Name != "config-updraft" {
				t.Errorf("%s reads %s not from an optional key of config-updraft", s.Name, e.Name)
				continue
			}
			read[ref.Key] = e.Name
		}
	})
	if diff := cmp.Diff(settings, read); diff != "" {
		t.Errorf("keys that are read (-want +got):\n%s", diff)
	}
	each(t, func(c *corev1.ConfigMap) {
		if len(c.Data) != 1 {
			t.Errorf("%s sets keys: an installation over one whose admin set them would undo that", c.Name)
		}
		if c.Name != "config-updraft" {
			return
		}
		var example map[string]string
		if err := yaml.UnmarshalStrict([]byte(c.Data["_example"]), &example); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(defaults(t), example); diff != "" {
			t.Errorf("the example of %s (-defaults +example):\n%s", c.Name, diff)
		}
	})
}

// What is observed is read by prefix, so that each key that is written reaches a
// function, and each of the example is one that is known.
func TestTheExamplesOfWhatIsObservedAreTrue(t *testing.T) {
	each(t, func(s *servingv1.Service) {
		from := map[string]string{}
		for _, e := range s.Spec.Template.Spec.Containers[0].EnvFrom {
			if e.ConfigMapRef == nil || e.ConfigMapRef.Optional == nil || !*e.ConfigMapRef.Optional {
				t.Errorf("%s does not start without what it is to observe", s.Name)
				continue
			}
			from[e.ConfigMapRef.Name] = e.Prefix
		}
		want := map[string]string{"config-observability": observe.PrefixObservability, "config-logging": observe.PrefixLogging}
		if diff := cmp.Diff(want, from); diff != "" {
			t.Errorf("%s (-want +got):\n%s", s.Name, diff)
		}
	})
	examples := map[string]map[string]string{}
	each(t, func(c *corev1.ConfigMap) {
		var example map[string]string
		if err := yaml.UnmarshalStrict([]byte(c.Data["_example"]), &example); err != nil {
			t.Fatal(err)
		}
		examples[c.Name] = example
	})
	got, err := observe.Parse(examples["config-observability"], examples["config-logging"], "updraft-stack")
	if err != nil {
		t.Fatal(err)
	}
	none, err := observe.Parse(nil, nil, "updraft-stack")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(none, got); diff != "" {
		t.Errorf("the examples are not the defaults (-defaults +example):\n%s", diff)
	}
	for _, name := range []string{"config-observability", "config-logging"} {
		for key := range examples[name] {
			if unknown := observe.Unknown(name, key); unknown {
				t.Errorf("the key %s of %s has no effect", key, name)
			}
		}
	}
}

// defaults are what a function has if no key is set.
func defaults(t *testing.T) map[string]string {
	t.Helper()
	values := map[string]string{"default-run-image": "pulumi/pulumi:latest-nonroot"} // run.DefaultImage, if the variable is empty
	for field := range reflect.TypeFor[start.Environment]().Fields() {
		for key, variable := range settings {
			tag := field.Tag
			if tag.Get("envconfig") == variable && tag.Get("default") != "" {
				values[key] = tag.Get("default")
			}
		}
	}
	return values
}

func TestTheKustomizationHasEveryFileInOrder(t *testing.T) {
	content, err := config.Files.ReadFile("kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var kustomization struct{ Resources []string }
	if err := yaml.Unmarshal(content, &kustomization); err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, m := range manifests(t) {
		if len(files) == 0 || files[len(files)-1] != m.file {
			files = append(files, m.file)
		}
	}
	sorted := slices.SortedStableFunc(slices.Values(files), func(a, b string) int { return strings.Compare(number(a), number(b)) })
	want, got := slices.Clone(sorted), slices.Clone(kustomization.Resources)
	for i := 1; i < len(got); i++ {
		if number(got[i-1]) > number(got[i]) {
			t.Errorf("%s comes before %s", got[i-1], got[i])
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-config +kustomization):\n%s", diff)
	}
}

func TestEveryObjectCarriesTheRecommendedLabels(t *testing.T) {
	for _, object := range kustomized(t) {
		for _, label := range []string{"name", "part-of", "version", "component"} {
			if object.GetLabels()["app.kubernetes.io/"+label] == "" {
				t.Errorf("%s %s has no label app.kubernetes.io/%s", object.GetKind(), object.GetName(), label)
			}
		}
	}
}

// kustomized is config/ as make install sends it on to ko.
func kustomized(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for _, document := range documents(t, kustomize(t)) {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
	return objects
}

// The administrator reads the table and not the manifest.
func TestTheTableOfRightsNamesWhatEachAccountHas(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root(), "docs", "install.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, "|"); len(cells) == 5 {
			rows[strings.Trim(cells[1], " `")] = cells[2] + cells[3]
		}
	}
	each(t, func(role *rbacv1.ClusterRole) {
		if role.Name == "updraft-view" || role.Name == "updraft-edit" {
			return // of users
		}
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				if word := strings.TrimPrefix(resource, "pods/"); !strings.Contains(rows[role.Name], word) {
					t.Errorf("docs/install.md does not say that %s may %v %s", role.Name, rule.Verbs, resource)
				}
			}
		}
	})
}
