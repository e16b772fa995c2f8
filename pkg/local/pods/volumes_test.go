package pods

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestResolveVolume(t *testing.T) {
	items := []corev1.KeyToPath{{Key: "value", Path: "deep/v", Mode: new(int32(0o400))}, {Key: "other", Path: "o"}}
	downward := []corev1.DownwardAPIVolumeFile{
		{Path: "labels", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"}},
		{Path: "name", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}, Mode: new(int32(0o600))},
	}
	ref := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	files := func(f map[string]file) *volume { return &volume{files: f} }
	text := func(s string, mode fs.FileMode) file { return file{data: []byte(s), mode: mode} }
	cases := []struct {
		reason string
		source corev1.VolumeSource
		want   *volume
		err    string
	}{
		{reason: "An emptyDir has a folder", source: emptyDir, want: &volume{target: "/pod/volumes/v", files: map[string]file{}}},
		{reason: "A claim has a folder that outlives the pod", source: claimVolume("state"), want: &volume{target: "/claims/ns/state", files: map[string]file{}}},
		{reason: "A claim has to exist", source: claimVolume("none"), err: `persistentvolumeclaim "none" not found`},
		{reason: "A Secret shows all keys", source: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "token", DefaultMode: new(int32(0o640))}},
			want: files(map[string]file{"value": text("s3cret", 0o640), "other": text("o", 0o640)})},
		{reason: "Or those which are named, where it is said", source: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "token", Items: items}},
			want: files(map[string]file{"deep/v": text("s3cret", 0o400), "o": text("o", 0o644)})},
		{reason: "A Secret has to exist", source: secretVolume("none"), err: `secret "none" not found`},
		{reason: "Unless it is optional", source: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "none", Optional: new(true)}}, want: files(map[string]file{})},
		{reason: "A key has to exist", source: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: ref("settings"), Items: items}},
			err: "references non-existent config key: value"},
		{reason: "Unless it is optional too", source: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: ref("settings"), Items: items, Optional: new(true)}},
			want: files(map[string]file{})},
		{reason: "A ConfigMap shows its binary data too", source: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: ref("settings")}},
			want: files(map[string]file{"colour": text("red", 0o644), "size": text("big", 0o644), "binary": text("\x01", 0o644)})},
		{reason: "The downward API", source: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: downward}},
			want: files(map[string]file{"labels": text("a=\"\\\"1\\\"\"\nb=\"2\"", 0o644), "name": text("run-1", 0o600)})},
		{
			reason: "A projection is all of these in one",
			source: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{DefaultMode: new(int32(0o440)), Sources: []corev1.VolumeProjection{
				{Secret: &corev1.SecretProjection{LocalObjectReference: ref("token"), Items: items[1:]}},
				{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: ref("none"), Optional: new(true)}},
				{DownwardAPI: &corev1.DownwardAPIProjection{Items: downward[1:]}},
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", Audience: "updraft", ExpirationSeconds: new(int64(600))}},
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "api"}},
			}}},
			want: &volume{
				files: map[string]file{"o": text("o", 0o440), "name": text("run-1", 0o600)},
				tokens: []token{
					{path: "token", mode: 0o440, audience: "updraft", seconds: 600},
					{path: "api", mode: 0o440, seconds: 3600},
				},
			},
		},
	}
	for _, c := range cases {
		got, err := resolveVolume(testPod(), &corev1.Volume{Name: "v", VolumeSource: c.source}, testObjects, place{folder: "/pod"}, "/claims/ns")
		if c.err != "" {
			if want := `MountVolume.SetUp failed for volume "v" : ` + c.err; err == nil || err.Error() != want {
				t.Errorf("%s: error %v, want %s", c.reason, err, want)
			}
			continue
		}
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(volume{}, file{}, token{})); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got)\n%s", c.reason, err, diff)
		}
	}
}

// tree is what is below a folder: files with their content, links with what
// they lead to, and no folders.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		rest, _ := filepath.Rel(root, name)
		if entry.Type() == fs.ModeSymlink {
			target, err := os.Readlink(name)
			found[rest] = "-> " + target
			return err
		}
		data, err := os.ReadFile(name)
		found[rest] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestMountsComeAndGo(t *testing.T) {
	at := testFolder(t)
	claim := filepath.Join(t.TempDir(), "claim")
	secret := func(s string) *volume { return &volume{files: map[string]file{"key": {data: []byte(s), mode: 0o400}}} }
	m := &mounts{folder: at, volumes: map[string]*volume{
		"share": {target: at.share()}, "creds": secret("git"), "config": secret("config"),
		"work": {target: at.emptyDir("work")}, "state": {target: claim},
	}}
	show := func(list ...mount) {
		t.Helper()
		if err := m.show(inOrder(list)); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(reason string, want map[string]string) {
		t.Helper()
		if diff := cmp.Diff(want, tree(t, at.share())); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", reason, diff)
		}
	}
	put := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(at.share(), name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(at.share(), name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	show(mount{".", "share"}, mount{"git/creds", "creds"}, mount{"work", "work"})
	put("agent", "program")
	put("config/hidden", "by the mount to come")
	put("work/source", "code")
	expect("the init container's", map[string]string{
		"agent": "program", "git/creds/key": "git", "config/hidden": "by the mount to come", "work": "-> " + at.emptyDir("work")})

	show(mount{".", "share"}, mount{"work", "work"}, mount{"work/config", "config"}, mount{"config", "config"}, mount{"state", "state"})
	put("state/file", "kept")
	expect("the main container's: the credentials are gone, the mount hides what was in its place", map[string]string{
		"agent": "program", "config/key": "config", "work": "-> " + at.emptyDir("work"), "state": "-> " + claim})
	if diff := cmp.Diff(map[string]string{"source": "code", "config/key": "config"}, tree(t, at.emptyDir("work"))); diff != "" {
		t.Errorf("an emptyDir keeps what is in it, and a mount inside it works: (-want +got)\n%s", diff)
	}
	if err := m.replace("config", "key", file{data: []byte("new"), mode: 0o444}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"config/key", "work/config/key"} {
		if got := readFile(t, filepath.Join(at.share(), name)); got != "new" {
			t.Errorf("%s after its renewal: %s", name, got)
		}
	}

	show()
	expect("none: what was hidden is back", map[string]string{"agent": "program", "config/hidden": "by the mount to come"})
	if err := removeTree(string(at)); err != nil || exists(string(at)) {
		t.Errorf("the folder is still there: %v", err)
	}
	if got := readFile(t, filepath.Join(claim, "file")); got != "kept" {
		t.Errorf("the claim: %s", got)
	}
}

func TestRemoveTreeOfReadOnlyFolders(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	if err := os.MkdirAll(filepath.Join(root, "a/b"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a/b", "a"} {
		if err := os.Chmod(filepath.Join(root, name), 0o555); err != nil {
			t.Fatal(err)
		}
	}
	if err := removeTree(root); err != nil || exists(root) {
		t.Errorf("still there: %v", err)
	}
}

func TestRenewal(t *testing.T) {
	now := time.Unix(1e9, 0)
	cases := []struct {
		reason         string
		expires, asked time.Duration
		want           time.Duration
	}{
		{"After four fifths", 10 * time.Minute, 10 * time.Minute, 8 * time.Minute},
		{"Of what was asked for, if more is given", 365 * 24 * time.Hour, time.Hour, 48 * time.Minute},
		{"Of what is given, if less is", time.Hour, 2 * time.Hour, 48 * time.Minute},
		{"Once a day at least", 1000 * time.Hour, 1000 * time.Hour, 24 * time.Hour},
	}
	for _, c := range cases {
		if got := renewal(now, now.Add(c.expires), c.asked).Sub(now); got != c.want {
			t.Errorf("%s: %s, want %s", c.reason, got, c.want)
		}
	}
}
