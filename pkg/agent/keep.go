package agent

import (
	"errors"
	"io/fs"
	"os"
)

// keptFile is a file as it was at some time; it may not have been there.
type keptFile struct {
	path    string
	content []byte
	existed bool
}

// keep remembers a file.
func keep(path string) (*keptFile, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &keptFile{path: path}, nil
	}
	if err != nil {
		return nil, err
	}
	return &keptFile{path: path, content: content, existed: true}, nil
}

// restore makes the file what it was.
func (k *keptFile) restore() error {
	if k.existed {
		return os.WriteFile(k.path, k.content, 0o644)
	}
	if err := os.Remove(k.path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
