#!/usr/bin/env bash
# Writes a release: release/updraft.yaml, which updraft install applies, and
# release/images.txt with every image that it makes a cluster pull.
# Usage: hack/release.sh FOLDER VERSION [FLAG OF KO]...
set -euo pipefail
cd "$(dirname "$0")/.."
version=$2
mkdir -p release
hack/resolve.sh "$@" >release/updraft.yaml.part
{
	echo "# Images of Updraft $version: its functions and the agent, then what a run"
	echo "# pulls whose Stack names no image."
	grep -oE '(image|value): [^ ]+@sha256:[0-9a-f]{64}' release/updraft.yaml.part | cut -d ' ' -f 2 | sort -u
	sed -n 's/^ *default-run-image: //p' release/updraft.yaml.part
} >release/images.txt.part
mv release/updraft.yaml.part release/updraft.yaml
mv release/images.txt.part release/images.txt
cat release/images.txt
