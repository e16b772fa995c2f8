#!/usr/bin/env bash
# Runs the generators in a copy of the tree and compares.
set -euo pipefail
cd "$(dirname "$0")/.."
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
tar -c --exclude=./.git --exclude=./.bin --exclude=./.cluster . | tar -x -C "$copy"
BIN=$PWD/.bin "$copy/hack/generate.sh"
for generated in pkg/apis pkg/client config/100-crds docs/runbook docs/events docs/events.md config/410-eventtypes.yaml; do
	if ! diff -r "$generated" "$copy/$generated"; then
		echo "$generated is not what the generators give: run make generate and commit" >&2
		exit 1
	fi
done
# Client-side kubectl apply keeps the whole object in an annotation of 256 KiB.
for crd in config/100-crds/*.yaml; do
	if [ "$(stat -c %s "$crd")" -ge 262144 ]; then
		echo "$crd is too large for kubectl apply" >&2
		exit 1
	fi
done
