#!/usr/bin/env bash
# Creates, edits and deletes a Network. After each act, it shows the state in Kubernetes and
# in Neutron, and checks the latter.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
name=example-network

# outcome REASON [SUBNET] shows the outcome of an act: the event that reports it, and what
# Neutron has, which must be one network with this subnet, or nothing.
outcome() {
	local found
	[[ -z ${2:-} ]] || show kubectl wait --for=condition=Ready "network/$name" --timeout=1m
	show kubectl get networks
	if [[ -n ${2:-} ]]; then
		echo "Conditions"
		kubectl get network "$name" -o \
			jsonpath='{range .status.conditions[*]}{"  "}{.type}={.status}  {.reason}: {.message}{"\n"}{end}'
	fi
	echo "Events"
	once "$1" kubectl get events.events.k8s.io --field-selector="regarding.name=$name,reason=$1" \
		-o jsonpath='{range .items[*]}{.type}  {.reason}: {.note}{"\n"}{end}'
	echo "Neutron has (curl http://$neutron/v2.0/networks)"
	found=$(objects networks id name | sed 's/^/network  /'
		objects subnets cidr gateway_ip | sed 's/^/subnet   /; s/ \([^ ]*\)$/, gateway \1/')
	sed 's/^/  /' <<<"${found:-nothing}"
	[[ $(sed 's/^network  [^ ]* *//' <<<"$found") == "${2:+default/$name$'\n'subnet   $2}" ]]
	echo "✔ as requested"
}

title "A Network becomes a real network"
show kubectl apply -f crd/
start_controller
say ./samplecrd-controller -kubeconfig build/run/kubeconfig -embedded-neutron-address "$neutron"

title "1. Create"
show kubectl apply -f example/example-network.yaml
outcome NetworkCreated "192.168.0.0/16, gateway 192.168.0.1"
first=$(objects networks id)

title "2. Edit: the same range, written differently, and another gateway"
show kubectl patch network "$name" --type=merge --patch '{"spec":{"cidr":"192.168.1.0/16","gateway":"192.168.1.1"}}'
outcome SubnetUpdated "192.168.0.0/16, gateway 192.168.1.1"
[[ $(objects networks id) == "$first" ]]

title "3. Delete"
show kubectl delete network "$name" --timeout=1m
outcome NetworkDeleted

title "All as expected in $SECONDS s. Next: make run, and try it yourself."
