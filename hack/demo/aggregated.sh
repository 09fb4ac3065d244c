#!/usr/bin/env bash
# Shows what Neutron has with kubectl: what a Network owns, what somebody has deleted there,
# an orphan, and what a tenant sees of it: example/aggregated.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# rejected REASON COMMAND… shows a command that is rejected.
rejected() {
	local output
	say "${*:2}"
	! output=$("${@:2}" 2>&1)
	sed 's/^/  /' <<<"$output"
	[[ $output == *"$1"* ]]
}

title "kubectl shows what Neutron really has"
say ./samplecrd-controller -resync-period=1h, with a Neutron in memory
start_controller -resync-period=1h # the next look is in an hour, so that a difference stays
show kubectl apply -f example/example-network.yaml

title "1. An API server registers itself for a group"
say build/bin/neutron-api, with the permissions of example/aggregated/deploy/rbac.yaml
port=$(free_port)
start neutron-api build/bin/neutron-api --kubeconfig="$(account_config neutron-api neutron-api)" \
	--cert-dir="$run/certificates" --bind-address=127.0.0.1 --secure-port="$port" \
	--embedded-neutron-address="$neutron" --resync-period=1s
once "Serving securely" cat "$run/neutron-api.log" >/dev/null
authority=$(base64 "$run/certificates/apiserver.crt" | tr -d '\n')
sed "s|CA_BUNDLE|$authority|; s|port: 6443|port: $port|" example/aggregated/deploy/apiservice.yaml \
	>"$run/apiservice.yaml"
show kubectl apply -f "$run/apiservice.yaml"
show kubectl wait --for=condition=Available --timeout=1m apiservice/v1alpha1.neutron.samplecrd.k8s.io

title "2. Whose is it? What Neutron has, and the Network that owns it"
say kubectl get neutronnetworks -n default -o wide
once Owned kubectl get neutronnetworks -n default -o wide
say "kubectl get nn -A --watch   (its output comes at the end)"
start watch kubectl get nn -A --watch

title "3. Somebody deletes the subnet in Neutron: the Network is Ready, and Neutron is not"
subnet=$(objects subnets id)
say openstack subnet delete "$subnet"
neutron delete "subnets/$subnet"
show kubectl get networks
say kubectl get nn -n default
once "create subnet" kubectl get nn -n default

title "4. A network whose Network does not exist is an orphan, in the namespace of its owner"
marker="samplecrd.k8s.io owner: $(kubectl get namespace kube-system -o jsonpath='{.metadata.uid}')/team-b/gone"
say openstack network create left --description "'$marker'"
neutron create networks -f - <<<"{\"network\": {\"name\": \"left\", \"description\": \"$marker\"}}" >/dev/null
say kubectl get nn -A --field-selector=status.state=Orphaned
once Orphaned kubectl get nn -A --field-selector=status.state=Orphaned

title "5. Kubernetes decides who may see what: alice has the role view in one namespace"
show kubectl create rolebinding alice --clusterrole=view --user=alice -n default
say kubectl get nn -n default --as=alice
once Owned kubectl get nn -n default --as=alice
rejected Forbidden kubectl get nn -n team-b --as=alice
rejected MethodNotAllowed kubectl delete nn --all -n team-b

title "6. What the watch has received meanwhile"
once Orphaned cat "$run/watch.log"

title "All as expected in $SECONDS s. Next: docs/learn/19-an-api-without-storage.md"
