#!/usr/bin/env bash
# Brings Knative and its ingress up, inside the cluster's namespaces.
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/env.sh"

cd "$bin"
programs=()
for program in $(find knative.dev -type f | sort); do programs+=("$program=$program"); done
"$bin/cluster/images" -registry "$registry" -known "$state/images/knative.known" \
	traefik=traefik "${programs[@]}" >"$state/images/knative"
say "Images of Knative and Traefik"

# Knative's own manifests, and what differs here.
cp "$here/manifests/kustomization.yaml" "$state/manifests/"
cat "$here/manifests/kustomization.yaml" "$state/manifests/"{serving,eventing}.yaml | sha256sum >"$state/manifests/source.new"
if ! cmp -s "$state/manifests/source.new" "$state/manifests/source"; then
	kubectl kustomize "$state/manifests" >"$state/manifests/knative.yaml"
	mv "$state/manifests/source.new" "$state/manifests/source"
fi
apply knative "$state/images/knative" "$state/manifests/knative.yaml"
apply traefik "$state/images/knative" "$here/manifests/traefik.yaml"
for namespace in knative-serving knative-eventing traefik; do
	wait_for 600 "All of $namespace" \
		kubectl -n $namespace wait --for=condition=Available deployment --all --timeout=1s
done
