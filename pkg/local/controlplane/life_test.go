package controlplane_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/updraft-dev/updraft/pkg/local/controlplane"
	"github.com/updraft-dev/updraft/pkg/local/controlplane/planetest"
)

// TestMain lets the test program stand in for one that starts a plane and is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("CONTROLPLANE_TEST_DIR"); dir != "" {
		_, err := controlplane.Start(context.Background(), controlplane.Options{Bin: os.Getenv("CONTROLPLANE_TEST_BIN"), Dir: dir})
		fmt.Println("started", err)
		select {}
	}
	os.Exit(m.Run())
}

func TestStopLeavesNothingButTheObjects(t *testing.T) {
	dir := t.TempDir()
	var steps []string
	start := time.Now()
	options := controlplane.Options{Bin: planetest.Bin(t), Dir: dir, Log: planetest.Log(t), Progress: func(step string) {
		steps = append(steps, step)
		t.Logf("%s: %s", time.Since(start), step)
	}}
	plane, err := controlplane.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("started in %s", time.Since(start))
	if len(steps) != 4 {
		t.Errorf("the steps were %q", steps)
	}
	pids := processes(t, dir)
	if len(pids) != 3 {
		t.Errorf("there are %d processes, want 3", len(pids))
	}
	listeners := 0
	for _, pid := range pids {
		listeners += checkListeners(t, pid)
		if group, err := syscall.Getpgid(pid); err != nil || group != pid {
			t.Errorf("process %d is in group %d (%v), want its own", pid, group, err)
		}
	}
	if listeners != 3 {
		t.Errorf("%d sockets listen, want 3: etcd's two and the API server's", listeners)
	}
	if _, err := controlplane.Start(t.Context(), options); err == nil || !strings.Contains(err.Error(), "in use by another") {
		t.Errorf("a second plane in the same folder gave %v", err)
	}
	start = time.Now()
	for range 2 {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	}
	t.Logf("stopped in %s", time.Since(start))
	checkGone(t, pids)
	if _, err := os.Stat(filepath.Join(dir, "run")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the keys are still there: %v", err)
	}
}

// TestKilledParent kills a program that runs a plane: its processes end with it, and the next plane finds its objects.
func TestKilledParent(t *testing.T) {
	dir, bin := t.TempDir(), planetest.Bin(t)
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), "CONTROLPLANE_TEST_DIR="+dir, "CONTROLPLANE_TEST_BIN="+bin)
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "started <nil>\n" {
		t.Fatalf("the parent said %q (%v)", line, err)
	}
	pids := processes(t, dir)
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // killed, as asked
	planetest.Eventually(t, "the end of the children", func() error { return running(pids) })

	first, err := controlplane.Start(t.Context(), controlplane.Options{Bin: bin, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}
	_, err = kubernetes.NewForConfigOrDie(first.Config).CoreV1().ConfigMaps("default").Create(t.Context(), kept, metav1.CreateOptions{})
	if err := errors.Join(err, first.Stop()); err != nil {
		t.Fatal(err)
	}
	second, err := controlplane.Start(t.Context(), controlplane.Options{Bin: bin, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	_, err = kubernetes.NewForConfigOrDie(second.Config).CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{})
	if err := errors.Join(err, second.Stop()); err != nil {
		t.Error(err)
	}
}

// TestStartEndsWhatWasLeft stands in for a machine without setpriv, on which a killed parent leaves its children.
func TestStartEndsWhatWasLeft(t *testing.T) {
	dir := t.TempDir()
	left := exec.Command("sh", "-c", "read -r _", "sh", "--data-dir="+dir+"/etcd")
	if _, err := left.StdinPipe(); err != nil { // held open: it waits for ever
		t.Fatal(err)
	}
	other := exec.Command("sh", "-c", "read -r _") // stands for a pid that is another's by now
	if _, err := other.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(left.Start(), other.Start(), os.Mkdir(filepath.Join(dir, "run"), 0o700)); err != nil {
		t.Fatal(err)
	}
	note(t, dir, "etcd", left.Process.Pid)
	note(t, dir, "kube-apiserver", other.Process.Pid)
	options := controlplane.Options{Bin: brokenEtcd(t), Dir: dir, Patience: time.Second}
	if _, err := controlplane.Start(t.Context(), options); err == nil {
		t.Error("an etcd that never answers came up")
	}
	if err := left.Wait(); err == nil || left.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("what was left ended with %v, want killed", err)
	}
	if err := running([]int{other.Process.Pid}); err == nil {
		t.Error("a process of somebody else was ended")
	}
	if err := other.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = other.Wait()
}

func TestStartSaysWhatIsMissing(t *testing.T) {
	_, err := controlplane.Start(t.Context(), controlplane.Options{Bin: t.TempDir(), Dir: t.TempDir()})
	wantError(t, err, "no program etcd in")
	wantError(t, err, "run `make tools`")
	_, err = controlplane.Start(t.Context(), controlplane.Options{Bin: brokenEtcd(t)})
	wantError(t, err, "Options.Dir is empty")
}

func TestStartShowsTheEndOfTheLog(t *testing.T) {
	bin := brokenEtcd(t)
	_, err := controlplane.Start(t.Context(), controlplane.Options{Bin: bin, Dir: t.TempDir(), Patience: time.Second})
	wantError(t, err, "etcd did not come up: timeout")
	wantError(t, err, "the disk is on fire")
	pids := noted(t, bin)
	if len(pids) != 1 {
		t.Errorf("%d processes were started, want etcd only", len(pids))
	}
	checkGone(t, pids)
}

// brokenEtcd is a folder of programs of which etcd notes its pid there, says something and never answers.
func brokenEtcd(t *testing.T) string {
	t.Helper()
	bin := t.TempDir()
	script := "#!/bin/sh\n[ \"$1\" = --help ] && exit\necho $$ > \"$0.pid\"\necho the disk is on fire\nexec sleep 3600\n"
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return bin
}

func note(t *testing.T, dir, program string, pid int) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "run", program+".pid"), []byte(strconv.Itoa(pid)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// processes are the plane's, by its own notes; each must be running.
func processes(t *testing.T, dir string) []int {
	t.Helper()
	pids := noted(t, filepath.Join(dir, "run"))
	for _, pid := range pids {
		if err := syscall.Kill(pid, 0); err != nil {
			t.Fatalf("process %d: %v", pid, err)
		}
	}
	return pids
}

// noted reads the pids that are noted in a folder.
func noted(t *testing.T, dir string) []int {
	t.Helper()
	notes, err := filepath.Glob(filepath.Join(dir, "*.pid"))
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, note := range notes {
		text, err := os.ReadFile(note)
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

func checkGone(t *testing.T, pids []int) {
	t.Helper()
	if err := running(pids); err != nil {
		t.Error(err)
	}
}

func running(pids []int) error {
	var errs []error
	for _, pid := range pids {
		command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && len(command) > 0 {
			errs = append(errs, fmt.Errorf("process %d is still there: %q", pid, command))
		}
	}
	return errors.Join(errs...)
}

func TestAServerWhosePortWasTakenIsStartedAgain(t *testing.T) {
	bin := t.TempDir()
	for _, name := range []string{"etcd", "kube-apiserver"} {
		script := fmt.Sprintf("#!/bin/sh\n[ \"$1\" = --help ] || [ -e \"$0.tried\" ] && exec %q \"$@\"\n: > \"$0.tried\"\necho bind: address already in use\nexit 1\n",
			filepath.Join(planetest.Bin(t), name))
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(planetest.Bin(t), "kube-controller-manager"), filepath.Join(bin, "kube-controller-manager")); err != nil {
		t.Fatal(err)
	}
	plane, err := controlplane.Start(t.Context(), controlplane.Options{Bin: bin, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := plane.Stop(); err != nil {
		t.Error(err)
	}
}
