#!/usr/bin/env bash
# Installs Updraft on a cluster and tests it there, end to end.
# Usage: hack/e2e.sh [FLAG OF go test]...
#
# The cluster is KUBECONFIG's, with KO_DOCKER_REPO for our images and, for the
# runs, RUN_IMAGE with the CLI and its YAML language host. Without KUBECONFIG it is
# make cluster's, which is brought up, and the image is built from .bin/.
set -euo pipefail
cd "$(dirname "$0")/.."
kubectl=$PWD/.bin/kubectl

if [ -z "${KUBECONFIG:-}" ]; then
	make --no-print-directory cluster
	. .cluster/env
	RUN_IMAGE=$(.bin/cluster/images -registry "$KO_DOCKER_REPO" -known .cluster/images/run.known \
		run=.bin/pulumi,.bin/pulumi-language-yaml | awk '{print $2}')
fi
make --no-print-directory install KO_FLAGS="${KO_FLAGS:-}"

echo "Setting up for the tests: ${RUN_IMAGE:-the default image} for runs, functions scale to zero in seconds"
if [ -n "${RUN_IMAGE:-}" ]; then
	"$kubectl" -n updraft-system patch configmap config-updraft --type merge -p "{\"data\":{\"default-run-image\":\"$RUN_IMAGE\"}}"
fi
"$kubectl" -n updraft-system get services.serving.knative.dev -o name | while read -r service; do
	"$kubectl" -n updraft-system patch "$service" --type merge \
		-p '{"spec":{"template":{"metadata":{"annotations":{"autoscaling.knative.dev/window":"6s"}}}}}'
done
"$kubectl" -n updraft-system wait services.serving.knative.dev --all --for=condition=Ready --timeout=300s

go test -tags e2e -count 1 -timeout 80m -v "$@" ./test/e2e
