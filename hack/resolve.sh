#!/usr/bin/env bash
# Prints the manifests of config, or of a kustomize overlay of it, as one
# installation: labelled with a version, each image built from its source, pushed to
# KO_DOCKER_REPO and named by digest.
# Usage: hack/resolve.sh FOLDER VERSION [FLAG OF KO]...
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${BIN:-$PWD/.bin}
folder=$1 version=$2
shift 2
hack/registry.sh
"$bin/kubectl" kustomize "$folder" |
	sed "s|app.kubernetes.io/version: devel\$|app.kubernetes.io/version: \"$version\"|" |
	"$bin/ko" resolve --base-import-paths "$@" -f -
