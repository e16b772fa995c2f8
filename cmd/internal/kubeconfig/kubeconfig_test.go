package kubeconfig

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"k8s.io/client-go/discovery"
)

// write writes a kubeconfig of a cluster of each address, in contexts of these names.
func write(t *testing.T, addresses map[string]string) string {
	t.Helper()
	text := "apiVersion: v1\nkind: Config\ncurrent-context: one\n"
	for _, part := range []string{"clusters:\n", "contexts:\n", "users: [{name: me, user: {token: hunter2}}]\n"} {
		text += part
		for name, address := range addresses {
			switch part[0:2] {
			case "cl":
				text += fmt.Sprintf("- {name: %s, cluster: {server: '%s'}}\n", name, address)
			case "co":
				text += fmt.Sprintf("- {name: %s, context: {cluster: %s, user: me}}\n", name, name)
			}
		}
	}
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// nobody is an address at which nobody listens.
func nobody(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return "http://" + listener.Addr().String()
}

func ask(t *testing.T, f *Flags) error {
	t.Helper()
	config, _, err := f.Load()
	if err != nil {
		t.Fatal(err)
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.ServerVersion()
	return f.Explain(fmt.Errorf("cannot ask: %w", err))
}

func TestAClusterThatDoesNotAnswerIsNamed(t *testing.T) {
	here := nobody(t)
	file := write(t, map[string]string{"one": here, "two": "http://no-such-host.invalid:1"})
	for name, c := range map[string]struct {
		env   string
		flags Flags
		want  []string
	}{
		"By its file":              {"", Flags{File: file}, []string{here, `context "one" of ` + file, "refused", "--kubeconfig or --context"}},
		"By the environment":       {file, Flags{}, []string{here, `context "one" of ` + file, "updraft dev"}},
		"By a context":             {file, Flags{Context: "two"}, []string{"no-such-host.invalid", `context "two" of ` + file}},
		"By the first of the list": {file + ":/nowhere", Flags{}, []string{here, file}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", c.env)
			err := ask(t, &c.flags)
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("it says %q, and not %q", err, want)
				}
			}
			if strings.Contains(fmt.Sprint(err), "hunter2") {
				t.Errorf("it says a secret: %v", err)
			}
			if c.flags.Context == "" && !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("what it was is lost: %v", err)
			}
		})
	}
}

func TestOtherErrorsAreAsTheyWere(t *testing.T) {
	f := Flags{File: write(t, map[string]string{"one": nobody(t)})}
	if _, _, err := f.Load(); err != nil {
		t.Fatal(err)
	}
	other := errors.New("stack app does not exist")
	if err := f.Explain(other); !errors.Is(err, other) || err.Error() != other.Error() {
		t.Errorf("it says %v", err)
	}
	if err := f.Explain(nil); err != nil {
		t.Errorf("of nothing it says %v", err)
	}
}
