#!/usr/bin/env bash
# Collects Knative's own manifests from its modules, of the versions that
# tools/knative pins. Outside the namespaces: Go may have to fetch a module.
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/env.sh"
modules=(knative.dev/{serving,eventing,networking,caching})
cd "$root/tools/knative"
folders() { go list -mod=readonly -m -f '{{.Dir}}' "${modules[@]}"; }
if folders | grep -qx ''; then go mod download "${modules[@]}"; fi
mapfile -t folder < <(folders)
serving=${folder[0]} eventing=${folder[1]} networking=${folder[2]} caching=${folder[3]}

# together FILE...: as one file, without what a test cluster has no use for:
# scaling that needs a metrics server, and sinks that Updraft does not know.
together() {
	local file
	for file; do
		case ${file##*/} in
		*hpa.yaml | job-sink.yaml | request-reply.yaml) continue ;;
		999-cache.yaml | 300-knativecertificate.yaml) continue ;; # hints for programs that are not here
		esac
		echo ---
		cat "$file"
	done
}
shopt -s globstar
together "$serving"/config/core/**/*.yaml "$networking"/config/*.yaml "$caching"/config/image.yaml |
	put "$state/manifests/serving.yaml"
together "$eventing"/config/core/**/*.yaml "$eventing"/config/channels/in-memory-channel/**/*.yaml \
	"$eventing"/config/brokers/mt-channel-broker/**/*.yaml "$eventing"/third_party/eventing-integrations-latest/*.yaml |
	put "$state/manifests/eventing.yaml"
