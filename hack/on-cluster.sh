# Sourced by e2e.sh and bench-cluster.sh: the cluster that they use, and how
# Updraft is installed on it. Wants the root of the repository as its folder.
kubectl=$PWD/.bin/kubectl
began=$(date +%s)
say() { printf '%s (%d s after the start)\n' "$*" $(($(date +%s) - began)); }

# image NAME PROGRAM[,PROGRAM]... packs programs of .bin/ and pushes them, if they
# have changed, and prints the image's name.
image() { .bin/cluster/images -registry "$KO_DOCKER_REPO" -known ".cluster/images/$1.known" "$1=$2" | awk '{print $2}'; }

# make_cluster brings make cluster's up, makes it the one that is used, and the
# image of runs from what is built.
make_cluster() {
	make --no-print-directory cluster
	. .cluster/env
	local programs=.bin/pulumi,.bin/pulumi-language-yaml
	if [ -e .bin/pulumi-resource-kubernetes ]; then programs+=,.bin/pulumi-resource-kubernetes; fi
	RUN_IMAGE=$(image run "$programs")
}

# knative_tracing KEYS makes these the keys of Eventing's config-observability, if
# they are not, and restarts what reads them when it starts.
knative_tracing() {
	local configured=(-n knative-eventing patch configmap config-observability --type merge -p "data: {$1}")
	if "$kubectl" "${configured[@]}" --dry-run=server | grep -q '(no change)'; then return; fi
	say "Setting Knative's tracing"
	"$kubectl" "${configured[@]}"
	local deployments=(deployment/eventing-controller deployment/mt-broker-ingress deployment/mt-broker-filter deployment/imc-dispatcher)
	"$kubectl" -n knative-eventing rollout restart "${deployments[@]}"
	"$kubectl" -n knative-eventing rollout status "${deployments[@]}" --timeout=180s
}

# knative_tracing_now prints the keys of tracing as they are, for knative_tracing to set
# again: null is a key that is not there.
knative_tracing_now() {
	# Without data the metadata serve, which have none of the keys either.
	local key template='{{define "value"}}{{if .}}{{printf "%q" .}}{{else}}null{{end}}{{end}}{{$data := or .data .metadata}}'
	for key in tracing-protocol tracing-endpoint tracing-sampling-rate; do
		template+="$key: {{template \"value\" (index \$data \"$key\")}}, "
	done
	"$kubectl" -n knative-eventing get configmap config-observability -o go-template="$template" | sed 's/, $//'
}

# install_updraft FOLDER [KEYS] installs Updraft with functions that scale to zero after
# seconds, RUN_IMAGE, if there is one, as the image of runs, and these keys of
# config-observability. FOLDER, which is made, is the overlay.
install_updraft() {
	say "Installing: functions scale to zero after seconds, the image of runs is ${RUN_IMAGE:-the default}"
	mkdir "$1"
	cat >"$1/kustomization.yaml" <<-E
		apiVersion: kustomize.config.k8s.io/v1beta1
		kind: Kustomization
		sortOptions: {order: fifo}
		resources: [$(realpath --relative-to="$1" config)]
		patches:
		- target: {group: serving.knative.dev, kind: Service}
		  patch: |
		    apiVersion: serving.knative.dev/v1
		    kind: Service
		    metadata: {name: any}
		    spec: {template: {metadata: {annotations: {autoscaling.knative.dev/window: 6s}}}}
		- target: {kind: ConfigMap, name: config-updraft}
		  patch: |
		    apiVersion: v1
		    kind: ConfigMap
		    metadata: {name: any}
		    data: {${RUN_IMAGE:+default-run-image: "$RUN_IMAGE"}}
		- target: {kind: ConfigMap, name: config-observability}
		  patch: |
		    apiVersion: v1
		    kind: ConfigMap
		    metadata: {name: any}
		    data: {${2:-}}
	E
	make --no-print-directory install OVERLAY="$1" KO_FLAGS="${KO_FLAGS:-}"
}
