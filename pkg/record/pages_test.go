package record

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestListsAreReadPageByPageOneAfterTheOther(t *testing.T) {
	var asked []string
	list := func(name string, next map[string]string) func(metav1.ListOptions) (string, error) {
		return func(o metav1.ListOptions) (string, error) {
			if o.Limit != page {
				t.Errorf("a page of %d", o.Limit)
			}
			asked = append(asked, name+o.Continue)
			return next[o.Continue], nil
		}
	}
	err := Pages(list("stacks", map[string]string{"": "2", "2": "3"}), list("updates", nil))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"stacks", "stacks2", "stacks3", "updates"}, asked); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	broken := errors.New("x")
	if err := Pages(func(metav1.ListOptions) (string, error) { return "", broken }, list("never", nil)); !errors.Is(err, broken) {
		t.Errorf("error = %v", err)
	}
	if asked[len(asked)-1] == "never" {
		t.Error("It goes on after an error")
	}
}
