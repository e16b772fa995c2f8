#!/usr/bin/env bash
# Makes a git repository with a Pulumi program in DIR/repository, and DIR/stack.yaml,
# a Stack that tracks its branch main.
#
#   samples/git/make-repository.sh DIR
#   kubectl apply -f DIR/stack.yaml
#
# It is for make dev, which sees this machine's folders. On a cluster, push the
# repository to a server that pods can reach, and make its URL the projectRepo.
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: $0 DIR" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
dir=$(cd "$1" && pwd)
repository=$dir/repository
[ ! -e "$repository" ] || { echo "$repository is there already" >&2; exit 1; }

git init --quiet --initial-branch=main "$repository"
mkdir "$repository/infra"
cp "$here/Pulumi.yaml" "$repository/infra/Pulumi.yaml"
git -C "$repository" config user.name "Sample"
git -C "$repository" config user.email "sample@updraft.dev"
git -C "$repository" add infra
git -C "$repository" commit --quiet --message "A greeting"

sed "s|REPOSITORY|file://$repository|" "$here/stack.yaml.in" >"$dir/stack.yaml"
echo "Made $repository at commit $(git -C "$repository" rev-parse --short HEAD), and $dir/stack.yaml"
