#!/usr/bin/env bash
# Installs Updraft on a cluster, tests it there end to end, and leaves the cluster
# as it was found.
# Usage: hack/e2e.sh [FLAG OF go test]...
#
# The cluster is KUBECONFIG's, with KO_DOCKER_REPO for our images and, for the
# runs, RUN_IMAGE with the CLI, its YAML language host and (for make e2e-long) the
# Kubernetes provider. Without KUBECONFIG it is make cluster's, which is brought up,
# and the images are built from .bin/. With COLLECTOR_IMAGE, tools/collector, traces
# and metrics are tested. With KEEP=1 what was installed stays.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/on-cluster.sh

if [ -z "${KUBECONFIG:-}" ]; then
	make_cluster
	COLLECTOR_IMAGE=$(image collector .bin/collector)
	export COLLECTOR_IMAGE OWN_CLUSTER=1
fi

# Knative's tracing goes back to what it was on a cluster that is somebody's. What is
# installed stays when a test has failed, to be looked at.
as_found= installed= work=$(mktemp -d)
leave() {
	code=$?
	rm -rf "$work"
	if [ -n "$as_found" ]; then knative_tracing "$as_found" || code=1; fi
	if [ $code != 0 ] && [ -n "$installed" ]; then
		echo "Updraft stays installed, to be looked at; make uninstall takes it away" >&2
	fi
	exit $code
}
trap leave EXIT

# The trace of a change holds Knative's own spans if its tracing is on.
observability=
if [ -n "${COLLECTOR_IMAGE:-}" ]; then
	collector=http://collector.updraft-e2e-traces.svc.cluster.local:4318/v1
	observability="tracing-protocol: http/protobuf, tracing-endpoint: \"$collector/traces\", tracing-sampling-rate: \"1\""
	if [ -z "${OWN_CLUSTER:-}" ]; then as_found=$(knative_tracing_now); fi
	knative_tracing "$observability"
	observability+=", metrics-protocol: http/protobuf, metrics-endpoint: \"$collector/metrics\""
fi

found=
if "$kubectl" get namespace updraft-system >/dev/null 2>&1; then found=1; else go run ./test/objects/list >"$work/before"; fi
installed=1
install_updraft "$work/overlay" "$observability"

say "Testing"
OUTSIDE_IMAGE=$(.bin/ko build --base-import-paths --sbom=none ${KO_FLAGS:-} ./test/e2e/outside)
export OUTSIDE_IMAGE
go test -tags e2e -count 1 -parallel 3 -timeout 80m -v "$@" ./test/e2e

say "Upgrading to a release"
OUT=$work/release make --no-print-directory release VERSION=0.0.0-e2e OVERLAY="$work/overlay" KO_FLAGS="${KO_FLAGS:-}"
# Seven images of ours, two of runs beside the one that is set, and the two versions.
if [ "$(grep -v "^${RUN_IMAGE:-none}\$" "$work/release/images.txt" | grep -c "@sha256:") $(grep -vc '[#@]' "$work/release/images.txt")" != "7 2" ] ||
	! grep -qE '^# Updraft 0\.0\.0-e2e, tested on Kubernetes [0-9.]+ and Knative [0-9.]+\.$' "$work/release/images.txt"; then
	echo "images.txt does not say what it should" >&2
	exit 1
fi
.bin/updraft install -f "$work/release/updraft.yaml"
"$kubectl" get services.serving.knative.dev -n updraft-system -L app.kubernetes.io/version

[ -z "$found${KEEP:-}" ] || exit 0
say "Uninstalling"
make --no-print-directory uninstall
installed=
go run ./test/objects/list >"$work/after"
# What Knative makes by itself when it is first used is its own.
if ! diff "$work/before" "$work/after"; then
	echo "The cluster is not as it was before Updraft was installed: < is gone, > is left" >&2
	exit 1
fi
say "The cluster is as it was before"
