#!/usr/bin/env bash
# Generates deepcopy functions, CRDs, the clientset, the runbook's table, and schemas,
# docs and EventTypes of events, of the tree that it is in, with the generators in
# $BIN (default: .bin of that tree).
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${BIN:-$PWD/.bin}
module=github.com/updraft-dev/updraft
header=hack/boilerplate.go.txt

"$bin/controller-gen" object:headerFile=$header paths=./pkg/apis/...
"$bin/controller-gen" crd:maxDescLen=400 paths=./pkg/apis/... output:crd:dir=config/100-crds
rm -rf pkg/client/clientset
"$bin/client-gen" --clientset-name versioned --fake-clientset=false \
	--input-base $module/pkg/apis --input pulumi/v1,auto/v1alpha1 \
	--output-pkg $module/pkg/client/clientset --output-dir pkg/client/clientset \
	--go-header-file $header
go run ./hack/runbook
go run ./hack/events
