#!/usr/bin/env bash
# Tests make run as a user with two terminals: make run in the first, the commands
# that it prints in the second. Fails if they fail or leave something behind.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

log=$(mktemp)
if make run FLAGS=-workers=0 >"$log" 2>&1 || grep -q 'local Kubernetes' "$log" || ! grep -q -e '-workers is 0' "$log"; then
	cat "$log" >&2
	echo "verify-run: make run FLAGS=-workers=0 does not fail before it starts Kubernetes" >&2
	exit 1
fi

set -m # make gets its own process group, as in a terminal
make run >"$log" 2>&1 &
make=$!
set +m
trap 'kill -INT -- "-$make" 2>/dev/null || true; rm -f "$log"' EXIT

fail() {
	echo "verify-run: $1; output of make run:" >&2
	cat "$log" >&2
	exit 1
}

for ((i = 0; ; i++)); do
	grep -q 'Starting workers' "$log" && break
	kill -0 "$make" 2>/dev/null || fail "it has ended"
	((i < 600)) || fail "no worker has started in a minute"
	sleep 0.1
done

second_terminal=$(grep -E '^ *(export KUBECONFIG=|alias kubectl=|kubectl )' "$log" | head -2)
[[ $(wc -l <<<"$second_terminal") == 2 ]] || fail "it does not print two lines for a second terminal"
grep -qF "KUBECONFIG=$PWD/build/run/kubeconfig" <<<"$second_terminal" || fail "the kubeconfig path is not the same in every run"

page=$(grep -oE 'http://127\.0\.0\.1:[0-9]+/ in a browser' "$log" | cut -d' ' -f1) || fail "it does not print the address of the debug page"
curl -fsS "$page" | grep -q '<html' || fail "the debug page is not at $page"
curl -fsS "${page}api/state" | grep -q '"leads": *true' || fail "the debug page does not show that this replica leads"

bash -O expand_aliases -euo pipefail -c "
	$second_terminal
	set -x
	kubectl apply -f example/example-network.yaml
	kubectl wait --for=condition=Ready network/example-network --timeout=60s
	kubectl get networks -o wide
	kubectl delete network example-network --timeout=60s
" || fail "the second terminal does not work"

# A terminal sends Ctrl-C to the whole group.
kill -INT -- "-$make"
wait "$make" || true # make ends first
for ((i = 0; i < 300; i++)); do
	kill -0 -- "-$make" 2>/dev/null || break
	sleep 0.1
done
grep -q 'Stopped the local Kubernetes. Removed' "$log" || fail "it does not print what it removed"
grep -q 'no request is in flight' "$log" || fail "the controller was not stopped cleanly"
if pgrep -f "$PWD/build/bin/kubernetes" >/dev/null || compgen -G "build/run/cluster-*" >/dev/null || [[ -L build/run/kubeconfig ]]; then
	fail "something was left behind"
fi
echo "verify-run: make run works in two terminals and leaves nothing behind"
