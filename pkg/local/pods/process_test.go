package pods

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"
)

// shellSpec runs a script, with the folder's name as the mark, and the folder as
// $AT, where it says how far it is by making files.
func shellSpec(at folder, script string) processSpec {
	name := mark(types.UID(filepath.Base(filepath.Dir(string(at)))+filepath.Base(string(at))), "shell")
	return processSpec{
		Name: name,
		Argv: []string{"/bin/sh", "-c", script},
		Env:  []string{"PATH=/usr/bin:/bin", "AT=" + string(at), sandboxMark + "=" + name},
		Dir:  at.share(),
		Log:  at.log("shell"),
	}
}

func startShell(t *testing.T, at folder, script string) *process {
	t.Helper()
	p, err := startProcess(testSupervisor, at, shellSpec(at, script))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.kill(); <-p.done })
	return p
}

// hideaways are processes that try to stay: in sessions of their own, adopted by
// nobody, deaf to signals. Each makes a file when it is there.
const hideaways = `
setsid sh -c 'trap "" TERM HUP; : >$AT/one; while :; do sleep 1000; done' &
(setsid sh -c '(trap "" TERM; : >$AT/two; while :; do sleep 1000; done) &') &
(trap "" HUP TERM; : >$AT/three; while :; do sleep 1000; done) &
while [ ! -e $AT/one ] || [ ! -e $AT/two ] || [ ! -e $AT/three ]; do sleep 0.01; done
`

const sayReady = "\n: >$AT/ready\n"

func (f folder) isReady() bool { return exists(f.in("ready")) }

func nothingLeft(t *testing.T, at folder) {
	t.Helper()
	if left := marked(shellSpec(at, "").Name); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}

func TestProcessEnds(t *testing.T) {
	cases := []struct {
		reason, script string
		want           exit
	}{
		{"An exit code is told", "exit 7", exit{Code: 7}},
		{"A signal is told", "kill -KILL $$", exit{Signal: 9}},
		{"What the main process leaves ends with it", hideaways + "exit 3", exit{Code: 3}},
	}
	for _, c := range cases {
		t.Run(c.reason, func(t *testing.T) {
			at := testFolder(t)
			p := startShell(t, at, c.script)
			<-p.done
			if p.exit.At.Before(p.at) {
				t.Errorf("it ended at %s, before it began at %s", p.exit.At, p.at)
			}
			p.exit.At = time.Time{}
			if p.exit != c.want {
				t.Errorf("exit %+v, want %+v", p.exit, c.want)
			}
			nothingLeft(t, at)
		})
	}
}

func TestProcessSeesOnlyWhatItIsGiven(t *testing.T) {
	t.Setenv("PULUMI_ACCESS_TOKEN", "the developer's own")
	at := testFolder(t)
	p := startShell(t, at, `pwd; env | sort | cut -d= -f1; echo err >&2; ls /proc/self/fd | wc -l; cat; ps -o sid= -p $$ | grep -qw $$ && echo own session`)
	<-p.done
	want := at.share() + "\nAT\nPATH\nPWD\nUPDRAFT_SANDBOX\nerr\n4\nown session\n"
	if got := readFile(t, at.log("shell")); got != want {
		t.Errorf("log %q, want %q", got, want)
	}
}

func TestTerminateReachesOnlyTheMainProcess(t *testing.T) {
	at := testFolder(t)
	p := startShell(t, at, `
sh -c 'trap ": >$AT/wrong" TERM; : >$AT/child; while :; do sleep 0.01; done' &
while [ ! -e $AT/child ]; do sleep 0.01; done
trap "exit 5" TERM`+sayReady+`while :; do sleep 0.01; done`)
	eventually(t, "the script is ready", at.isReady)
	p.terminate()
	<-p.done
	if p.exit.Code != 5 {
		t.Errorf("exit %+v, want that of the trap", p.exit)
	}
	if exists(at.in("wrong")) {
		t.Error("the child got the signal too")
	}
	nothingLeft(t, at)
}

func TestKillEndsEverything(t *testing.T) {
	at := testFolder(t)
	p := startShell(t, at, hideaways+`trap ": >$AT/term" TERM`+sayReady+`while :; do sleep 0.01; done`)
	eventually(t, "the script is ready", at.isReady)
	p.terminate()
	eventually(t, "the signal has come", func() bool { return exists(at.in("term")) })
	p.kill()
	<-p.done
	if p.exit.Signal != 9 {
		t.Errorf("exit %+v, want SIGKILL", p.exit)
	}
	nothingLeft(t, at)
}

func TestKillEndsWhatKeepsForking(t *testing.T) {
	at := testFolder(t)
	p := startShell(t, at, `for i in 1 2 3; do (while :; do (setsid sh -c ': & : &' &); done) & done`+sayReady+`wait`)
	eventually(t, "the script is ready", at.isReady)
	p.kill()
	<-p.done
	nothingLeft(t, at)
}

func TestNothingOutlivesTheRunnersProcess(t *testing.T) {
	at := testFolder(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(self, "doomed-parent", string(at), hideaways+sayReady+"while :; do sleep 1000; done")
	output, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(output).ReadString('\n')
	if line != "started\n" {
		t.Errorf("the parent says %q", line)
	}
	eventually(t, "the script is ready", at.isReady)
	if len(marked(shellSpec(at, "").Name)) < 4 {
		t.Error("the processes cannot be seen")
	}
	_ = parent.Process.Kill()
	_ = parent.Wait()
	eventually(t, "all are dead", func() bool { return len(marked(shellSpec(at, "").Name)) == 0 })
}

func TestNothingOutlivesAKilledSupervisor(t *testing.T) {
	at := testFolder(t)
	p := startShell(t, at, hideaways+sayReady+"while :; do sleep 1000; done")
	eventually(t, "the script is ready", at.isReady)
	for _, pid := range descendants(os.Getpid()) {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if strings.Contains(string(line), filepath.Base(string(at))+"/shell") && strings.Contains(string(line), "pod-supervisor") {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
	<-p.done
	if p.exit.Signal != int(syscall.SIGKILL) {
		t.Errorf("exit %+v, want SIGKILL", p.exit)
	}
	nothingLeft(t, at)
}

func TestProcessThatCannotStart(t *testing.T) {
	at := testFolder(t)
	spec := shellSpec(at, "")
	spec.Argv = []string{at.in("share", "missing")}
	_, err := startProcess(testSupervisor, at, spec)
	if err == nil || !strings.Contains(err.Error(), "missing: no such file or directory") {
		t.Errorf("a missing program: %v", err)
	}
	_, err = startProcess([]string{"/no/supervisor"}, at, shellSpec(at, ""))
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing supervisor: %v", err)
	}
	if _, err = startProcess([]string{"/bin/false"}, at, shellSpec(at, "")); err == nil {
		t.Error("a supervisor that ends at once: no error")
	}
}
