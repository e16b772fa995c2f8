package pods

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"
)

// The test binary is also the supervisor, and a Runner's process to be killed.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case "pod-supervisor":
			os.Exit(Supervise(os.Args[2:]))
		case "doomed-parent":
			os.Exit(doomedParent(os.Args[2], os.Args[3]))
		}
	}
	code := m.Run()
	stopCluster()
	os.Exit(code)
}

// doomedParent starts a container, says so, and waits to be killed.
func doomedParent(at, script string) int {
	if _, err := startProcess(testSupervisor, folder(at), shellSpec(folder(at), script)); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("started")
	_ = syscall.Pause() // a signal ends it, and the process
	return 0
}

var testSupervisor = []string{"/proc/self/exe", "pod-supervisor"}

// eventually waits for a condition.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

func testFolder(t *testing.T) folder {
	t.Helper()
	at := folder(t.TempDir())
	if err := at.create(); err != nil {
		t.Fatal(err)
	}
	return at
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}
