#!/usr/bin/env bash
# Runs the tests on the real OpenStack of the environment, for `make
# test-openstack`: the contract of every Neutron, the stories, and one round of chaos.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

: "${NEUTRON_ENDPOINT:?run make test-openstack}"
go test -count=1 -timeout 20m ./pkg/neutron/openstack -run 'TestReal'
go test -count=1 -timeout 30m ./test/stories
go test -count=1 -timeout 20m ./test/chaos
