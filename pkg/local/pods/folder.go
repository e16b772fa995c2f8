package pods

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

const (
	// rootVariable is how our containers name the place of all their files.
	rootVariable = "UPDRAFT_ROOT"
	// shareMount is where that place is in an image.
	shareMount = "/share"
	// accountMount is where the ServiceAccount admission plugin mounts a token.
	accountMount = "/var/run/secrets/kubernetes.io/serviceaccount"
)

// folder is a pod's place in the host's file system.
type folder string

func (f folder) in(elements ...string) string {
	return filepath.Join(append([]string{string(f)}, elements...)...)
}

func (f folder) share() string                   { return f.in("share") }
func (f folder) home() string                    { return f.in("home") }
func (f folder) tmp() string                     { return f.in("tmp") }
func (f folder) log(container string) string     { return f.in("logs", container+".log") }
func (f folder) emptyDir(volume string) string   { return f.in("volumes", volume) }
func (f folder) hidden(n int) string             { return f.in("hidden", fmt.Sprint(n)) }
func (f folder) message(container string) string { return f.in("termination", container) }

// create makes what every process expects. Only the user may look into it:
// there are the files of Secrets in it.
func (f folder) create() error {
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return err
	}
	for _, name := range []string{"share", "home", "tmp", "logs", "volumes", "hidden", "termination"} {
		if err := os.MkdirAll(f.in(name), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// shared says where a path of an image is on the host; false means that it is
// not below the share.
func (f folder) shared(name string) (string, bool) {
	rest, ok := belowShare(name)
	return filepath.Join(f.share(), rest), ok
}

// belowShare is an image's path relative to the share.
func belowShare(name string) (string, bool) {
	return below(shareMount, path.Clean(name))
}

func below(root, name string) (string, bool) {
	if name == root {
		return ".", true
	}
	return strings.CutPrefix(name, root+"/")
}

// removeTree is os.RemoveAll for trees with folders that their owner may not
// write to, like Go's module cache.
func removeTree(root string) error {
	if os.RemoveAll(root) == nil {
		return nil
	}
	// Errors are left to the second RemoveAll, which says what is in the way.
	_ = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			_ = os.Chmod(name, 0o700)
		}
		return nil
	})
	return os.RemoveAll(root)
}
