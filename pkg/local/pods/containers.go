package pods

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// configRetry is how soon a missing Secret or ConfigMap is looked for again.
const configRetry = time.Second

// until tries until it succeeds, and says on the containers what is missing. It
// gives up when the pod has to end.
func (s *sandbox) until(names []string, try func() error) bool {
	for said := ""; s.soft.Err() == nil; {
		err := try()
		if err == nil {
			if said != "" {
				s.record(func(status *corev1.PodStatus) { setWaiting(status, reasonCreating, "", names) })
			}
			return true
		}
		if message := err.Error(); message != said {
			said = message
			s.record(func(status *corev1.PodStatus) { setWaiting(status, reasonConfigError, message, names) })
		}
		select {
		case <-s.soft.Done():
		case <-time.After(configRetry):
		}
	}
	return false
}

// prepare makes the folder and reads all volumes: as with a kubelet, nothing
// runs before all of them are there.
func (s *sandbox) prepare() bool {
	pod := s.current()
	names := namesOf(pod.Spec.InitContainers, pod.Spec.Containers)
	return s.until(names, func() error {
		if err := s.folder.create(); err != nil {
			return err
		}
		volumes := map[string]*volume{}
		in := s.objects()
		for _, v := range s.plan.volumes(pod) {
			resolved, err := resolveVolume(pod, v, in, s.place(), s.r.claimsFolder(pod.Namespace))
			if err != nil {
				return err
			}
			if v.Name == s.plan.root {
				resolved.target = s.folder.share()
			}
			if err := s.fillTokens(v, resolved); err != nil {
				return err
			}
			volumes[v.Name] = resolved
		}
		s.mounts.volumes = volumes
		return nil
	})
}

func (s *sandbox) place() place {
	return place{folder: s.folder, bin: s.r.options.Bin, machine: capacity()}
}

func namesOf(lists ...[]corev1.Container) []string {
	var names []string
	for _, container := range slices.Concat(lists...) {
		names = append(names, container.Name)
	}
	return names
}

// runInit runs an init container; true means that the next may run.
func (s *sandbox) runInit(container *corev1.Container) bool {
	show := func() error { return s.mounts.show(s.plan.init[container.Name]) }
	if !s.until([]string{container.Name}, show) {
		return false
	}
	return s.runContainer(container, true) == 0 && s.soft.Err() == nil
}

// runMain runs the containers side by side.
func (s *sandbox) runMain(containers []corev1.Container) {
	show := func() error { return s.mounts.show(s.plan.main) }
	if !s.until(namesOf(containers), show) {
		return
	}
	var group sync.WaitGroup
	for i := range containers {
		group.Go(func() { s.runContainer(&containers[i], false) })
	}
	group.Wait()
}

// runContainer runs a container to its end and returns its exit code.
func (s *sandbox) runContainer(container *corev1.Container, init bool) int32 {
	var spec processSpec
	specify := func() (err error) { spec, err = s.specify(container); return err }
	if !s.until([]string{container.Name}, specify) {
		return killedCode
	}
	started, err := startProcess(s.r.options.Supervisor, s.folder, spec)
	if err != nil {
		end := corev1.ContainerStateTerminated{ExitCode: 128, Reason: reasonStartError, Message: err.Error()}
		s.record(func(status *corev1.PodStatus) { setTerminated(statusOf(status, container.Name), end, init) })
		return end.ExitCode
	}
	s.record(func(status *corev1.PodStatus) {
		setRunning(statusOf(status, container.Name), "local://"+spec.Name, started.at, init)
	})
	end := s.terminated(container, s.await(started))
	s.record(func(status *corev1.PodStatus) { setTerminated(statusOf(status, container.Name), end, init) })
	return end.ExitCode
}

// specify is all that the supervisor has to know.
func (s *sandbox) specify(container *corev1.Container) (processSpec, error) {
	variables, err := environment(s.current(), container, s.objects(), s.place())
	if err != nil {
		return processSpec{}, err
	}
	env, err := environ(variables)
	if err != nil {
		return processSpec{}, err
	}
	argv := []string{s.plan.programs[container.Name]}
	for _, argument := range slices.Concat(container.Command[1:], container.Args) {
		argv = append(argv, expand(argument, variables))
	}
	dir := s.plan.folders[container.Name]
	for _, folder := range []string{dir, filepath.Dir(variables[messageVariable])} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return processSpec{}, err
		}
	}
	// An earlier container may have written to the same place of the share.
	if err := os.WriteFile(variables[messageVariable], nil, 0o644); err != nil {
		return processSpec{}, err
	}
	return processSpec{
		Name: mark(s.uid, container.Name),
		Argv: argv,
		Env:  env,
		Dir:  dir,
		Log:  s.folder.log(container.Name),
	}, nil
}

// await returns when all of a container's processes are dead, which it brings
// about if the pod has to end.
func (s *sandbox) await(started *process) exit {
	select {
	case <-started.done:
		return started.exit
	case <-s.soft.Done():
		started.terminate()
	}
	select {
	case <-started.done:
	case <-s.hard.Done():
		started.kill()
	}
	<-started.done
	return started.exit
}
