package pods

import (
	"fmt"
	"io/fs"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// defaultFileMode is that of files for which a volume names none. The API server
// sets it, so this is for volumes that never went through one.
const defaultFileMode = 0o644

// file is one of a volume's files.
type file struct {
	data []byte
	mode fs.FileMode
}

// volume is what a mount shows: files, or if target is set, that folder.
type volume struct {
	target string
	files  map[string]file
	tokens []token
}

// token is a file which has to be made anew before it expires.
type token struct {
	path     string
	mode     fs.FileMode
	audience string
	seconds  int64
	renew    time.Time
}

// resolveVolume reads what a volume holds. Its tokens are left to be made.
func resolveVolume(pod *corev1.Pod, v *corev1.Volume, in objects, at place, claims string) (*volume, error) {
	resolved := &volume{files: map[string]file{}}
	var err error
	switch {
	case v.EmptyDir != nil:
		resolved.target = at.folder.emptyDir(v.Name)
	case v.PersistentVolumeClaim != nil:
		resolved.target, err = claimFolder(v.PersistentVolumeClaim.ClaimName, in, claims)
	case v.Secret != nil:
		err = resolved.addSecret(v.Secret.SecretName, v.Secret.Optional, v.Secret.Items, modeOr(v.Secret.DefaultMode, defaultFileMode), in)
	case v.ConfigMap != nil:
		err = resolved.addConfigMap(v.ConfigMap.Name, v.ConfigMap.Optional, v.ConfigMap.Items, modeOr(v.ConfigMap.DefaultMode, defaultFileMode), in)
	case v.DownwardAPI != nil:
		err = resolved.addDownward(pod, v.DownwardAPI.Items, modeOr(v.DownwardAPI.DefaultMode, defaultFileMode), at)
	case v.Projected != nil:
		err = resolved.addProjected(pod, v.Projected, in, at)
	}
	if err != nil {
		return nil, fmt.Errorf("MountVolume.SetUp failed for volume %q : %w", v.Name, err)
	}
	return resolved, nil
}

func modeOr(mode *int32, otherwise fs.FileMode) fs.FileMode {
	if mode == nil {
		return otherwise
	}
	return fs.FileMode(*mode) & fs.ModePerm
}

func claimFolder(name string, in objects, claims string) (string, error) {
	err := in.claim(name)
	if _, err = missing(err, nil, "persistentvolumeclaim", name); err != nil {
		return "", err
	}
	return claims + "/" + name, nil
}

func (v *volume) addProjected(pod *corev1.Pod, projected *corev1.ProjectedVolumeSource, in objects, at place) error {
	mode := modeOr(projected.DefaultMode, defaultFileMode)
	for _, source := range projected.Sources {
		var err error
		switch {
		case source.Secret != nil:
			err = v.addSecret(source.Secret.Name, source.Secret.Optional, source.Secret.Items, mode, in)
		case source.ConfigMap != nil:
			err = v.addConfigMap(source.ConfigMap.Name, source.ConfigMap.Optional, source.ConfigMap.Items, mode, in)
		case source.DownwardAPI != nil:
			err = v.addDownward(pod, source.DownwardAPI.Items, mode, at)
		case source.ServiceAccountToken != nil:
			v.addToken(source.ServiceAccountToken, mode)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (v *volume) addToken(projection *corev1.ServiceAccountTokenProjection, mode fs.FileMode) {
	seconds := int64(time.Hour / time.Second)
	if projection.ExpirationSeconds != nil {
		seconds = *projection.ExpirationSeconds
	}
	v.tokens = append(v.tokens, token{path: projection.Path, mode: mode, audience: projection.Audience, seconds: seconds})
}

func (v *volume) addSecret(name string, optional *bool, items []corev1.KeyToPath, mode fs.FileMode, in objects) error {
	secret, err := in.secret(name)
	if skip, err := missing(err, optional, "secret", name); skip || err != nil {
		return err
	}
	return v.addItems(secret.Data, items, isTrue(optional), mode, "secret")
}

func (v *volume) addConfigMap(name string, optional *bool, items []corev1.KeyToPath, mode fs.FileMode, in objects) error {
	configMap, err := in.configMap(name)
	if skip, err := missing(err, optional, "configmap", name); skip || err != nil {
		return err
	}
	data := map[string][]byte{}
	for key, value := range configMap.Data {
		data[key] = []byte(value)
	}
	maps.Copy(data, configMap.BinaryData)
	return v.addItems(data, items, isTrue(optional), mode, "config")
}

// addItems adds all keys, or those which are named.
func (v *volume) addItems(data map[string][]byte, items []corev1.KeyToPath, optional bool, mode fs.FileMode, kind string) error {
	if len(items) == 0 {
		for key, value := range data {
			v.files[key] = file{data: value, mode: mode}
		}
		return nil
	}
	for _, item := range items {
		value, ok := data[item.Key]
		if !ok && optional {
			continue
		}
		if !ok {
			return fmt.Errorf("references non-existent %s key: %s", kind, item.Key)
		}
		v.files[item.Path] = file{data: value, mode: modeOr(item.Mode, mode)}
	}
	return nil
}

func (v *volume) addDownward(pod *corev1.Pod, items []corev1.DownwardAPIVolumeFile, mode fs.FileMode, at place) error {
	for _, item := range items {
		value, err := downwardValue(pod, item, at)
		if err != nil {
			return err
		}
		v.files[item.Path] = file{data: []byte(value), mode: modeOr(item.Mode, mode)}
	}
	return nil
}

func downwardValue(pod *corev1.Pod, item corev1.DownwardAPIVolumeFile, at place) (string, error) {
	if item.FieldRef != nil {
		return fieldValue(pod, item.FieldRef.FieldPath)
	}
	ref := item.ResourceFieldRef
	if ref == nil {
		return "", fmt.Errorf("no source for %s", item.Path)
	}
	container := containerNamed(pod, ref.ContainerName)
	if container == nil {
		return "", fmt.Errorf("container %s not found", ref.ContainerName)
	}
	return resourceValue(container, ref, at.machine)
}
