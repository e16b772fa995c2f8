package event

import (
	"slices"
	"strings"
	"testing"
)

func TestRepositoryKey(t *testing.T) {
	for want, spellings := range map[string][]string{
		"git.example/team/app": {
			"https://git.example/team/app", "https://git.example/team/app.git", "https://git.example/team/app/", "https://git.example/team/app.git/",
			"http://git.example:8080/team/app", "https://GIT.Example/Team/App.git", "https://user@git.example/team/app.git", "https://user:word@git.example/team/app",
			"ssh://git@git.example/team/app.git", "ssh://git@git.example:7999/team/app", "git@git.example:team/app.git", "git.example:team/app",
			"git@git.example:/team/app.git", "git://git.example/team/app", " https://git.example./team/app\n",
		},
		"/srv/app":             {"file:///srv/app", "file:///srv/app.git"},
		"git.example/team/web": {"https://git.example/team/web"},
	} {
		for _, spelling := range spellings {
			if got := RepositoryKey(spelling); got != want {
				t.Errorf("RepositoryKey(%q) = %q, want %q", spelling, got, want)
			}
		}
	}
}

func TestWhoFollowsARefHearsOfItsPushes(t *testing.T) {
	for ref, hears := range map[string]map[string]bool{
		"main":            {"refs/heads/main": true, "refs/tags/main": true, "refs/heads/other": false, "": true},
		"refs/heads/main": {"refs/heads/main": true, "refs/tags/main": false, "": true},
		"v1":              {"refs/tags/v1": true, "refs/tags/v10": false},
		"feature/x":       {"refs/heads/feature/x": true, "refs/heads/x": false},
	} {
		names := PushNames("git@git.example:team/app.git", ref)
		for pushed, want := range hears {
			e, err := NewPush("test", "1", "updraft-system", Push{Repository: RepositoryKey("https://git.example/team/app"), Ref: pushed})
			if err != nil {
				t.Fatal(err)
			}
			about, err := About(e)
			if err != nil || about.Kind != KindPush || !IsPushName(about.Name) {
				t.Errorf("about = %v, %v", about, err)
			}
			if got := slices.Contains(names, about.Name); got != want {
				t.Errorf("who follows %s hears of a push to %q: %v", ref, pushed, got)
			}
		}
	}
	if slices.Contains(PushNames("https://git.example/team/app", "main"), Push{Repository: RepositoryKey("https://git.example/team/web"), Ref: "refs/heads/main"}.Name()) {
		t.Error("it hears of another repository")
	}
}

// FuzzRepositoryKey reads whatever a payload may call a repository: its key has
// no password, and is a key of itself.
func FuzzRepositoryKey(f *testing.F) {
	f.Add("git.example", "team/app")
	f.Add("", "")
	f.Add("[::1]:22", "a b/c@d")
	f.Fuzz(func(t *testing.T, host, path string) {
		for _, form := range []string{"https://user:hush-hush@" + host + "/" + path, "hush-hush@" + host + ":" + path} {
			key := RepositoryKey(form)
			if strings.Contains(key, "hush-hush") && !strings.Contains(host+path, "@") && !strings.ContainsAny(host, "/:%") && !strings.Contains(path, "hush-hush") {
				t.Errorf("RepositoryKey(%q) = %q", form, key)
			}
		}
	})
}
