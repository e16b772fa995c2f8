package pods

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// nodeKey is the Node's place in the queue: no pod has an empty key.
const nodeKey = ""

// Run registers the Node and runs pods until ctx ends. It returns when all their
// processes are dead.
func (r *Runner) Run(ctx context.Context) error {
	r.sandboxes = map[string]*sandbox{}
	lock, err := lockFolder(r.options.Root)
	if err != nil {
		return fmt.Errorf("cannot use %s, maybe another one does: %w", r.options.Root, err)
	}
	defer lock.Close()
	ctx, stop := context.WithCancel(ctx)
	defer r.alive.Wait()
	defer stop()

	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		return fmt.Errorf("cannot listen for log requests: %w", err)
	}
	r.port = int32(listener.Addr().(*net.TCPAddr).Port)
	r.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	defer r.queue.ShutDown()
	synced := r.watch(ctx)
	server, err := r.serveLogs(listener)
	if err != nil {
		return err
	}
	defer server.Close()
	if err := r.registerNode(ctx); err != nil {
		return err
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced) {
		return nil
	}
	r.clean()
	r.work(ctx)
	return nil
}

// watch keeps the store of pods, with a new list whenever a watch breaks, and
// queues what has changed.
func (r *Runner) watch(ctx context.Context) cache.InformerSynced {
	enqueue := func(object any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
			r.queue.Add(key)
		}
	}
	store, pods := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: r.listPods(),
		ObjectType:    &corev1.Pod{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    enqueue,
			UpdateFunc: func(_, object any) { enqueue(object) },
			DeleteFunc: enqueue,
		},
	})
	_, node := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(r.client.CoreV1().RESTClient(), "nodes", "",
			fields.OneTermEqualSelector("metadata.name", NodeName)),
		ObjectType: &corev1.Node{},
		Handler:    cache.ResourceEventHandlerFuncs{DeleteFunc: func(any) { r.queue.Add(nodeKey) }},
	})
	r.store = store
	go pods.RunWithContext(ctx)
	go node.RunWithContext(ctx)
	return pods.HasSynced
}

func (r *Runner) listPods() cache.ListerWatcher {
	return cache.NewListWatchFromClient(r.client.CoreV1().RESTClient(), "pods", metav1.NamespaceAll, fields.Everything())
}

// work looks at what is queued, again and again if that fails.
func (r *Runner) work(ctx context.Context) {
	go func() {
		<-ctx.Done()
		r.queue.ShutDown()
	}()
	for {
		key, ended := r.queue.Get()
		if ended {
			return
		}
		if err := r.look(ctx, key); err != nil {
			r.options.Log.Warn("Trying again", "pod", key, "error", err)
			r.queue.AddRateLimited(key)
		} else {
			r.queue.Forget(key)
		}
		r.queue.Done(key)
	}
}

// look brings what runs here in line with one pod as it is now.
func (r *Runner) look(ctx context.Context, key string) error {
	if key == nodeKey {
		return r.registerNode(ctx)
	}
	object, _, err := r.store.GetByKey(key)
	if err != nil {
		return err
	}
	pod, _ := object.(*corev1.Pod)
	known := r.forgetGone(key, pod)
	switch {
	case pod == nil:
		return nil
	case known != nil:
		known.update(pod)
		return nil
	case pod.Spec.NodeName == "":
		return r.bind(ctx, pod)
	case pod.Spec.NodeName == NodeName:
		r.adopt(ctx, key, pod)
	}
	return nil
}

// forgetGone returns what runs this pod, and ends what ran another of its name.
func (r *Runner) forgetGone(key string, pod *corev1.Pod) *sandbox {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.sandboxes[key]
	if known == nil || pod != nil && pod.UID == known.uid {
		return known
	}
	known.vanish(errGone)
	delete(r.sandboxes, key)
	return nil
}

// adopt takes charge of a pod of our node until its object is gone.
func (r *Runner) adopt(ctx context.Context, key string, pod *corev1.Pod) {
	s := r.newSandbox(ctx, pod)
	r.mu.Lock()
	r.sandboxes[key] = s
	r.mu.Unlock()
	r.alive.Go(s.run)
}

// bind is all that there is of a scheduler.
func (r *Runner) bind(ctx context.Context, pod *corev1.Pod) error {
	if finished(pod) || pod.DeletionTimestamp != nil || len(pod.Spec.SchedulingGates) > 0 {
		return nil
	}
	err := r.client.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: NodeName},
	}, metav1.CreateOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // Gone, or bound: the watch tells.
	}
	return err
}

// clean removes the folders of pods that went away while nobody looked, and
// kills what may still run in them.
func (r *Runner) clean() {
	there := map[types.UID]bool{}
	for _, object := range r.store.List() {
		there[object.(*corev1.Pod).UID] = true
	}
	folders, _ := os.ReadDir(r.podsFolder())
	for _, folder := range folders {
		uid := types.UID(folder.Name()[strings.LastIndexByte(folder.Name(), '_')+1:])
		if there[uid] {
			continue
		}
		killMarked(mark(uid, ""))
		if err := removeTree(filepath.Join(r.podsFolder(), folder.Name())); err != nil {
			r.options.Log.Warn("Cannot remove the folder of a pod", "error", err)
		}
	}
}

// noticeImages tells the user what stands for the images of a pod.
func (r *Runner) noticeImages(pod *corev1.Pod) {
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for _, container := range containers {
			r.noticeOnce("Image " + container.Image + " is not pulled: dev mode runs the programs of " + r.options.Bin)
			if container.LivenessProbe != nil || container.ReadinessProbe != nil || container.StartupProbe != nil || container.Lifecycle != nil {
				r.noticeOnce("Probes and lifecycle hooks of pods are ignored in dev mode")
			}
		}
	}
}
