// Package controlplane runs a Kubernetes API without a cluster: etcd and kube-apiserver through envtest, and the few controllers of
// kube-controller-manager without which an object is only a row in a table (a Job gets its Pod, an owner's end takes what it owned,
// a namespace gets its ServiceAccount).
//
// What it promises:
//
//   - It behaves as a cluster does where Updraft can tell: RBAC, ServiceAccount admission, bound tokens, admission policies, garbage
//     collection, `kubectl logs` for a Node whose kubelet is somebody on 127.0.0.1. Nodes and what runs on them are the caller's.
//   - It listens on 127.0.0.1 only, on ports that were free.
//   - The objects live in Options.Dir and are there again at the next start. All else, keys too, is made at the start and removed by
//     Stop; what is left are the objects and the logs of the last start.
//   - Nothing outlives it. After Stop no process is left; a parent that is killed takes its children with it (on Linux, where
//     setpriv is at hand), and a start in the same folder ends what an earlier one left behind.
//   - A start that fails says what to do, with the end of the log of what did not come up.
package controlplane
