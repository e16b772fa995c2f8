#!/usr/bin/env bash
# Prints the manifests of config/ as one installation: labelled with a version,
# each image built from its source, pushed to KO_DOCKER_REPO and named by digest.
# Usage: hack/resolve.sh VERSION [FLAG OF KO]...
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${BIN:-$PWD/.bin}
version=$1
shift
hack/registry.sh
"$bin/kubectl" kustomize config |
	sed "s|app.kubernetes.io/version: devel\$|app.kubernetes.io/version: \"$version\"|" |
	"$bin/ko" resolve --base-import-paths "$@" -f -
