# Sourced by the scripts beside it: places, addresses, and how a process is
# started, told from another and waited for.
# shellcheck shell=bash
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
root=$(readlink -f "$here/../..")
bin=$root/.bin
state=$root/.cluster # all that a cluster has, on disk
machine=/run/updraft-cluster.sysctl # what the machine had before its first cluster

# Inside the cluster's network; nothing of it is on a machine's own interface.
node=node1
node_ip=10.99.0.1
pod_range=10.244.0.0/24
service_range=10.96.0.0/16
api_service_ip=10.96.0.1
dns_ip=10.96.0.10
api=https://$node_ip:6443
registry=$node_ip:5000

# What kubectl knows of one cluster must not be taken for the next one's.
export KUBECACHEDIR=$state/run/kubectl

began=${began:-$(date +%s%N)}
export began
# What is done now, and when: seconds since the start.
say() { local t=$((($(date +%s%N) - began) / 100000000)); printf '[%4d.%d s] %s\n' $((t / 10)) $((t % 10)) "$*"; }
die() { echo "$*" >&2; exit 1; }

# A process is known by its pid and by when it started: pids are used again.
started() { awk '{sub(/.*\) /, ""); print $20}' "/proc/$1/stat" 2>/dev/null; }
remember() { echo "$2 $(started "$2")" >"$state/run/$1.pid"; }
pid_of() { local p _; read -r p _ <"$state/run/$1.pid" && echo "$p"; }
alive() {
	local p s
	[ -s "$state/run/$1.pid" ] && read -r p s <"$state/run/$1.pid" && [ -n "${s:-}" ] && [ "$(started "$p")" = "$s" ]
}
# start NAME COMMAND...: unless it runs; its output goes to log/NAME.log.
start() {
	local name=$1; shift
	alive "$name" && return 0
	setsid nohup "$@" >>"$state/log/$name.log" 2>&1 </dev/null 9>&- & # 9 is the lock of up
	remember "$name" $!
}
# stop NAME: TERM, and KILL after ten seconds.
stop() {
	if alive "$1"; then
		local p; p=$(pid_of "$1")
		kill -TERM "$p" 2>/dev/null || true
		for _ in $(seq 100); do alive "$1" || break; sleep 0.1; done
		if alive "$1"; then kill -KILL "$p" 2>/dev/null || true; fi
	fi
	rm -f "$state/run/$1.pid"
}
# wait_for SECONDS WHAT COMMAND...
wait_for() {
	local seconds=$1 what=$2 end=$((SECONDS + $1)); shift 2
	until "$@" >"$state/log/wait.log" 2>&1; do
		if [ $SECONDS -ge $end ]; then
			cat "$state/log/wait.log" >&2
			die "Gave up after $seconds s waiting for: $what. The logs are in .cluster/log"
		fi
		sleep 0.2
	done
	say "$what"
}
# put FILE [NAME]: standard input becomes FILE, in one step, and only if it
# differs; the process that has read it is then stopped.
put() {
	cat >"$1.new"
	if cmp -s "$1" "$1.new"; then rm "$1.new"; return 0; fi
	mv "$1.new" "$1"
	if [ -n "${2:-}" ]; then stop "$2"; fi
}
# resolve IMAGES FILE...: the files as one, with their ko:// images replaced.
resolve() {
	local file images=$1; shift
	for file; do echo ---; cat "$file"; done | sed -f <(awk '{print "s#ko://" $1 "\\([],} ]*\\)$#" $2 "\\1#"}' "$images")
}
# apply NAME IMAGES FILE...: if they differ from what was applied before.
apply() {
	local name=$1; shift
	resolve "$@" >"$state/manifests/$name.new"
	if ! cmp -s "$state/manifests/$name.new" "$state/manifests/$name.applied"; then
		kubectl apply --server-side --force-conflicts -f "$state/manifests/$name.new" >"$state/log/apply-$name.log"
		mv "$state/manifests/$name.new" "$state/manifests/$name.applied"
		say "Applied the manifests of $name"
	fi
}
