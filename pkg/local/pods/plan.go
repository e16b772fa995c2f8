package pods

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// unsupported is why a pod cannot be run here, and what its owner can do.
type unsupported string

func (u unsupported) Error() string { return string(u) }

func refuse(format string, arguments ...any) error {
	return unsupported(fmt.Sprintf(format, arguments...) + ": leave it out, or run it on a cluster")
}

// mount is a volume at a place of the share, given relative to it.
type mount struct{ at, volume string }

// plan is what can be said of a pod before anything of it runs.
type plan struct {
	// programs are what the containers run, by name.
	programs map[string]string
	// folders are their working directories.
	folders map[string]string
	// init are the mounts of each init container, main those of all others,
	// which run side by side and so see each other's.
	init map[string][]mount
	main []mount
	// root is the emptyDir that is the share itself, if there is one.
	root string
}

// planFor decides how a pod is run, or that it cannot be: then the error is an
// unsupported.
func planFor(pod *corev1.Pod, commands map[string]string, at folder) (*plan, error) {
	if pod.Spec.RestartPolicy != corev1.RestartPolicyNever {
		return nil, refuse("Dev mode never restarts a container, and the pod has restartPolicy %s", pod.Spec.RestartPolicy)
	}
	p := &plan{programs: map[string]string{}, folders: map[string]string{}, init: map[string][]mount{}}
	for i := range pod.Spec.InitContainers {
		container := &pod.Spec.InitContainers[i]
		if container.RestartPolicy != nil {
			return nil, refuse("Container %s is a sidecar, which dev mode does not run", container.Name)
		}
		mounts, err := p.add(pod, container, commands, at)
		if err != nil {
			return nil, err
		}
		p.init[container.Name] = mounts
	}
	for i := range pod.Spec.Containers {
		mounts, err := p.add(pod, &pod.Spec.Containers[i], commands, at)
		if err != nil {
			return nil, err
		}
		p.main = append(p.main, mounts...)
	}
	p.main = inOrder(p.main)
	err := p.check(pod)
	return p, err
}

func (p *plan) add(pod *corev1.Pod, container *corev1.Container, commands map[string]string, at folder) ([]mount, error) {
	program, err := programOf(container, commands, at)
	if err != nil {
		return nil, err
	}
	p.programs[container.Name] = program
	if p.folders[container.Name], err = workingDir(container, at); err != nil {
		return nil, err
	}
	return mountsOf(pod, container)
}

// programOf is what a container runs: one of our programs, or one which a
// container before it has put into the share. Only variables with a plain value
// can name it, so that nothing has to be read to know.
func programOf(container *corev1.Container, commands map[string]string, at folder) (string, error) {
	if len(container.Command) == 0 {
		return "", refuse("Container %s has no command, and dev mode does not run the image %s", container.Name, container.Image)
	}
	variables := map[string]string{}
	for _, variable := range container.Env {
		if variable.Name == rootVariable {
			variables[rootVariable] = at.share()
		} else if variable.ValueFrom == nil {
			variables[variable.Name] = expand(variable.Value, variables)
		}
	}
	name := path.Clean(expand(container.Command[0], variables))
	if program, ok := commands[name]; ok {
		return program, nil
	}
	if rest, ok := below(at.share(), name); ok && rest != "." {
		return name, nil
	}
	if program, ok := at.shared(name); ok && program != at.share() {
		return program, nil
	}
	return "", refuse("Container %s wants %s of the image %s, and dev mode runs no images, only Updraft's own programs",
		container.Name, container.Command[0], container.Image)
}

// workingDir is where a container's process starts.
func workingDir(container *corev1.Container, at folder) (string, error) {
	if container.WorkingDir == "" {
		return at.share(), nil
	}
	dir, ok := at.shared(container.WorkingDir)
	if !ok {
		return "", refuse("Container %s has the workingDir %s, and dev mode has only what is below %s", container.Name, container.WorkingDir, shareMount)
	}
	return dir, nil
}

// mountsOf is what a container mounts, the outer before the inner.
func mountsOf(pod *corev1.Pod, container *corev1.Container) ([]mount, error) {
	if len(container.VolumeDevices) > 0 {
		return nil, refuse("Container %s has volumeDevices, which dev mode does not have", container.Name)
	}
	var mounts []mount
	for _, m := range container.VolumeMounts {
		if path.Clean(m.MountPath) == accountMount {
			continue // Added to every pod, and of no use to a process that sees no such path.
		}
		at, ok := belowShare(m.MountPath)
		if !ok {
			return nil, refuse("Container %s mounts %s at %s, and dev mode can mount only below %s", container.Name, m.Name, m.MountPath, shareMount)
		}
		if m.SubPath != "" || m.SubPathExpr != "" {
			return nil, refuse("Container %s mounts a subPath of %s, which dev mode does not do", container.Name, m.Name)
		}
		if err := checkVolume(volumeNamed(pod, m.Name)); err != nil {
			return nil, err
		}
		mounts = append(mounts, mount{at: at, volume: m.Name})
	}
	return inOrder(mounts), nil
}

// inOrder puts the outer before the inner, and each only once.
func inOrder(mounts []mount) []mount {
	slices.SortFunc(mounts, func(a, b mount) int {
		return cmp.Or(strings.Compare(a.at, b.at), strings.Compare(a.volume, b.volume))
	})
	return slices.Compact(mounts)
}

// checkVolume refuses what has no counterpart here.
func checkVolume(v *corev1.Volume) error {
	switch {
	case v == nil:
		return refuse("The pod mounts a volume that it does not have")
	case v.EmptyDir != nil, v.Secret != nil, v.ConfigMap != nil, v.DownwardAPI != nil, v.PersistentVolumeClaim != nil:
		return nil
	case v.Projected == nil:
		return refuse("Volume %s is of a kind that dev mode does not have", v.Name)
	}
	for _, source := range v.Projected.Sources {
		if source.Secret == nil && source.ConfigMap == nil && source.DownwardAPI == nil && source.ServiceAccountToken == nil {
			return refuse("Volume %s projects a source that dev mode does not have", v.Name)
		}
	}
	return nil
}

// check refuses mounts which folders and links cannot stand for.
func (p *plan) check(pod *corev1.Pod) error {
	for _, mounts := range append(p.inits(pod), p.main) {
		for i, m := range mounts {
			if i > 0 && mounts[i-1].at == m.at {
				return refuse("Volumes %s and %s are mounted at the same place", mounts[i-1].volume, m.volume)
			}
			if err := p.checkRoot(pod, m); err != nil {
				return err
			}
			if outer := claimAround(pod, mounts, m); outer != "" {
				return refuse("Volume %s is mounted inside the claim of volume %s, into which dev mode would copy it", m.volume, outer)
			}
		}
	}
	return nil
}

func (p *plan) checkRoot(pod *corev1.Pod, m mount) error {
	if m.at != "." {
		return nil
	}
	if volumeNamed(pod, m.volume).EmptyDir == nil || p.root != "" && p.root != m.volume {
		return refuse("Volume %s is mounted at %s, where dev mode can have only one emptyDir", m.volume, shareMount)
	}
	p.root = m.volume
	return nil
}

func (p *plan) inits(pod *corev1.Pod) [][]mount {
	var all [][]mount
	for _, container := range pod.Spec.InitContainers {
		all = append(all, p.init[container.Name])
	}
	return all
}

// claimAround is the volume of a claim that a mount lies in, or none.
func claimAround(pod *corev1.Pod, mounts []mount, inner mount) string {
	for _, outer := range mounts {
		if rest, ok := below(outer.at, inner.at); ok && rest != "." && volumeNamed(pod, outer.volume).PersistentVolumeClaim != nil {
			return outer.volume
		}
	}
	return ""
}

// volumes are all that the containers mount, by name.
func (p *plan) volumes(pod *corev1.Pod) []*corev1.Volume {
	var used []*corev1.Volume
	for i := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[i]
		uses := func(m mount) bool { return m.volume == volume.Name }
		if slices.ContainsFunc(slices.Concat(append(p.inits(pod), p.main)...), uses) {
			used = append(used, volume)
		}
	}
	return used
}

func volumeNamed(pod *corev1.Pod, name string) *corev1.Volume {
	for i := range pod.Spec.Volumes {
		if pod.Spec.Volumes[i].Name == name {
			return &pod.Spec.Volumes[i]
		}
	}
	return nil
}
