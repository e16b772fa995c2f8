package gitremote

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v6/plumbing"
	"github.com/go-git/go-git/v6/plumbing/transport"
	"github.com/go-git/go-git/v6/storage/memory"
	"github.com/google/go-cmp/cmp"

	"github.com/updraft-dev/updraft/pkg/gitremote/gittest"
)

func TestChanged(t *testing.T) {
	r := gittest.New(t)
	r.Git("config", "uploadpack.allowFilter", "true")
	r.Write("README.md", "one")
	r.Write("apps/web/index.ts", "one")
	r.Write("apps/api/index.ts", "one")
	first := r.Commit()
	r.Write("README.md", "two")
	second := r.Commit()
	r.Write("apps/web/index.ts", "two")
	r.Git("rm", "-q", "apps/api/index.ts")
	r.Write("apps/api/main.ts", strings.Repeat("large", 1<<20))
	third := r.Commit()
	remote := Remote{URL: gittest.Serve(t, r).URL}
	for name, c := range map[string]struct {
		from, to string
		want     []string
	}{
		"one commit":  {first, second, []string{"README.md"}},
		"two commits": {first, third, []string{"README.md", "apps/api/index.ts", "apps/api/main.ts", "apps/web/index.ts"}},
		"backwards":   {third, second, []string{"apps/api/index.ts", "apps/api/main.ts", "apps/web/index.ts"}},
		"none":        {second, second, nil},
	} {
		got, err := remote.Changed(t.Context(), c.from, c.to)
		slices.Sort(got)
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
	if _, err := remote.Changed(t.Context(), strings.Repeat("1", 40), second); err == nil {
		t.Error("a commit that does not exist is compared")
	}
}

func TestChangedNeedsAServerThatLeavesOutFiles(t *testing.T) {
	r := gittest.New(t)
	r.Write("README.md", "one")
	first := r.Commit()
	r.Write("README.md", "two")
	second := r.Commit()
	if _, err := (Remote{URL: gittest.Serve(t, r).URL}).Changed(t.Context(), first, second); !errors.Is(err, transport.ErrFilterNotSupported) {
		t.Errorf("error = %v", err)
	}
}

func TestWhatIsTooLargeIsNotHeld(t *testing.T) {
	l := &limited{Storage: memory.NewStorage(), left: 10}
	put := func(n int) error {
		o := l.NewEncodedObject()
		o.SetType(plumbing.BlobObject)
		o.SetSize(int64(n))
		_, err := l.SetEncodedObject(o)
		return err
	}
	if err := put(10); err != nil {
		t.Error(err)
	}
	if err := put(1); !errors.Is(err, ErrTooLarge) {
		t.Errorf("error = %v", err)
	}
}
