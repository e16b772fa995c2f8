// Package pods stands in for the scheduler and the kubelet in Updraft's
// embedded dev mode: it runs the Pods of a real API server as processes of this
// machine, with neither root nor namespaces.
//
// # A pod's life
//
//	         bind           startTime         init containers, in order
//	Pending ──────► bound ───────────► folder ─────────────┬──────────► containers ──► Succeeded
//	                  │                                    │                 │    └──► Failed
//	                  ├── cannot be run here ──► Failed/Unsupported          │
//	                  └── was run by an earlier process ──► Failed/NodeRestart
//
//	deleted, or overdue: SIGTERM to each container's main process, SIGKILL to all after the grace
//	object gone:         SIGKILL to all at once, folder removed
//
// No process is started before a startTime is on the pod, so a pod that has one
// and is unknown here was run by an earlier process of this machine.
//
// # What is promised
//
//   - Each container has a supervisor, a process which is the subreaper of all
//     that the container starts. It ends with the container's main process, with
//     a kill, or with the process that runs the Runner (whichever way that dies),
//     and leaves no descendant behind. A container is reported as terminated only
//     when that is done, so "terminated" means that nothing of it runs.
//   - Should a supervisor itself be killed, its container's processes are found
//     by a mark in their environment, and killed. Should the Runner's process be
//     killed together with it, the next Runner does so.
//   - Status, conditions, exit codes and messages are those which a kubelet
//     writes, and kubectl logs works, with -f, --tail and --limit-bytes.
//   - $(VAR) in commands, arguments and values is expanded as a kubelet does.
//   - Run returns when the processes of all pods are dead. They get SIGTERM and
//     five seconds first. What they came to is told by the next Run, as
//     NodeRestart.
//
// # The file system
//
// A container of Updraft's Jobs sees all that is its own below $(UPDRAFT_ROOT),
// which is /share in an image. Here it is the folder share of the pod's folder,
// and volumes appear below it: files of Secrets, ConfigMaps, projections and the
// downward API as files, emptyDirs and claims as symbolic links. /share itself
// is the emptyDir that is mounted there. A claim's folder outlives the pod.
//
// # What is left out
//
//   - Images, so every program but those of Options.Commands and those below the
//     share: such pods end as Failed/Unsupported, sidecars too.
//   - Isolation. The processes run as the user who started the Runner, on the
//     host's network and files, with a clean environment. A file below the share
//     is seen by all containers of the pod, as long as it is there. The mounts of
//     an init container are taken away before the next container starts; those of
//     containers that run side by side are seen by all of them. Mounts are not
//     read-only. A path written out as /share/... in a value or an argument means
//     the host's; only command[0], mountPath, workingDir and
//     terminationMessagePath are translated.
//   - securityContext, limits, probes, lifecycle hooks, affinity and tolerations
//     are ignored; exec, attach and port-forward are not answered.
//   - Restarts: only restartPolicy Never is run.
//   - The service account's own mount and the variables of Services: a process
//     finds the API server only by a kubeconfig that it is given.
//   - Changes of Secrets and ConfigMaps while a pod runs. Tokens are refreshed.
//   - Whether a claim is bound. It has to exist, nothing more.
//   - Who asks for logs: any process of this machine may read them on loopback.
package pods
