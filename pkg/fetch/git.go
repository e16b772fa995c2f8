package fetch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	gogit "github.com/go-git/go-git/v6"
	gitconfig "github.com/go-git/go-git/v6/config"
	"github.com/go-git/go-git/v6/plumbing"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	"github.com/updraft-dev/updraft/pkg/gitremote"
	"github.com/updraft-dev/updraft/pkg/run"
)

// git brings a commit of a repository and checks it out. The revision is the
// commit's hash.
func git(source autov1alpha1.GitSource, credentials gitremote.Credentials) bring {
	return func(ctx context.Context, root string) (brought, error) {
		dir, err := gitDir(source)
		if err != nil {
			return brought{}, err
		}
		folder := filepath.Join(root, run.SourceFolder)
		remote := gitremote.Remote{URL: source.URL, Credentials: credentials}
		commit, err := checkOut(ctx, folder, remote, source)
		if err != nil {
			return brought{}, err
		}
		if err := checkProject(folder, dir, commit); err != nil {
			return brought{}, err
		}
		return brought{folder: filepath.Join(run.SourceFolder, dir), revision: commit}, nil
	}
}

// gitDir is the folder in the repository that holds Pulumi.yaml.
func gitDir(source autov1alpha1.GitSource) (string, error) {
	switch auth := source.Auth; {
	case source.URL == "":
		return "", errors.New("the source git names no url")
	case auth != nil && auth.SSHPrivateKey != nil:
		return "", errors.New("auth.sshPrivateKey of the source git is not served yet")
	case auth != nil && auth.GitHubApp != nil:
		return "", errors.New("auth.githubApp of the source git is not served yet")
	}
	dir := filepath.Clean(strings.TrimLeft(source.Dir, "/"))
	if !filepath.IsLocal(dir) {
		return "", fmt.Errorf("the dir %q of the source git leads out of the repository", source.Dir)
	}
	return dir, nil
}

// checkOut brings what the ref names into a new folder. The answer is the
// commit. A checkout writes no file through a link, wherever it leads.
func checkOut(ctx context.Context, folder string, remote gitremote.Remote, source autov1alpha1.GitSource) (string, error) {
	repository, err := gogit.PlainInit(folder, false)
	if err != nil {
		return "", fmt.Errorf("cannot make the source folder: %w", err)
	}
	defer repository.Close()
	found, err := remote.Bring(ctx, repository.Storer, source.Ref, source.Shallow)
	if err != nil {
		return "", err
	}
	if err := remember(repository, remote.URL, found); err != nil {
		return "", fmt.Errorf("cannot keep where the source is from: %w", err)
	}
	tree, err := repository.Worktree()
	if err != nil {
		return "", fmt.Errorf("cannot check out commit %s: %w", found.Commit, err)
	}
	if err := tree.Checkout(&gogit.CheckoutOptions{Hash: plumbing.NewHash(found.Commit), Force: true}); err != nil {
		return "", fmt.Errorf("cannot check out commit %s: %w", found.Commit, err)
	}
	return found.Commit, nil
}

// remember gives the repository its remote, as a clone has it: the CLI tells its
// backend where a program is from. What was brought gets a name, so that it is
// no garbage.
func remember(repository *gogit.Repository, url string, found gitremote.Found) error {
	_, err := repository.CreateRemote(&gitconfig.RemoteConfig{Name: "origin", URLs: []string{url}})
	if err != nil {
		return err
	}
	branch, ok := strings.CutPrefix(found.Name, "refs/heads/")
	if !ok {
		return nil
	}
	name := plumbing.NewRemoteReferenceName("origin", branch)
	return repository.Storer.SetReference(plumbing.NewHashReference(name, plumbing.NewHash(found.Commit)))
}

// checkProject finds what a person has to correct, before the run does.
func checkProject(folder, dir, commit string) error {
	inside, err := within(folder, filepath.Join(folder, dir))
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("the repository has no folder %s at commit %s: correct repoDir", dir, commit)
	}
	if err != nil {
		return fmt.Errorf("the folder %s cannot be read: %w", dir, err)
	}
	if !inside {
		return fmt.Errorf("the folder %s is a link that leads out of the repository: correct repoDir", dir)
	}
	for _, name := range []string{"Pulumi.yaml", "Pulumi.yml", "Pulumi.json"} {
		if _, err := os.Stat(filepath.Join(folder, dir, name)); err == nil {
			return nil
		}
	}
	if dir == "." {
		return fmt.Errorf("there is no Pulumi.yaml in the repository's root at commit %s: set repoDir to the folder that has it", commit)
	}
	return fmt.Errorf("there is no Pulumi.yaml in the folder %s at commit %s: correct repoDir", dir, commit)
}

// within says whether a path, its links followed, is in a folder.
func within(folder, path string) (bool, error) {
	root, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return false, err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return false, err
	}
	rest, err := filepath.Rel(root, path)
	return err == nil && filepath.IsLocal(rest), err
}
