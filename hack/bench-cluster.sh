#!/usr/bin/env bash
# Measures on a cluster, and says where the time goes.
# Usage: hack/bench-cluster.sh [FLAG OF test/bench/cluster]...
#
# On KUBECONFIG's cluster what is installed there is measured as it is. Without
# KUBECONFIG it is make cluster's: it is brought up, and Updraft is installed for
# this and taken away again, unless it was there.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -z "${KUBECONFIG:-}" ] || exec go run ./test/bench/cluster "$@"

. hack/on-cluster.sh
make_cluster
found=
if "$kubectl" get namespace updraft-system >/dev/null 2>&1; then found=1; fi
knative_tracing "tracing-protocol: none, tracing-endpoint: null"
# From zero is waited for 30 times.
"$kubectl" -n knative-serving patch configmap config-autoscaler --type merge -p 'data: {scale-to-zero-grace-period: 6s}'
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
install_updraft "$work/overlay"
say "Measuring"
go run ./test/bench/cluster "$@"
if [ -z "$found" ]; then make --no-print-directory uninstall; fi
