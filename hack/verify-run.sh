#!/usr/bin/env bash
# Plays a newcomer with two terminals: make run in one, in the other the lines
# that it prints. Fails where that does not work, or leaves something behind.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

log=$(mktemp)
set -m # make gets a process group of its own, as it would from a terminal
make run >"$log" 2>&1 &
make=$!
set +m
trap 'kill -INT -- "-$make" 2>/dev/null || true; rm -f "$log"' EXIT

fail() {
	echo "verify-run: $1; make run has printed:" >&2
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

bash -O expand_aliases -euo pipefail -c "
	$second_terminal
	set -x
	kubectl apply -f example/example-network.yaml
	kubectl wait --for=condition=Ready network/example-network --timeout=60s
	kubectl get networks -o wide
	kubectl delete network example-network --timeout=60s
" || fail "the second terminal does not work"

# Ctrl-C, as a terminal sends it: to the whole group.
kill -INT -- "-$make"
wait "$make" || true # make itself ends by the signal, and the rest of the group a moment later
for ((i = 0; i < 300; i++)); do
	kill -0 -- "-$make" 2>/dev/null || break
	sleep 0.1
done
grep -q 'Stopped: no request is in flight' "$log" || fail "the controller was not stopped cleanly"
if pgrep -f "$PWD/build/bin/kubernetes" >/dev/null || compgen -G "build/run/cluster-*" >/dev/null; then
	fail "something was left behind"
fi
echo "verify-run: make run works in two terminals, and leaves nothing behind"
