package pods

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const forever = "while :; do sleep 0.05; done"

func running(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning }

func over(pod *corev1.Pod) bool { return finished(pod) }

// gitCredentials gives bootstrap a Secret, and the main container a token.
func gitCredentials(spec *corev1.PodSpec) {
	token := corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", Audience: "updraft", ExpirationSeconds: new(int64(600))}},
	}}}
	spec.Volumes = append(spec.Volumes,
		corev1.Volume{Name: "creds", VolumeSource: secretVolume("git")},
		corev1.Volume{Name: "report", VolumeSource: token},
		corev1.Volume{Name: "state", VolumeSource: claimVolume("state")})
	init, main := &spec.InitContainers[0], &spec.Containers[0]
	init.VolumeMounts = append(init.VolumeMounts, corev1.VolumeMount{Name: "creds", MountPath: "/share/git"})
	main.VolumeMounts = append(main.VolumeMounts,
		corev1.VolumeMount{Name: "report", MountPath: "/share/report"},
		corev1.VolumeMount{Name: "state", MountPath: "/share/state"})
	main.Env = append(main.Env, corev1.EnvVar{Name: "GREETING", ValueFrom: secretEnv("git", "user", false)})
}

func (w *world) claim(name string) {
	w.t.Helper()
	_, err := w.client.CoreV1().PersistentVolumeClaims(w.namespace).Create(w.t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}, metav1.CreateOptions{})
	must(w.t, err)
}

func TestPodRuns(t *testing.T) {
	w := newWorld(t)
	w.secret("git", map[string]string{"user": "hello"})
	w.claim("state")
	w.create(script("run", "cat $UPDRAFT_ROOT/git/user", `
echo "$GREETING $HOSTNAME"; pwd
if [ -e "$UPDRAFT_ROOT/git" ]; then echo "credentials"; fi
echo kept >>$(UPDRAFT_ROOT)/state/file
echo done >$UPDRAFT_TERMINATION_LOG`, gitCredentials))
	pod := w.untilPhase("run", corev1.PodSucceeded)

	if got := w.log("run", "bootstrap"); got != "hello" {
		t.Errorf("log of bootstrap: %q", got)
	}
	if got, want := w.log("run", "pulumi"), "hello run\n"+w.files(pod).share()+"\n"; got != want {
		t.Errorf("log of pulumi: %q, want %q", got, want)
	}
	if got := readFile(t, filepath.Join(w.options.Root, "claims", w.namespace, "state", "file")); got != "kept\n" {
		t.Errorf("the claim has %q", got)
	}
	main := pod.Status.ContainerStatuses[0]
	end := main.State.Terminated
	if end == nil || end.ExitCode != 0 || end.Reason != "Completed" || end.Message != "done\n" || end.StartedAt.IsZero() || end.FinishedAt.IsZero() {
		t.Errorf("state of pulumi: %+v", main.State)
	}
	if id := "local://" + string(pod.UID) + "/pulumi"; main.ContainerID != id || end.ContainerID != id {
		t.Errorf("containerID %s", main.ContainerID)
	}
	if s := pod.Status; s.PodIP != loopback || s.HostIP != loopback || s.StartTime == nil || pod.Spec.NodeName != NodeName || s.QOSClass == "" {
		t.Errorf("status %+v", s)
	}
	want := map[string]string{"PodScheduled": "True", "Initialized": "True/PodCompleted", "ContainersReady": "False/PodCompleted", "Ready": "False/PodCompleted"}
	if diff := cmp.Diff(want, conditionsIn(&pod.Status)); diff != "" {
		t.Errorf("conditions (-want +got)\n%s", diff)
	}

	w.delete("run", 30)
	w.untilGone("run")
	eventually(t, "the folder is gone", func() bool { return !exists(string(w.files(pod))) })
	if !exists(filepath.Join(w.options.Root, "claims", w.namespace, "state", "file")) {
		t.Error("the claim is gone too")
	}
}

func TestNoticesComeOnce(t *testing.T) {
	w := newWorld(t)
	w.create(script("one", "", ""))
	w.create(script("two", "", ""))
	w.untilPhase("one", corev1.PodSucceeded)
	w.untilPhase("two", corev1.PodSucceeded)
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.notices) != 2 || !strings.Contains(strings.Join(w.notices, "\n"), "Image theirs is not pulled") {
		t.Errorf("notices: %q", w.notices)
	}
}

func TestPodFails(t *testing.T) {
	w := newWorld(t)
	w.create(script("main", "", "echo why; exit 3", func(spec *corev1.PodSpec) {
		spec.Containers[0].TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
	}))
	w.create(script("init", "exit 4", ""))
	w.create(script("missing", "rm $UPDRAFT_ROOT/agent", ""))

	pod := w.untilPhase("main", corev1.PodFailed)
	if end := pod.Status.ContainerStatuses[0].State.Terminated; end.ExitCode != 3 || end.Reason != "Error" || end.Message != "why\n" {
		t.Errorf("main: %+v", end)
	}
	pod = w.untilPhase("init", corev1.PodFailed)
	if end := pod.Status.InitContainerStatuses[0].State.Terminated; end.ExitCode != 4 {
		t.Errorf("init: %+v", end)
	}
	if waiting := pod.Status.ContainerStatuses[0].State.Waiting; waiting == nil || waiting.Reason != "PodInitializing" {
		t.Errorf("main after init: %+v", pod.Status.ContainerStatuses[0].State)
	}
	pod = w.untilPhase("missing", corev1.PodFailed)
	if end := pod.Status.ContainerStatuses[0].State.Terminated; end.ExitCode != 128 || end.Reason != "StartError" || !strings.Contains(end.Message, "no such file") {
		t.Errorf("missing program: %+v", end)
	}
}

func TestContainersRunSideBySide(t *testing.T) {
	w := newWorld(t)
	w.create(script("run", "mkfifo $UPDRAFT_ROOT/pipe", "echo hi >$UPDRAFT_ROOT/pipe", func(spec *corev1.PodSpec) {
		second := *spec.Containers[0].DeepCopy()
		second.Name = "second"
		second.Args = []string{"-ec", "cat $UPDRAFT_ROOT/pipe"}
		spec.Containers = append(spec.Containers, second)
	}))
	w.untilPhase("run", corev1.PodSucceeded)
	if got := w.log("run", "second"); got != "hi\n" {
		t.Errorf("log of second: %q", got)
	}
}

func TestWhatCannotBeRunIsSaid(t *testing.T) {
	w := newWorld(t)
	w.create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers:    []corev1.Container{{Name: "nginx", Image: "nginx"}},
	}})
	pod := w.untilPhase("web", corev1.PodFailed)
	want := "Container nginx has no command, and dev mode does not run the image nginx: leave it out, or run it on a cluster"
	if pod.Status.Reason != "Unsupported" || pod.Status.Message != want {
		t.Errorf("status %+v", pod.Status)
	}
	if _, err := w.tryLog("web", "nginx"); !apierrors.IsBadRequest(err) {
		t.Errorf("its log: %v", err)
	}
	w.delete("web", 30)
	w.untilGone("web")
}

func TestMissingSecretIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	waitsFor := func(message string) func(*corev1.Pod) bool {
		return func(pod *corev1.Pod) bool {
			if len(pod.Status.InitContainerStatuses) == 0 {
				return false
			}
			waiting := pod.Status.InitContainerStatuses[0].State.Waiting
			if main := pod.Status.ContainerStatuses[0].State.Waiting; pod.Status.InitContainerStatuses[0].State.Terminated != nil {
				waiting = main
			}
			return pod.Status.Phase == corev1.PodPending && waiting != nil && waiting.Reason == "CreateContainerConfigError" && waiting.Message == message
		}
	}
	w.claim("state")
	w.create(script("run", "", "echo $GREETING $MORE", gitCredentials, func(spec *corev1.PodSpec) {
		spec.Containers[0].Env = append(spec.Containers[0].Env, corev1.EnvVar{Name: "MORE", ValueFrom: configEnv("more", "key", false)})
	}))
	w.until("run", "waiting for its volume", waitsFor(`MountVolume.SetUp failed for volume "creds" : secret "git" not found`))
	w.secret("git", map[string]string{"user": "hello"})
	w.until("run", "waiting for its environment", waitsFor(`configmap "more" not found`))
	_, err := w.client.CoreV1().ConfigMaps(w.namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "more"}, Data: map[string]string{"key": "again"}}, metav1.CreateOptions{})
	must(t, err)
	w.untilPhase("run", corev1.PodSucceeded)
	if got := w.log("run", "pulumi"); got != "hello again\n" {
		t.Errorf("log %q", got)
	}

	w.create(script("never", "", "", func(spec *corev1.PodSpec) {
		spec.InitContainers[0].Env = append(spec.InitContainers[0].Env, corev1.EnvVar{Name: "X", ValueFrom: secretEnv("git", "none", false)})
	}))
	w.until("never", "waiting", waitsFor("couldn't find key none in Secret "+w.namespace+"/git"))
	w.delete("never", 30)
	w.untilGone("never")
}

func TestDeletionAsksTheMainProcess(t *testing.T) {
	w := newWorld(t)
	// The child tells whether the signal came to it; the finalizer is the Job
	// controller's, and keeps the pod to be looked at.
	pod := script("run", "", `
AT=$UPDRAFT_ROOT
$AT/agent -c 'trap ": >$UPDRAFT_ROOT/wrong" TERM; : >$UPDRAFT_ROOT/child; `+forever+`' &
while [ ! -e $AT/child ]; do sleep 0.01; done
trap "echo asked; exit 0" TERM; : >$AT/ready; `+forever)
	pod.Finalizers = []string{"batch.kubernetes.io/job-tracking"}
	pod = w.create(pod)
	eventually(t, "the script is ready", func() bool { return exists(filepath.Join(w.files(pod).share(), "ready")) })
	w.until("run", "Running", running)

	w.delete("run", 60)
	pod = w.until("run", "let go", func(pod *corev1.Pod) bool { return over(pod) && *pod.DeletionGracePeriodSeconds == 0 })
	if pod.Status.Phase != corev1.PodSucceeded || w.log("run", "pulumi") != "asked\n" {
		t.Errorf("status %+v", pod.Status)
	}
	if exists(filepath.Join(w.files(pod).share(), "wrong")) {
		t.Error("the child got the signal too")
	}
	if left := marked(mark(pod.UID, "")); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
	w.release("run")
	w.untilGone("run")
	eventually(t, "the folder is gone", func() bool { return !exists(string(w.files(pod))) })
}

func TestDeletionKillsAfterTheGrace(t *testing.T) {
	w := newWorld(t)
	pod := script("run", "", `export AT=$UPDRAFT_ROOT; `+hideaways+`trap "" TERM; : >$AT/ready; `+forever)
	pod.Finalizers = []string{"batch.kubernetes.io/job-tracking"}
	pod = w.create(pod)
	eventually(t, "the script is ready", func() bool { return exists(filepath.Join(w.files(pod).share(), "ready")) })
	w.until("run", "Running", running)
	w.delete("run", 1)
	pod = w.until("run", "let go", func(pod *corev1.Pod) bool { return over(pod) && *pod.DeletionGracePeriodSeconds == 0 })
	if end := pod.Status.ContainerStatuses[0].State.Terminated; pod.Status.Phase != corev1.PodFailed || end.ExitCode != 137 || end.Signal != 9 {
		t.Errorf("status %+v", pod.Status)
	}
	if left := marked(mark(pod.UID, "")); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}

func TestAShorterGraceHolds(t *testing.T) {
	w := newWorld(t)
	pod := w.create(script("run", "", `trap ": >$UPDRAFT_ROOT/asked" TERM; : >$UPDRAFT_ROOT/ready; `+forever))
	eventually(t, "the script is ready", func() bool { return exists(filepath.Join(w.files(pod).share(), "ready")) })
	w.delete("run", 3600)
	eventually(t, "it is asked", func() bool { return exists(filepath.Join(w.files(pod).share(), "asked")) })
	w.delete("run", 1)
	w.untilGone("run")
}

func TestForcedDeletionKillsAtOnce(t *testing.T) {
	w := newWorld(t)
	pod := w.create(script("run", "", `trap "" TERM; `+forever))
	w.until("run", "Running", running)
	w.delete("run", 0)
	eventually(t, "all is gone", func() bool { return len(marked(mark(pod.UID, ""))) == 0 && !exists(string(w.files(pod))) })

	// The name is free for another, which is not disturbed by what is left of the first.
	second := w.create(script("run", "", "echo second"))
	w.untilPhase("run", corev1.PodSucceeded)
	if !exists(string(w.files(second))) {
		t.Error("the folder of the second is gone")
	}
}

func TestDeletionBeforeAnythingRan(t *testing.T) {
	w := newWorld(t)
	pod := script("run", forever, "")
	pod.Finalizers = []string{"batch.kubernetes.io/job-tracking"}
	w.create(pod)
	w.until("run", "initializing", func(pod *corev1.Pod) bool {
		return len(pod.Status.InitContainerStatuses) > 0 && pod.Status.InitContainerStatuses[0].State.Running != nil
	})
	w.delete("run", 30)
	got := w.until("run", "let go", func(pod *corev1.Pod) bool { return over(pod) && *pod.DeletionGracePeriodSeconds == 0 })
	if end := got.Status.ContainerStatuses[0].State.Terminated; end == nil || end.Reason != "ContainerStatusUnknown" || got.Status.Phase != corev1.PodFailed {
		t.Errorf("status %+v", got.Status)
	}
}

func TestDeletionBeforeTheRunnerIsThere(t *testing.T) {
	w := quietWorld(t)
	w.create(script("run", "", forever, func(spec *corev1.PodSpec) { spec.NodeName = NodeName }))
	w.delete("run", 3600)
	if w.pod("run").DeletionTimestamp == nil {
		t.Fatal("it is not being deleted")
	}
	w.run()
	w.untilGone("run")
}

func TestDeadline(t *testing.T) {
	w := newWorld(t)
	w.create(script("run", "", forever, func(spec *corev1.PodSpec) { spec.ActiveDeadlineSeconds = new(int64(1)) }))
	pod := w.untilPhase("run", corev1.PodFailed)
	if pod.Status.Reason != "DeadlineExceeded" || pod.Status.ContainerStatuses[0].State.Terminated == nil {
		t.Errorf("status %+v", pod.Status)
	}
}

func TestTheEndOfTheRunnerIsTheEndOfAll(t *testing.T) {
	w := newWorld(t)
	pod := w.create(script("run", "", `export AT=$UPDRAFT_ROOT; `+hideaways+`trap "echo asked; exit 0" TERM; : >$AT/ready; `+forever))
	eventually(t, "the script is ready", func() bool { return exists(filepath.Join(w.files(pod).share(), "ready")) })
	w.until("run", "Running", running)
	w.stop()
	if left := marked(mark(pod.UID, "")); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
	if got := readFile(t, w.files(pod).log("pulumi")); got != "asked\n" {
		t.Errorf("log %q", got)
	}

	// The next one finds what the first one left.
	orphan := exec.Command("sleep", "1000")
	orphan.Env = []string{sandboxMark + "=" + mark(pod.UID, "pulumi")}
	must(t, orphan.Start())
	w.run()
	pod = w.untilPhase("run", corev1.PodFailed)
	if end := pod.Status.ContainerStatuses[0].State.Terminated; pod.Status.Reason != "NodeRestart" || end == nil || end.ExitCode != 137 {
		t.Errorf("status %+v", pod.Status)
	}
	_ = orphan.Wait() // It has been killed, or this would last.
	if got := w.log("run", "pulumi"); got != "asked\n" {
		t.Errorf("log %q", got)
	}

	// And the one after that what has been deleted in between.
	w.stop()
	w.delete("run", 0)
	w.untilGone("run")
	w.run()
	eventually(t, "the folder is gone", func() bool { return !exists(string(w.files(pod))) })
}

func TestOneRunnerPerRoot(t *testing.T) {
	w := newWorld(t)
	eventually(t, "the first one runs", func() bool { return exists(filepath.Join(w.options.Root, "lock")) })
	second, err := New(w.options)
	must(t, err)
	if err := second.Run(t.Context()); err == nil {
		t.Error("a second Runner uses the same folder")
	}
}

func TestNode(t *testing.T) {
	w := newWorld(t)
	nodes := w.client.CoreV1().Nodes()
	isReady := func(uid types.UID) func() bool {
		return func() bool {
			node, err := nodes.Get(t.Context(), NodeName, metav1.GetOptions{})
			return err == nil && node.UID != uid && len(node.Spec.Taints) == 0 && node.Status.DaemonEndpoints.KubeletEndpoint.Port == w.runner.port &&
				len(node.Status.Conditions) == 1 && node.Status.Conditions[0].Status == corev1.ConditionTrue
		}
	}
	w.create(script("run", "", ""))
	w.untilPhase("run", corev1.PodSucceeded) // So the Runner has a port by now.
	eventually(t, "the node is ready", isReady(""))
	node, err := nodes.Get(t.Context(), NodeName, metav1.GetOptions{})
	must(t, err)
	must(t, nodes.Delete(t.Context(), NodeName, metav1.DeleteOptions{}))
	eventually(t, "the node is back", isReady(node.UID))
}

func TestTokens(t *testing.T) {
	w := quietWorld(t)
	w.secret("git", map[string]string{"user": "hello"})
	w.claim("state")
	runner, err := New(w.options)
	must(t, err)
	fire := make(chan time.Time)
	runner.after = func(time.Duration) <-chan time.Time { return fire }
	w.start(runner)
	pod := w.create(script("run", "", forever, gitCredentials))
	w.until("run", "Running", running)
	file := filepath.Join(w.files(pod).share(), "report", "token")
	first := readFile(t, file)
	review := func(token string) authenticationv1.TokenReviewStatus {
		t.Helper()
		answer, err := w.client.AuthenticationV1().TokenReviews().Create(t.Context(), &authenticationv1.TokenReview{
			Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{"updraft"}},
		}, metav1.CreateOptions{})
		must(t, err)
		return answer.Status
	}
	status := review(first)
	if !status.Authenticated || status.User.Extra["authentication.kubernetes.io/pod-uid"].String() != "["+string(pod.UID)+"]" {
		t.Errorf("review %+v", status)
	}
	fire <- time.Now()
	eventually(t, "the token is another", func() bool { return readFile(t, file) != first })
	if second := readFile(t, file); !review(second).Authenticated {
		t.Error("the second token is not good")
	}
}

func TestLogs(t *testing.T) {
	w := newWorld(t)
	pod := w.create(script("run", "", "echo one; echo two; echo three; while [ ! -e $UPDRAFT_ROOT/go ]; do sleep 0.01; done; echo four"))
	w.until("run", "Running", running)
	stream, err := w.client.CoreV1().Pods(w.namespace).GetLogs("run", &corev1.PodLogOptions{Container: "pulumi", Follow: true}).Stream(t.Context())
	must(t, err)
	defer stream.Close()
	lines := bufio.NewScanner(stream)
	for _, want := range []string{"one", "two", "three"} {
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("line %q, want %q", lines.Text(), want)
		}
	}
	must(t, os.WriteFile(filepath.Join(w.files(pod).share(), "go"), nil, 0o644))
	if !lines.Scan() || lines.Text() != "four" {
		t.Errorf("line %q after the others", lines.Text())
	}
	if lines.Scan() {
		t.Errorf("line %q after the last", lines.Text())
	}
	w.untilPhase("run", corev1.PodSucceeded)
	if got := w.log("run", "pulumi", func(o *corev1.PodLogOptions) { o.TailLines = new(int64(2)) }); got != "three\nfour\n" {
		t.Errorf("two lines: %q", got)
	}
	if got := w.log("run", "pulumi", func(o *corev1.PodLogOptions) { o.LimitBytes = new(int64(5)) }); got != "one\nt" {
		t.Errorf("five bytes: %q", got)
	}
	if _, err := w.tryLog("run", "pulumi", func(o *corev1.PodLogOptions) { o.Previous = true }); !apierrors.IsBadRequest(err) {
		t.Errorf("the previous one: %v", err)
	}
}

func TestABrokenWatchIsMadeAnew(t *testing.T) {
	w := quietWorld(t)
	network := &breaker{open: map[*cuttable]bool{}}
	w.options.Config = unlimited(cluster.config)
	w.options.Config.Wrap(network.wrap)
	w.run()
	w.create(script("before", "", ""))
	w.untilPhase("before", corev1.PodSucceeded)
	network.cut()
	w.create(script("after", "", ""))
	w.untilPhase("after", corev1.PodSucceeded)
	if network.cuts == 0 {
		t.Error("no watch was cut")
	}
}

func TestStatusNeverGoesOntoAnotherPod(t *testing.T) {
	w := quietWorld(t)
	pod := w.create(script("run", "", "", func(spec *corev1.PodSpec) { spec.NodeName = "elsewhere" }))
	other := pod.DeepCopy()
	other.UID = "another"
	status := newStatus(other, time.Now())
	_, err := w.client.CoreV1().Pods(w.namespace).Patch(t.Context(), "run", types.StrategicMergePatchType, statusPatch(other, &status), metav1.PatchOptions{}, "status")
	if !apierrors.IsConflict(err) && !apierrors.IsInvalid(err) {
		t.Errorf("the write was answered with %v", err)
	}
}
