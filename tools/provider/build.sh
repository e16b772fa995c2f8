#!/usr/bin/env bash
# Builds the provider, with the schema of its module, which lacks a version.
#
#	tools/provider/build.sh OUTPUT
set -euo pipefail
cd "$(dirname "$0")"
version=$(sed -n 's/^const version = "\(.*\)"/\1/p' main.go)
from=$(go mod download -json github.com/pulumi/pulumi-kubernetes/provider/v4 | awk -F'"' '$2 == "Dir" {print $4}')/cmd/pulumi-resource-kubernetes
sed '0,/"name": "kubernetes",/s//"name": "kubernetes", "version": "'"$version"'",/' "$from/schema.json" >schema.json
cp --no-preserve=mode "$from/terraform-mapping.json" .
go build -ldflags '-s -w' -o "$1" .
