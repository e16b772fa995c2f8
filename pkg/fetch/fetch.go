package fetch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/updraft-dev/updraft/pkg/gitremote"
	"github.com/updraft-dev/updraft/pkg/run"
)

// brought is a source that is in place.
type brought struct {
	// folder that holds Pulumi.yaml: absolute, or relative to the share.
	folder string
	// revision of the source, if it has one.
	revision string
}

// bring puts a source below root.
type bring func(ctx context.Context, root string) (brought, error)

// Fetch brings the source into the share at root and links the workspace to
// it. The credentials are for a git source. The answer is the revision that was fetched, or "" if the source has
// none. With no source it touches nothing: an init container of the user makes
// the workspace.
func Fetch(ctx context.Context, root string, source run.Source, credentials gitremote.Credentials) (string, error) {
	bring, err := choose(source, credentials)
	if err != nil || bring == nil {
		return "", err
	}
	if err := os.RemoveAll(filepath.Join(root, run.SourceFolder)); err != nil {
		return "", fmt.Errorf("cannot clear the source folder: %w", err)
	}
	got, err := bring(ctx, root)
	if err != nil {
		return "", err
	}
	if err := link(root, got.folder); err != nil {
		return "", err
	}
	return got.revision, nil
}

// choose gives the function that brings the source; nil if there is none.
func choose(source run.Source, credentials gitremote.Credentials) (bring, error) {
	var names []string
	var chosen bring
	add := func(name string, b bring) {
		names, chosen = append(names, name), b
	}
	if source.Program != nil {
		add("program", program(*source.Program))
	}
	if source.ProjectInfo != nil {
		add("projectInfo", projectInfo(*source.ProjectInfo))
	}
	if source.Local != nil {
		add("local", local(*source.Local))
	}
	if source.Git != nil {
		add("git", git(*source.Git, credentials))
	}
	if source.Flux != nil {
		add("flux", unserved("flux"))
	}
	if len(names) > 1 {
		return nil, fmt.Errorf("more than one source is set: %s: set one", strings.Join(names, ", "))
	}
	return chosen, nil
}

// unserved stands in for a kind of source that is not there yet.
func unserved(kind string) bring {
	return func(context.Context, string) (brought, error) {
		return brought{}, fmt.Errorf("%s sources are not served yet", kind)
	}
}

// link makes the workspace lead to folder. A link of an earlier attempt is
// replaced; anything else in its place is somebody's, and stays.
func link(root, folder string) error {
	at := filepath.Join(root, run.WorkspaceLink)
	if info, err := os.Lstat(at); err == nil && info.Mode()&os.ModeSymlink == 0 {
		return fmt.Errorf("cannot link the workspace: %s is there already and is no link", at)
	} else if err == nil {
		if err := os.Remove(at); err != nil {
			return fmt.Errorf("cannot link the workspace: %w", err)
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cannot link the workspace: %w", err)
	}
	if err := os.Symlink(folder, at); err != nil {
		return fmt.Errorf("cannot link the workspace: %w", err)
	}
	return nil
}
