package pods

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// followPeriod is how often a log that is followed is looked at.
const followPeriod = 100 * time.Millisecond

// serveLogs is the one part of a kubelet's API that is there: kubectl logs.
func (r *Runner) serveLogs(listener net.Listener) (*http.Server, error) {
	certificate, err := selfSigned()
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", r.containerLogs)
	server := &http.Server{
		Handler:           mux,
		TLSConfig:         certificate,
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          slog.NewLogLogger(r.options.Log.Handler(), slog.LevelDebug),
	}
	go func() {
		if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			r.options.Log.Error("Cannot serve logs", "error", err)
		}
	}()
	return server, nil
}

// logOptions are those of corev1.PodLogOptions that raw text can answer.
type logOptions struct {
	follow bool
	tail   int
	limit  int64
}

func logOptionsOf(request *http.Request) (options logOptions, err error) {
	query := request.URL.Query()
	options = logOptions{tail: -1, limit: -1}
	if text := query.Get("follow"); text != "" {
		options.follow, err = strconv.ParseBool(text)
	}
	if text := query.Get("tailLines"); text != "" && err == nil {
		options.tail, err = strconv.Atoi(text)
	}
	if text := query.Get("limitBytes"); text != "" && err == nil {
		options.limit, err = strconv.ParseInt(text, 10, 64)
	}
	if err == nil && query.Get("previous") == "true" {
		err = errors.New("previous terminated container not found: dev mode never restarts one")
	}
	return options, err
}

func (r *Runner) containerLogs(w http.ResponseWriter, request *http.Request) {
	key := request.PathValue("namespace") + "/" + request.PathValue("pod")
	name := request.PathValue("container")
	options, err := logOptionsOf(request)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	object, found, _ := r.store.GetByKey(key)
	pod, _ := object.(*corev1.Pod)
	if !found || pod == nil || containerNamed(pod, name) == nil {
		http.Error(w, fmt.Sprintf("container %q of pod %q does not exist", name, key), http.StatusNotFound)
		return
	}
	file, err := os.Open(r.folderOf(pod).log(name))
	if err != nil {
		http.Error(w, notStarted(pod, name), http.StatusBadRequest)
		return
	}
	defer file.Close()
	writing := func() bool { return r.writing(pod, key, name) }
	if err := copyLog(w, request, file, options, writing); err != nil {
		r.options.Log.Debug("Cannot send a log", "pod", key, "error", err)
	}
}

func notStarted(pod *corev1.Pod, container string) string {
	reason := pod.Status.Reason
	if c := statusOf(&pod.Status, container); c != nil && c.State.Waiting != nil {
		reason = c.State.Waiting.Reason
	}
	return fmt.Sprintf("container %q in pod %q is waiting to start: %s", container, pod.Name, reason)
}

// writing says whether a container may still write to its log.
func (r *Runner) writing(pod *corev1.Pod, key, container string) bool {
	s := r.known(pod.UID, key)
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := statusOf(&s.status, container)
	return c != nil && c.State.Terminated == nil && !phaseIsFinal(s.status.Phase)
}

// copyLog sends a log, and what is added to it while it is followed.
func copyLog(w http.ResponseWriter, request *http.Request, file *os.File, options logOptions, writing func() bool) error {
	if err := seekLines(file, options.tail); err != nil {
		return err
	}
	var from io.Reader = file
	if options.limit >= 0 {
		from = io.LimitReader(file, options.limit)
	}
	for {
		more := options.follow && writing() // Asked first, so that the last words are sent.
		if _, err := io.Copy(w, from); err != nil {
			return err
		}
		if err := http.NewResponseController(w).Flush(); err != nil || !more {
			return err
		}
		select {
		case <-request.Context().Done():
			return nil
		case <-time.After(followPeriod):
		}
	}
}

// seekLines goes to where the last n lines of a file begin; all of it if n is
// negative. It reads from the end, since a log can be long.
func seekLines(file *os.File, n int) error {
	if n < 0 {
		return nil
	}
	end, err := file.Seek(0, io.SeekEnd)
	if err != nil || n == 0 {
		return err
	}
	for size := int64(64 << 10); ; size *= 2 {
		size = min(size, end)
		text := make([]byte, size)
		if _, err := file.ReadAt(text, end-size); err != nil {
			return err
		}
		if at := lastLinesAt(text, n); at > 0 || size == end {
			_, err := file.Seek(end-size+int64(at), io.SeekStart)
			return err
		}
	}
}
