#!/usr/bin/env bash
# Shows a PortRule: a Kubernetes without nodes, an agent in a network namespace, and
# connections that pass or do not. Needs root, and the programs that make builds.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

node=portrule-demo-$$ clients=portrule-demo-clients-$$ cluster='' agent='' server=''
folder=$(mktemp -d)
clean() {
	local pid
	for pid in $agent $server $cluster; do
		kill "$pid" 2>/dev/null && wait "$pid" || true
	done
	ip netns delete "$node" 2>/dev/null || true
	ip netns delete "$clients" 2>/dev/null || true
	rm -rf "$folder"
}
trap clean EXIT

show() {
	printf '\n$ %s\n' "$*"
	"$@"
}
kubectl() { build/bin/kubectl --kubeconfig "$kubeconfig" "$@"; }

# connect FROM: with this result, a client connects to the node's port 8080.
connect() {
	local code
	code=$(ip netns exec "$clients" curl -s -o /dev/null -w '%{http_code}' --interface "$1" http://10.77.0.1:8080/) || true
	printf 'a connection from %s: %s\n' "$1" "$([[ $code == 200 ]] && echo passes || echo 'is rejected')"
	[[ $code == "$2" ]]
}

echo "Starting a Kubernetes API server on loopback, and two network namespaces: a node and its clients"
build/bin/local cluster >"$folder/cluster" 2>&1 &
cluster=$!
until grep -q 'It is ready' "$folder/cluster"; do
	kill -0 "$cluster" || { cat "$folder/cluster"; exit 1; }
	sleep 0.2
done
kubeconfig=$(sed -n 's/.*KUBECONFIG=//p' "$folder/cluster" | head -1)
ip netns add "$node"
ip netns add "$clients"
ip -n "$node" link add eth0 type veth peer name eth0 netns "$clients"
ip -n "$node" address add 10.77.0.1/24 dev eth0
ip -n "$clients" address add 10.77.0.2/24 dev eth0
ip -n "$clients" address add 10.77.0.3/24 dev eth0
ip -n "$node" link set eth0 up
ip -n "$clients" link set eth0 up
ip netns exec "$node" python3 -m http.server 8080 --directory "$folder" >/dev/null 2>&1 &
server=$!
until ip netns exec "$clients" curl -s -o /dev/null http://10.77.0.1:8080/; do sleep 0.2; done

show kubectl apply -f example/portrule/crd.yaml
kubectl create -f - <<<"{apiVersion: v1, kind: Node, metadata: {name: $node}}"
build/bin/portrule -kubeconfig "$kubeconfig" -node "$node" -netns "/run/netns/$node" 2>"$folder/agent" &
agent=$!
connect 10.77.0.2 200
connect 10.77.0.3 200

printf '\n1. A rule: only 10.77.0.3 may connect\n'
kubectl apply -f - <<<'{apiVersion: firewalld.fedoraproject.org/v1, kind: PortRule, metadata: {name: web}, spec: {port: 8080, sources: [10.77.0.3/32]}}'
until kubectl get ports web -o jsonpath='{.status.nodes[*].conditions[*].status}' | grep -q True; do sleep 0.2; done
show kubectl get ports
show ip netns exec "$node" nft list table inet portrule
connect 10.77.0.2 000
connect 10.77.0.3 200

printf '\n2. Somebody deletes the table: the agent restores it\n'
show ip netns exec "$node" nft delete table inet portrule
until ip netns exec "$node" nft list table inet portrule >/dev/null 2>&1; do sleep 0.1; done
connect 10.77.0.2 000

printf '\n3. The rule is deleted\n'
show kubectl delete ports web
while ip netns exec "$node" nft list table inet portrule >/dev/null 2>&1; do sleep 0.1; done
connect 10.77.0.2 200
printf '\nAll as expected.\n'
