#!/usr/bin/env bash
# Gives a tenant a namespace, breaks what is in it, and deletes it: example/namespaceplus.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

title "A tenant gets a namespace"
say build/bin/namespaceplus, with the permissions of example/namespaceplus/deploy
start namespaceplus build/bin/namespaceplus -kubeconfig="$(account_config namespaceplus-system namespaceplus)"

title "1. Create"
show kubectl apply -f example/namespaceplus/tenant.yaml
show kubectl wait --for=condition=Ready namespaceplus/team-a --timeout=1m
show kubectl get resourcequota,limitrange,networkpolicy,poddisruptionbudget,rolebinding -n team-a

title "2. Somebody raises the quota: the event repairs it"
show kubectl patch resourcequota/namespaceplus -n team-a --type=merge -p '{"spec":{"hard":{"pods":"500"}}}'
show kubectl wait -n team-a --for=jsonpath='{.spec.hard.pods}'=20 resourcequota/namespaceplus --timeout=1m

title "3. A namespace of somebody else is not taken over"
show kubectl patch namespaceplus team-a --type=merge -p '{"spec":{"deletionPolicy":"Delete"}}'
show kubectl create namespace team-b
show kubectl create -f example/namespaceplus/taken.yaml
show kubectl wait --for=condition=Ready=false namespaceplus/team-b --timeout=1m
show kubectl get namespaceplus -o wide

title "4. Delete: the garbage collector deletes the namespace"
show kubectl wait --for=jsonpath='{.metadata.ownerReferences[0].name}'=team-a namespace/team-a --timeout=1m
show kubectl delete namespaceplus team-a team-b
show kubectl wait --for=delete namespace/team-a --timeout=2m
show kubectl get namespace team-b

title "All as expected in $SECONDS s. Next: docs/learn/17-namespace-per-tenant.md"
