package pods

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// mounts makes volumes appear below a pod's share, and go away again.
type mounts struct {
	folder  folder
	mu      sync.Mutex
	volumes map[string]*volume
	made    []made
	count   int
}

// made is a mount that is there, and where what was in its place is kept.
type made struct {
	mount
	hidden string
}

// show makes these the only mounts that are there. What an init container alone
// mounts, git credentials above all, is thus out of reach of what runs later.
func (m *mounts) show(list []mount) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.made) > 0 {
		last := m.made[len(m.made)-1]
		if err := m.hide(last); err != nil {
			return fmt.Errorf("cannot unmount %s: %w", last.volume, err)
		}
		m.made = m.made[:len(m.made)-1]
	}
	for _, each := range list {
		if err := m.mount(each); err != nil {
			return fmt.Errorf("cannot mount %s: %w", each.volume, err)
		}
	}
	return nil
}

func (m *mounts) place(at string) string { return filepath.Join(m.folder.share(), at) }

func (m *mounts) hide(last made) error {
	// The link to a folder is removed, never the folder.
	if err := os.RemoveAll(m.place(last.at)); err != nil {
		return err
	}
	if last.hidden == "" {
		return nil
	}
	return os.Rename(last.hidden, m.place(last.at))
}

func (m *mounts) mount(each mount) error {
	volume := m.volumes[each.volume]
	if each.at == "." {
		return nil // The share is this emptyDir.
	}
	place := m.place(each.at)
	if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
		return err
	}
	hidden, err := m.putAside(place)
	if err != nil {
		return err
	}
	// Noted before it is made, so that what is half made is taken away too.
	m.made = append(m.made, made{mount: each, hidden: hidden})
	if volume.target == "" {
		return volume.write(place)
	}
	if err := os.MkdirAll(volume.target, 0o755); err != nil {
		return err
	}
	return os.Symlink(volume.target, place)
}

// putAside keeps what is in the place of a mount, as a mount would hide it.
func (m *mounts) putAside(place string) (string, error) {
	if _, err := os.Lstat(place); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	m.count++
	hidden := m.folder.hidden(m.count)
	return hidden, os.Rename(place, hidden)
}

func (v *volume) write(place string) error {
	if err := os.MkdirAll(place, 0o755); err != nil {
		return err
	}
	for name, f := range v.files {
		if err := f.write(filepath.Join(place, name)); err != nil {
			return err
		}
	}
	return nil
}

// write puts a file in place at once: who reads it sees the old or the new.
func (f file) write(name string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(name), ".new-")
	if err != nil {
		return err
	}
	_, err = temporary.Write(f.data)
	if err == nil {
		err = temporary.Chmod(f.mode)
	}
	if closed := temporary.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(temporary.Name(), name)
	}
	if err != nil {
		os.Remove(temporary.Name())
	}
	return err
}

// replace changes one file of a volume wherever that is mounted.
func (m *mounts) replace(name, path string, f file) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.volumes[name].files[path] = f
	for _, each := range slices.Clone(m.made) {
		if each.volume != name {
			continue
		}
		if err := f.write(filepath.Join(m.place(each.at), path)); err != nil {
			return err
		}
	}
	return nil
}
