package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// state is a real kube-state-metrics, which tells metrics of objects with the rights
// of monitoring and no more.
type state struct {
	address string
	stop    func() error
}

// stateUser is who kube-state-metrics is.
const stateUser = "kube-state-metrics"

func startState(ctx context.Context, dir string, log io.Writer) (*state, error) {
	kubeconfig, err := grantState(ctx, dir)
	if err != nil {
		return nil, err
	}
	address, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	telemetry, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	port := func(address string) string { return address[strings.LastIndex(address, ":")+1:] }
	process := exec.CommandContext(ctx, filepath.Join(lab.bin, "kube-state-metrics"), "--kubeconfig", kubeconfig, "--custom-resource-state-only=true",
		"--custom-resource-state-config-file", shipped("kube-state-metrics.yaml"),
		"--host=127.0.0.1", "--port="+port(address), "--telemetry-host=127.0.0.1", "--telemetry-port="+port(telemetry))
	process.Stdout, process.Stderr = log, log
	if err := process.Start(); err != nil {
		return nil, err
	}
	s := &state{address, func() error {
		if err := process.Process.Kill(); err != nil {
			return err
		}
		_ = process.Wait() // it was killed
		return nil
	}}
	if err := listens(ctx, address); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// grantState applies monitoring's rights, binds them, and gives a kubeconfig of who
// has them.
func grantState(ctx context.Context, dir string) (string, error) {
	binding := filepath.Join(dir, "binding.yaml")
	text := `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: updraft-metrics},
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: updraft-metrics}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ` + stateUser + `}]}`
	if err := os.WriteFile(binding, []byte(text), 0o600); err != nil {
		return "", err
	}
	command := exec.CommandContext(ctx, filepath.Join(lab.bin, "kubectl"), "--kubeconfig", lab.env.Kubeconfig, "apply", "-f", shipped("rights.yaml"), "-f", binding)
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	config, err := clientcmd.LoadFromFile(lab.env.Kubeconfig)
	if err != nil {
		return "", err
	}
	for name := range config.AuthInfos {
		as := config.AuthInfos[name].DeepCopy()
		as.Impersonate = stateUser
		config.AuthInfos = map[string]*api.AuthInfo{name: as}
	}
	file := filepath.Join(dir, "state.kubeconfig")
	return file, clientcmd.WriteToFile(*config, file)
}
