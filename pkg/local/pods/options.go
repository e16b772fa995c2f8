package pods

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// NodeName is the name of the Node that all pods are bound to.
const NodeName = "local"

// Options say where and how pods are run.
type Options struct {
	// Config has admin rights on the API server.
	Config *rest.Config
	// Root is the folder of the pods' folders, pods/<namespace>_<name>_<uid>,
	// and of the claims, claims/<namespace>/<name>. One Runner at a time uses it.
	Root string
	// Bin is put first in the PATH of every process.
	Bin string
	// Commands are the programs which stand for those of our images: the
	// absolute path in an image, and the program of this machine.
	Commands map[string]string
	// Supervisor starts a program that calls Supervise. Arguments are added,
	// which only tell a reader of ps what is supervised.
	Supervisor []string
	// Log is where the Runner logs to; nil discards.
	Log *slog.Logger
	// Notice is told, once each, what a user should know; it may be nil.
	Notice func(string)
}

// Runner runs the pods of one API server.
type Runner struct {
	options Options
	client  kubernetes.Interface
	queue   workqueue.TypedRateLimitingInterface[string]
	store   cache.Store
	port    int32
	// after is time.After, but in tests of what comes late.
	after func(time.Duration) <-chan time.Time
	alive sync.WaitGroup

	mu        sync.Mutex
	sandboxes map[string]*sandbox
	noticed   map[string]bool
}

// New makes a Runner, which does nothing before Run.
func New(options Options) (*Runner, error) {
	if !supported {
		return nil, errors.New("cannot run pods: this needs Linux")
	}
	if options.Config == nil || options.Root == "" || len(options.Supervisor) == 0 {
		return nil, errors.New("cannot run pods: Config, Root and Supervisor are needed")
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	if options.Notice == nil {
		options.Notice = func(string) {}
	}
	if err := options.makeAbsolute(); err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(unlimited(options.Config))
	if err != nil {
		return nil, fmt.Errorf("cannot make a client: %w", err)
	}
	return &Runner{
		options: options,
		client:  client,
		store:   cache.NewStore(cache.DeletionHandlingMetaNamespaceKeyFunc),
		after:   time.After,
		noticed: map[string]bool{},
	}, nil
}

// makeAbsolute is needed since every process has a working directory of its own.
func (o *Options) makeAbsolute() error {
	commands := make(map[string]string, len(o.Commands))
	maps.Copy(commands, o.Commands)
	o.Commands = commands
	for image, program := range commands {
		absolute, err := filepath.Abs(program)
		if err != nil {
			return fmt.Errorf("cannot resolve %s: %w", program, err)
		}
		commands[image] = absolute
	}
	for _, folder := range []*string{&o.Root, &o.Bin} {
		if *folder == "" {
			continue
		}
		absolute, err := filepath.Abs(*folder)
		if err != nil {
			return fmt.Errorf("cannot resolve %s: %w", *folder, err)
		}
		*folder = absolute
	}
	return nil
}

// unlimited lifts the default of five requests a second: there is one API
// server, on loopback, and a pod's start takes a dozen requests.
func unlimited(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS = -1
	return config
}

// noticeOnce tells the user something the first time that it comes up.
func (r *Runner) noticeOnce(message string) {
	r.mu.Lock()
	known := r.noticed[message]
	r.noticed[message] = true
	r.mu.Unlock()
	if !known {
		r.options.Notice(message)
	}
}

// folderOf is where a pod lives.
func (r *Runner) folderOf(pod *corev1.Pod) folder {
	return folder(filepath.Join(r.podsFolder(), pod.Namespace+"_"+pod.Name+"_"+string(pod.UID)))
}

func (r *Runner) podsFolder() string { return filepath.Join(r.options.Root, "pods") }

func (r *Runner) claimsFolder(namespace string) string {
	return filepath.Join(r.options.Root, "claims", namespace)
}

// known is what runs a pod, or nil.
func (r *Runner) known(uid types.UID, key string) *sandbox {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.sandboxes[key]; s != nil && s.uid == uid {
		return s
	}
	return nil
}
