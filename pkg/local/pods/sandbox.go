package pods

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// errGone is why a sandbox ends whose pod is no longer in the API server.
var errGone = errors.New("the pod is gone")

// sandbox is one pod, from the moment it is bound until its object is gone. It
// has one goroutine that goes through the pod's life from top to bottom.
type sandbox struct {
	r      *Runner
	log    *slog.Logger
	uid    types.UID
	folder folder
	mounts *mounts
	plan   *plan

	// alive ends when the object is gone or the Runner ends: from then on there
	// is nobody to tell anything.
	alive  context.Context //nolint:containedctx // the life of the pod
	vanish context.CancelCauseFunc
	// soft ends when the processes have to be asked to end, hard when they have
	// to be killed. Both are set by awaitEnd.
	soft, hard context.Context //nolint:containedctx // the stages of its end
	ask, kill  context.CancelFunc
	// idle is closed when no process of the pod is left, nor will be.
	idle chan struct{}
	// news says that current has changed.
	news chan struct{}

	// writing keeps the status writes in order.
	writing sync.Mutex
	mu      sync.Mutex
	pod     *corev1.Pod
	status  corev1.PodStatus
	overdue bool
}

func (r *Runner) newSandbox(ctx context.Context, pod *corev1.Pod) *sandbox {
	s := &sandbox{
		r:      r,
		log:    r.options.Log.With("pod", pod.Namespace+"/"+pod.Name),
		uid:    pod.UID,
		folder: r.folderOf(pod),
		idle:   make(chan struct{}),
		news:   make(chan struct{}, 1),
		pod:    pod,
		status: *pod.Status.DeepCopy(),
	}
	s.mounts = &mounts{folder: s.folder}
	s.alive, s.vanish = context.WithCancelCause(ctx)
	s.hard, s.kill = context.WithCancel(context.Background())
	s.soft, s.ask = context.WithCancel(s.hard)
	s.news <- struct{}{} // It may already have been deleted.
	return s
}

// update brings the pod as the watch has it.
func (s *sandbox) update(pod *corev1.Pod) {
	s.mu.Lock()
	s.pod = pod
	s.mu.Unlock()
	select {
	case s.news <- struct{}{}:
	default:
	}
}

func (s *sandbox) current() *corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pod
}

// run is the pod's life.
func (s *sandbox) run() {
	defer s.vanish(nil)
	defer s.kill()
	switch pod := s.current(); {
	case finished(pod):
	case pod.Status.StartTime != nil:
		s.lost()
	default:
		s.live()
	}
	s.bury()
	if s.gone() {
		if err := removeTree(string(s.folder)); err != nil {
			s.log.Warn("Cannot remove the folder of a pod", "error", err)
		}
	}
}

func (s *sandbox) gone() bool { return errors.Is(context.Cause(s.alive), errGone) }

// lost is a pod that an earlier process ran, and did not see end.
func (s *sandbox) lost() {
	killMarked(mark(s.uid, ""))
	s.record(func(status *corev1.PodStatus) {
		const message = "The process that ran this pod has ended"
		setAllEnded(status, message)
		setFailed(status, reasonNodeRestart, message)
	})
}

// live runs a pod of which nothing has run.
func (s *sandbox) live() {
	if !s.admit() {
		return
	}
	var watching sync.WaitGroup
	watching.Go(s.awaitEnd)
	s.runContainers()
	close(s.idle)
	watching.Wait() // From here on, bury is the only one to hear news.
	if s.soft.Err() != nil {
		s.record(func(status *corev1.PodStatus) {
			setAllEnded(status, "The container could not be located when the pod was terminated")
		})
	}
}

// runContainers runs what there is to run, and returns when all of it is dead.
func (s *sandbox) runContainers() {
	if !s.prepare() {
		return
	}
	go s.renewTokens()
	pod := s.current()
	for i := range pod.Spec.InitContainers {
		if !s.runInit(&pod.Spec.InitContainers[i]) {
			return
		}
	}
	s.runMain(pod.Spec.Containers)
}

// admit says whether the pod can be run, and puts its startTime on it: the mark
// that processes may exist.
func (s *sandbox) admit() bool {
	pod := s.current()
	var err error
	s.plan, err = planFor(pod, s.r.options.Commands, s.folder)
	s.record(func(status *corev1.PodStatus) {
		*status = newStatus(pod, time.Now())
		if err != nil {
			status.InitContainerStatuses, status.ContainerStatuses = nil, nil
			setFailed(status, reasonUnsupported, err.Error())
		}
	})
	if err == nil {
		s.r.noticeImages(pod)
	}
	return err == nil && s.alive.Err() == nil
}

// bury waits until somebody deletes the pod, lets the object go, and returns
// when it has gone.
func (s *sandbox) bury() {
	for s.current().DeletionTimestamp == nil {
		select {
		case <-s.alive.Done():
			return
		case <-s.news:
		}
	}
	pod := s.current()
	s.persist(func(ctx context.Context) error {
		err := s.r.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: new(int64(0)),
			Preconditions:      metav1.NewUIDPreconditions(string(pod.UID)),
		})
		if apierrors.IsConflict(err) {
			return nil // Another pod has the name by now.
		}
		return err
	})
	<-s.alive.Done()
}
