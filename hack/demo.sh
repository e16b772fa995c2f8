#!/usr/bin/env bash
# The main job, start to end: a Stack is applied, functions wake, a run does
# pulumi up, the status says so.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$PWD/.bin
dir=$(mktemp -d)
out=$dir/dev.out

say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
run() { printf '$ %s\n' "${*//$bin\//}"; "$@"; }

finish() {
	code=$?
	trap - EXIT INT TERM
	if [ $code -ne 0 ]; then
		echo; echo "The demo failed. What updraft dev said last:"; tail -n 30 "$out" || true
		echo "Its log:"; tail -n 30 "$dir/log" || true
	fi
	if [ -n "${pid:-}" ] && kill -TERM "$pid" 2>/dev/null; then wait "$pid" || true; fi
	rm -rf "$dir"
	exit $code
}
trap finish EXIT
trap 'exit 130' INT TERM

say "Starting updraft dev: a real Kubernetes API server, Knative's own source, and Updraft's functions"
"$bin/updraft" dev --dir "$dir/state" --log "$dir/log" >"$out" 2>&1 &
pid=$!
for _ in $(seq 1200); do
	if grep -q 'Ready after' "$out"; then break; fi
	if ! kill -0 "$pid" 2>/dev/null; then echo "updraft dev ended"; exit 1; fi
	sleep 0.1
done
grep 'Ready after' "$out"
export KUBECONFIG=$dir/state/kubeconfig

say "Applying samples/hello: a Program, and a Stack that runs it"
run "$bin/kubectl" apply -f samples/hello
say "The Stack becomes Ready: the stack function claimed an Update, the update function launched one Job, its pod ran pulumi up and reported"
run "$bin/kubectl" wait --for=condition=Ready stack/hello --timeout=120s
run "$bin/kubectl" get stacks,updates

say "Its outputs stand on the Stack, the secret one masked; all of them, in clear, only in a Secret"
run "$bin/kubectl" get stack hello -o jsonpath='{.status.outputs}{"\n"}'
update=$("$bin/kubectl" get stack hello -o jsonpath='{.status.lastUpdate.name}')
run "$bin/kubectl" get secret "$update-stack-outputs"

say "Changing a configuration value: a new generation, so a second Update"
run "$bin/kubectl" patch stack hello --type merge -p '{"spec":{"config":{"name":"moon"}}}'
run "$bin/kubectl" wait --for=jsonpath='{.status.outputs.message}'='Hello, moon!' stack/hello --timeout=120s
run "$bin/kubectl" wait --for=condition=Ready stack/hello --timeout=120s
run "$bin/kubectl" get stacks,updates

say "Between changes nothing runs: no pod is left"
run "$bin/kubectl" wait --for=delete pod --all --timeout=60s
run "$bin/kubectl" get pods

say "Deleting the Stack: destroyOnFinalize, so a destroy runs before it goes"
run "$bin/kubectl" delete stack hello --timeout=120s
run "$bin/kubectl" delete -f samples/hello --ignore-not-found --timeout=120s

say "What updraft dev saw"
sed -n '/Ready after/,$p' "$out" | grep -E 'Stack |Update '
say "Done. Run make dev to try it yourself"
