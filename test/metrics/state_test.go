package metrics

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// state is what tells metrics of objects: kube-state-metrics, if .bin has one, else
// what stands in for it.
type state struct {
	by      string
	address string
	stop    func() error
}

func startState(ctx context.Context, dir string) (*state, error) {
	config, err := grantState(ctx, dir)
	if err != nil {
		return nil, err
	}
	program := filepath.Join(lab.bin, "kube-state-metrics")
	if _, err := os.Stat(program); err == nil {
		return startReal(ctx, program)
	}
	return startStandIn(ctx, config)
}

// stateUser is who kube-state-metrics is, with the rights of monitoring and no more.
const stateUser = "kube-state-metrics"

// grantState applies monitoring's rights and binds them.
func grantState(ctx context.Context, dir string) (*rest.Config, error) {
	binding := filepath.Join(dir, "binding.yaml")
	text := `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: updraft-metrics},
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: updraft-metrics}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ` + stateUser + `}]}`
	if err := os.WriteFile(binding, []byte(text), 0o600); err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, filepath.Join(lab.bin, "kubectl"), "--kubeconfig", lab.env.Kubeconfig, "apply", "-f", shipped("rights.yaml"), "-f", binding)
	if out, err := command.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	config := rest.CopyConfig(lab.env.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: stateUser}
	return config, nil
}

func startReal(ctx context.Context, program string) (*state, error) {
	address, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	telemetry, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	port := func(address string) string { return address[strings.LastIndex(address, ":")+1:] }
	process := exec.CommandContext(ctx, program, "--kubeconfig", lab.env.Kubeconfig, "--custom-resource-state-only=true",
		"--custom-resource-state-config-file", shipped("kube-state-metrics.yaml"),
		"--host=127.0.0.1", "--port="+port(address), "--telemetry-host=127.0.0.1", "--telemetry-port="+port(telemetry))
	if err := process.Start(); err != nil {
		return nil, err
	}
	return &state{"kube-state-metrics", address, func() error {
		if err := process.Process.Kill(); err != nil {
			return err
		}
		_ = process.Wait() // it was killed
		return nil
	}}, listens(ctx, address)
}

// standIn does what kube-state-metrics does with as much of its configuration as
// monitoring's file uses: gauges. What it does not know it refuses. Where the real one
// watches, it lists at each scrape.
type standIn struct {
	config customResourceState
	client dynamic.Interface
}

type customResourceState struct {
	Kind string `json:"kind"`
	Spec struct {
		Resources []stateResource `json:"resources"`
	} `json:"spec"`
}

type stateResource struct {
	GroupVersionKind struct{ Group, Version, Kind string } `json:"groupVersionKind"`
	MetricNamePrefix string                                `json:"metricNamePrefix"`
	ErrorLogV        int                                   `json:"errorLogV"`
	LabelsFromPath   map[string][]string                   `json:"labelsFromPath"`
	Metrics          []stateMetric                         `json:"metrics"`
}

type stateMetric struct {
	Name           string              `json:"name"`
	Help           string              `json:"help"`
	LabelsFromPath map[string][]string `json:"labelsFromPath"`
	Each           struct {
		Type  string     `json:"type"`
		Gauge stateGauge `json:"gauge"`
	} `json:"each"`
}

type stateGauge struct {
	Path           []string            `json:"path"`
	ValueFrom      []string            `json:"valueFrom"`
	LabelsFromPath map[string][]string `json:"labelsFromPath"`
	NilIsZero      bool                `json:"nilIsZero"`
}

func readStateConfig() (c customResourceState, err error) {
	text, err := os.ReadFile(shipped("kube-state-metrics.yaml"))
	if err != nil {
		return c, err
	}
	if err := yaml.UnmarshalStrict(text, &c); err != nil {
		return c, err
	}
	if c.Kind != "CustomResourceStateMetrics" {
		return c, fmt.Errorf("unknown kind %q", c.Kind)
	}
	for _, r := range c.Spec.Resources {
		for _, m := range r.Metrics {
			if m.Each.Type != "Gauge" || m.Help == "" || len(m.Each.Gauge.Path) == 0 {
				return c, fmt.Errorf("%s: no gauge with a path and a help", m.Name)
			}
		}
	}
	return c, nil
}

func startStandIn(ctx context.Context, config *rest.Config) (*state, error) {
	s := &standIn{}
	var err error
	if s.config, err = readStateConfig(); err != nil {
		return nil, err
	}
	if s.client, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	return &state{"a stand-in for kube-state-metrics, since there is none in .bin", listener.Addr().String(), func() error {
		err := server.Close()
		if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
			err = errors.Join(err, ended)
		}
		return err
	}}, nil
}

func (s *standIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	page, err := s.page(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write([]byte(page)) // Prometheus tells when it was not served
}

func (s *standIn) page(ctx context.Context) (string, error) {
	var page strings.Builder
	for _, r := range s.config.Spec.Resources {
		of := schema.GroupVersionResource{Group: r.GroupVersionKind.Group, Version: r.GroupVersionKind.Version, Resource: strings.ToLower(r.GroupVersionKind.Kind) + "s"}
		list, err := s.client.Resource(of).List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", err
		}
		for _, m := range r.Metrics {
			name := r.MetricNamePrefix + "_" + m.Name
			fmt.Fprintf(&page, "# HELP %s %s\n# TYPE %s gauge\n", name, m.Help, name)
			for _, o := range list.Items {
				base := map[string]string{"customresource_group": r.GroupVersionKind.Group, "customresource_version": r.GroupVersionKind.Version, "customresource_kind": r.GroupVersionKind.Kind}
				addLabels(base, o.Object, r.LabelsFromPath)
				addLabels(base, o.Object, m.LabelsFromPath)
				for _, value := range m.Each.Gauge.values(o.Object) {
					fmt.Fprintf(&page, "%s{%s} %v\n", name, labelText(base, value.labels), value.value)
				}
			}
		}
	}
	return page.String(), nil
}

type stateValue struct {
	labels map[string]string
	value  float64
}

// values are a gauge's: one of each element of a list, the one that valueFrom names
// of an object, or the value itself.
func (g stateGauge) values(object any) (all []stateValue) {
	add := func(at, value any) {
		if v, is := number(value, g.NilIsZero); is {
			labels := map[string]string{}
			addLabels(labels, at, g.LabelsFromPath)
			all = append(all, stateValue{labels, v})
		}
	}
	switch at := follow(object, g.Path).(type) {
	case []any:
		for _, element := range at {
			add(element, follow(element, g.ValueFrom))
		}
	case map[string]any:
		add(at, follow(at, g.ValueFrom))
	default:
		add(at, at)
	}
	return all
}

func addLabels(labels map[string]string, object any, paths map[string][]string) {
	for label, path := range paths {
		if value := follow(object, path); value != nil {
			labels[label] = fmt.Sprint(value)
		}
	}
}

// follow is what is at a path, or nil.
func follow(object any, path []string) any {
	for _, part := range path {
		of, _ := object.(map[string]any)
		object = of[part]
	}
	return object
}

// number is the value of what a field holds.
func number(value any, nilIsZero bool) (n float64, is bool) {
	switch v := value.(type) {
	case nil:
		return 0, nilIsZero
	case int64:
		return float64(v), true
	case float64:
		return v, true
	case bool:
		return map[bool]float64{true: 1}[v], true
	case string:
		switch strings.ToLower(v) {
		case "true", "yes":
			return 1, true
		case "false", "no", "unknown":
			return 0, true
		}
		if at, err := time.Parse(time.RFC3339, v); err == nil {
			return float64(at.Unix()), true
		}
		n, err := strconv.ParseFloat(v, 64)
		return n, err == nil
	default:
		return 0, false
	}
}

func labelText(base, own map[string]string) string {
	all := map[string]string{}
	maps.Copy(all, base)
	maps.Copy(all, own)
	var text []string
	for _, label := range slices.Sorted(maps.Keys(all)) {
		text = append(text, label+"="+strconv.Quote(all[label]))
	}
	return strings.Join(text, ",")
}
