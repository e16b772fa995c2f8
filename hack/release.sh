#!/usr/bin/env bash
# Writes a release: updraft.yaml, which updraft install applies, and images.txt with
# every image that it makes a cluster pull, and the versions that it is tested on.
# Usage: hack/release.sh FOLDER VERSION [FLAG OF KO]..., with OUT as the folder to
# write to; the default is release.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$2
out=${OUT:-release}
mkdir -p "$out"
hack/resolve.sh "$@" >"$out/updraft.yaml.part"
tested() { sed -n "s/^\t$1 *= \"\(.*\)\"/\1/p" cmd/internal/tested/tested.go; }
{
	echo "# Updraft $version, tested on Kubernetes $(tested Kubernetes) and Knative $(tested Knative)."
	echo "# Its functions and the agent:"
	grep -oE '(image|value): [^ ]+@sha256:[0-9a-f]{64}' "$out/updraft.yaml.part" | cut -d ' ' -f 2 | sort -u
	echo "# What a run pulls whose Stack names no image, and one of the security profile baseline:"
	sed -n 's/^\tDefaultImage[A-Za-z]* *= "\(.*\)"/\1/p' pkg/run/job.go
} >"$out/images.txt.part"
mv "$out/updraft.yaml.part" "$out/updraft.yaml"
mv "$out/images.txt.part" "$out/images.txt"
cat "$out/images.txt"
