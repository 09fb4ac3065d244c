#!/usr/bin/env bash
# What runs against the real OpenStack whose environment this has, from
# `make test-openstack`: the contract of every Neutron, and the stories.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

: "${NEUTRON_ENDPOINT:?run make test-openstack}"
go test -count=1 -timeout 20m ./pkg/neutron/openstack -run 'TestReal'
go test -count=1 -timeout 30m ./test/stories
