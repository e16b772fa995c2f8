#!/usr/bin/env bash
# The first process of the cluster's namespaces: makes them a place where a
# node's programs find what they expect, and then waits.
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/env.sh"

# Nothing of these folders of the machine is seen, or written to.
mount -t tmpfs -o mode=755 run /run
mkdir -p /var/lib/{kubelet,containerd,cni} /var/log/{pods,containers}
mount -t tmpfs none /var/log/containers
mount -t tmpfs none /var/lib/cni # leases of pods' addresses: gone with the pods
mount --bind "$state/containerd" /var/lib/containerd
mount --bind "$state/log/pods" /var/log/pods
mount --bind "$state/kubelet" /var/lib/kubelet
mount --make-rshared /var/lib/kubelet # volumes must reach the pods

# The cgroup file systems as seen from the box's own cgroup.
mount -t tmpfs -o mode=755 none /sys/fs/cgroup
while read -r hierarchy; do
	mkdir "/sys/fs/cgroup/$hierarchy"
	case $hierarchy in
	systemd) mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd ;;
	*) mount -t cgroup -o "$hierarchy" cgroup "/sys/fs/cgroup/$hierarchy" ;;
	esac
done < <(sed 's#^/sys/fs/cgroup/##; s#/.*##' "$state/run/cgroups.now")

# Kernel settings that the kubelet wants to change are the whole machine's: it
# finds copies, and changes those.
for setting in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys kernel/keys/root_maxbytes; do
	mkdir -p "/run/settings/${setting%/*}"
	cat "/proc/sys/$setting" >"/run/settings/$setting"
	mount --bind "/run/settings/$setting" "/proc/sys/$setting"
done

hostname "$node"
ip link set lo up
touch /run/box-ready
exec "$bin/cluster/pause"
