package fetch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
	"github.com/updraft-dev/updraft/pkg/gitremote"
	"github.com/updraft-dev/updraft/pkg/gitremote/gittest"
	"github.com/updraft-dev/updraft/pkg/run"
)

func TestFetchGit(t *testing.T) {
	r := gittest.New(t)
	r.Write("Pulumi.yaml", "name: first\n")
	r.Write("infra/app/Pulumi.yaml", "name: app\n")
	r.Write("docs/README.md", "no project\n")
	first := r.Commit()
	r.Git("tag", "--annotate", "--message=A version", "v1")
	r.Write("Pulumi.yaml", "name: second\n")
	second := r.Commit()

	cases := map[string]struct {
		source            autov1alpha1.GitSource
		revision, project string
		fails             string
	}{
		"A branch":                       {source: autov1alpha1.GitSource{Ref: "main"}, revision: second, project: "name: second\n"},
		"A branch in full":               {source: autov1alpha1.GitSource{Ref: "refs/heads/main"}, revision: second, project: "name: second\n"},
		"A branch, shallow":              {source: autov1alpha1.GitSource{Ref: "main", Shallow: true}, revision: second, project: "name: second\n"},
		"A tag":                          {source: autov1alpha1.GitSource{Ref: "v1"}, revision: first, project: "name: first\n"},
		"A commit":                       {source: autov1alpha1.GitSource{Ref: first}, revision: first, project: "name: first\n"},
		"A commit, shallow":              {source: autov1alpha1.GitSource{Ref: first, Shallow: true}, revision: first, project: "name: first\n"},
		"No ref is the default branch":   {revision: second, project: "name: second\n"},
		"A folder":                       {source: autov1alpha1.GitSource{Ref: "main", Dir: "infra/app"}, revision: second, project: "name: app\n"},
		"A folder with slashes around":   {source: autov1alpha1.GitSource{Ref: "main", Dir: "/infra/app/"}, revision: second, project: "name: app\n"},
		"No such branch":                 {source: autov1alpha1.GitSource{Ref: "nowhere"}, fails: `has no branch or tag "nowhere"`},
		"No such commit":                 {source: autov1alpha1.GitSource{Ref: strings.Repeat("ab", 20)}, fails: "has no commit abab"},
		"No such folder":                 {source: autov1alpha1.GitSource{Ref: "main", Dir: "infra/web"}, fails: "has no folder infra/web at commit " + second},
		"A folder without a project":     {source: autov1alpha1.GitSource{Ref: "main", Dir: "docs"}, fails: "no Pulumi.yaml in the folder docs at commit " + second},
		"A folder out of the source":     {source: autov1alpha1.GitSource{Ref: "main", Dir: "../run"}, fails: "leads out of the repository"},
		"SSH keys are refused":           {source: autov1alpha1.GitSource{Auth: &autov1alpha1.GitAuth{SSHPrivateKey: &corev1.SecretKeySelector{}}}, fails: "sshPrivateKey of the source git is not served yet"},
		"GitHub Apps are refused":        {source: autov1alpha1.GitSource{Auth: &autov1alpha1.GitAuth{GitHubApp: &autov1alpha1.GitHubAppAuth{}}}, fails: "githubApp of the source git is not served yet"},
		"A URL of another kind":          {source: autov1alpha1.GitSource{URL: "ssh://git@example.com/r"}, fails: "ssh URLs are not served yet"},
		"A repository that is not there": {source: autov1alpha1.GitSource{URL: "file:///nonexistent"}, fails: "there is no repository file:///nonexistent"},
	}
	for way, url := range map[string]string{"file": r.URL(), "http": gittest.Serve(t, r).URL} {
		for name, c := range cases {
			t.Run(way+"/"+name, func(t *testing.T) {
				root := share(t)
				if c.source.URL == "" {
					c.source.URL = url
				}
				for range 2 { // an init container may be started again
					revision, err := Fetch(t.Context(), root, run.Source{Git: &c.source}, none)
					if c.fails != "" {
						if err == nil || !strings.Contains(err.Error(), c.fails) {
							t.Fatalf("Fetch() error = %v, want one that says %q", err, c.fails)
						}
						continue
					}
					if err != nil {
						t.Fatal(err)
					}
					if revision != c.revision {
						t.Errorf("revision = %q, want %q", revision, c.revision)
					}
					if got := read(t, filepath.Join(root, run.WorkspaceLink, "Pulumi.yaml")); got != c.project {
						t.Errorf("Pulumi.yaml = %q, want %q", got, c.project)
					}
				}
			})
		}
	}
}

func TestAGitSourceWithoutAURLIsRefused(t *testing.T) {
	_, err := Fetch(t.Context(), share(t), run.Source{Git: &autov1alpha1.GitSource{}}, none)
	if err == nil || !strings.Contains(err.Error(), "names no url") {
		t.Errorf("Fetch() error = %v", err)
	}
}

func TestCredentialsAreLeftNowhere(t *testing.T) {
	r := gittest.New(t)
	r.Write("Pulumi.yaml", "name: app\n")
	r.Commit()
	server := gittest.Serve(t, r)
	server.Protect("git", "hush-hush")
	root := share(t)
	source := run.Source{Git: &autov1alpha1.GitSource{URL: server.URL, Ref: "main"}}
	if _, err := Fetch(t.Context(), root, source, none); err == nil || !strings.Contains(err.Error(), "wants credentials") {
		t.Errorf("Fetch() without credentials: %v", err)
	}
	if _, err := Fetch(t.Context(), root, source, gitremote.Credentials{Token: "hush-hush"}); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && strings.Contains(read(t, path), "hush-hush") {
			t.Errorf("%s has the credentials", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A repository can hold links to anywhere. A checkout writes none of its files
// through one, and a project is not looked for behind one.
func TestLinksThatLeadOut(t *testing.T) {
	outside := t.TempDir()
	write(t, filepath.Join(outside, "victim"), "untouched\n")
	write(t, filepath.Join(outside, "Pulumi.yaml"), "name: outside\n")
	r := gittest.New(t)
	r.Write("Pulumi.yaml", "name: app\n")
	if err := os.Symlink(outside, filepath.Join(r.Dir, "out")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../../../../../../../../"+outside+"/victim", filepath.Join(r.Dir, "far")); err != nil {
		t.Fatal(err)
	}
	r.Commit()
	planted := plant(r)

	for name, c := range map[string]struct{ ref, dir, fails string }{
		"They stay links":              {ref: "main"},
		"A project behind one":         {ref: "main", dir: "out", fails: "leads out of the repository"},
		"A file behind one in a tree":  {ref: planted, dir: "out", fails: ""},
		"A missing folder beside them": {ref: "main", dir: "in", fails: "has no folder in"},
	} {
		t.Run(name, func(t *testing.T) {
			root := share(t)
			_, err := Fetch(t.Context(), root, run.Source{Git: &autov1alpha1.GitSource{URL: r.URL(), Ref: c.ref, Dir: c.dir}}, none)
			if c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
				t.Errorf("Fetch() error = %v, want one that says %q", err, c.fails)
			}
			if got := read(t, filepath.Join(outside, "victim")); got != "untouched\n" {
				t.Errorf("the file outside was written: %q", got)
			}
			if _, err := os.Stat(filepath.Join(outside, "planted")); err == nil {
				t.Error("a file was written outside")
			}
		})
	}
}

// plant makes a commit whose tree has both a link "out" and a folder "out" with a
// file in it, as no git would make it.
func plant(r *gittest.Repository) string {
	link := strings.Fields(r.Git("ls-tree", "main", "out"))[2]
	blob := r.Git("rev-parse", "main:Pulumi.yaml")
	inner := r.GitWith("100644 blob "+blob+"\tplanted\n", "mktree")
	tree := r.GitWith("120000 blob "+link+"\tout\n040000 tree "+inner+"\tout\n100644 blob "+blob+"\tPulumi.yaml\n", "mktree")
	commit := r.Git("commit-tree", tree, "-m", "Planted")
	r.Git("branch", "planted", commit)
	return commit
}
