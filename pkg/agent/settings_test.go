package agent

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	autov1alpha1 "github.com/updraft-dev/updraft/pkg/apis/auto/v1alpha1"
)

func TestSettings(t *testing.T) {
	yes := true
	inline := func(text string) *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: []byte(text)} }
	cases := map[string]struct {
		item  autov1alpha1.ConfigItem
		want  setting
		fails string
	}{
		"A string belongs to the project": {
			item: autov1alpha1.ConfigItem{Key: "color", Value: inline(`"blue"`)},
			want: setting{key: "app:color", text: "blue"}},
		"A key with a namespace keeps it": {
			item: autov1alpha1.ConfigItem{Key: "aws:region", Value: inline(`"eu-central-1"`)},
			want: setting{key: "aws:region", text: "eu-central-1"}},
		"A colon inside of a path is no namespace": {
			item: autov1alpha1.ConfigItem{Key: `tags["a:b"]`, Path: &yes, Value: inline(`"x"`)},
			want: setting{key: `app:tags["a:b"]`, path: true, text: "x"}},
		"A path may have a namespace": {
			item: autov1alpha1.ConfigItem{Key: `aws:tags.owner`, Path: &yes, Value: inline(`"x"`)},
			want: setting{key: `aws:tags.owner`, path: true, text: "x"}},
		"A number is JSON": {
			item: autov1alpha1.ConfigItem{Key: "n", Value: inline(`12345678901234567890`)},
			want: setting{key: "app:n", structured: json.RawMessage(`12345678901234567890`)}},
		"A structure is JSON in its shortest form": {
			item: autov1alpha1.ConfigItem{Key: "o", Secret: &yes, Value: inline(`{ "a": [1, 2] }`)},
			want: setting{key: "app:o", secret: true, structured: json.RawMessage(`{"a":[1,2]}`)}},
		"A value is found in the environment": {
			item: autov1alpha1.ConfigItem{Key: "e", ValueFrom: &autov1alpha1.ConfigValueFrom{Env: "HERE"}},
			want: setting{key: "app:e", text: "42"}},
		"A value of the environment may be JSON": {
			item: autov1alpha1.ConfigItem{Key: "e", ValueFrom: &autov1alpha1.ConfigValueFrom{Env: "HERE", JSON: &yes}},
			want: setting{key: "app:e", structured: json.RawMessage("42")}},
		"A relative file is below the share, and taken as it is": {
			item: autov1alpha1.ConfigItem{Key: "f", Secret: &yes, ValueFrom: &autov1alpha1.ConfigValueFrom{Path: "secrets/a/key"}},
			want: setting{key: "app:f", secret: true, text: "-----\nkey\n"}},
		"An absolute file is where it is": {
			item: autov1alpha1.ConfigItem{Key: "f", ValueFrom: &autov1alpha1.ConfigValueFrom{Path: "/etc/value"}},
			want: setting{key: "app:f", text: "hunter2"}},
		"JSON of a file that is a string is a string": {
			item: autov1alpha1.ConfigItem{Key: "f", ValueFrom: &autov1alpha1.ConfigValueFrom{Path: "/etc/string.json", JSON: &yes}},
			want: setting{key: "app:f", text: "s"}},

		"A variable that is not set is named": {
			item:  autov1alpha1.ConfigItem{Key: "e", ValueFrom: &autov1alpha1.ConfigValueFrom{Env: "GONE"}},
			fails: "The configuration value e cannot be set: the environment variable GONE is not set in the container"},
		"A file that is not there is named": {
			item:  autov1alpha1.ConfigItem{Key: "f", ValueFrom: &autov1alpha1.ConfigValueFrom{Path: "gone"}},
			fails: "The configuration value f cannot be set: there is no file /share/gone in the container"},
		"A file that cannot be read is named": {
			item:  autov1alpha1.ConfigItem{Key: "f", ValueFrom: &autov1alpha1.ConfigValueFrom{Path: "/denied"}},
			fails: "the file /denied cannot be read: permission denied"},
		"What is no JSON is not quoted": {
			item:  autov1alpha1.ConfigItem{Key: "f", ValueFrom: &autov1alpha1.ConfigValueFrom{Path: "/etc/value", JSON: &yes}},
			fails: "it is not JSON"},
		"Null is no value": {
			item:  autov1alpha1.ConfigItem{Key: "f", Value: inline("null")},
			fails: "it is null"},
		"A path takes no structure": {
			item:  autov1alpha1.ConfigItem{Key: "a.b", Path: &yes, Value: inline("1")},
			fails: "its key is a path, which takes only a string"},
		"A value and a place are too much": {
			item:  autov1alpha1.ConfigItem{Key: "a", Value: inline("1"), ValueFrom: &autov1alpha1.ConfigValueFrom{Env: "HERE"}},
			fails: "it has both value and valueFrom"},
		"No value and no place are too little": {
			item: autov1alpha1.ConfigItem{Key: "a"}, fails: "it has neither value nor valueFrom"},
		"Two places are too much": {
			item:  autov1alpha1.ConfigItem{Key: "a", ValueFrom: &autov1alpha1.ConfigValueFrom{Env: "HERE", Path: "x"}},
			fails: "its valueFrom has both env and path"},
		"An empty place is none": {
			item: autov1alpha1.ConfigItem{Key: "a", ValueFrom: &autov1alpha1.ConfigValueFrom{}}, fails: "neither env nor path"},
		"A key is needed": {
			item: autov1alpha1.ConfigItem{Value: inline("1")}, fails: "its key is empty"},
	}
	files := map[string]string{"/share/secrets/a/key": "-----\nkey\n", "/etc/value": "hunter2", "/etc/string.json": ` "s" `}
	p := places{
		root:   "/share",
		lookup: func(key string) (string, bool) { return "42", key == "HERE" },
		readFile: func(path string) ([]byte, error) {
			if path == "/denied" {
				return nil, &os.PathError{Op: "open", Path: path, Err: os.ErrPermission}
			}
			content, found := files[path]
			if !found {
				return nil, &os.PathError{Op: "open", Path: path, Err: os.ErrNotExist}
			}
			return []byte(content), nil
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := p.settings("app", []autov1alpha1.ConfigItem{c.item})
			if c.fails != "" {
				var f *fault
				if !errors.As(err, &f) || f.reason != autov1alpha1.ReasonWorkspaceFailed || !strings.Contains(f.message, c.fails) {
					t.Errorf("settings() error = %v, want WorkspaceFailed that says %q", err, c.fails)
				}
				if err != nil && strings.Contains(err.Error(), "hunter2") {
					t.Errorf("the error quotes a value: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]setting{c.want}, got, cmp.AllowUnexported(setting{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
