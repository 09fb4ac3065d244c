#!/usr/bin/env bash
# Runs the end-to-end test: on a node that it starts, or on the cluster of the
# kubeconfig file given; `-openstack` uses a real Keystone and Neutron.
#
#	test/e2e/run.sh [-openstack | KUBECONFIG]
#
# On an existing cluster, load the image first. IMAGE is its name, if it is not that
# in deploy/; UPGRADE_IMAGE is an image to upgrade to; NEUTRON_ADDRESS is an address
# of this machine that pods can reach. The test deletes every Network of the
# cluster: use one that has none, and no controller.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

CGO_ENABLED=0 go test -c -o build/bin/e2e.test ./test/e2e
test=(build/bin/e2e.test -test.v -test.failfast -test.timeout 20m)

if [[ $# -gt 0 && $1 != -openstack ]]; then
	export E2E_KUBECONFIG=$1 PATH="$PATH:$PWD/build/bin"
	exec "${test[@]}"
fi

# Two versions of the program, in images with the name in deploy/.
repository=ghcr.io/samplecrd/network-controller
arch=$(go env GOARCH)
mkdir -p build/e2e
VERSION=v0.0.0-e2e.1 IMAGE=$repository:latest hack/tools/image/image.sh build/e2e/image.tar "$arch" >/dev/null
VERSION=v0.0.0-e2e.2 IMAGE=$repository:e2e-upgrade hack/tools/image/image.sh build/e2e/upgrade.tar "$arch" >/dev/null
export IMAGE=$repository:latest UPGRADE_IMAGE=$repository:e2e-upgrade

if [[ ${1:-} == -openstack ]]; then
	# The node's network has no route out, so packages are installed before.
	code=0
	build/bin/openstack exec -- true || code=$?
	((code == 0)) || exit "$code"
	test=(build/bin/openstack exec -- "${test[@]}" -test.run 'TestEndToEnd/with_an_OpenStack')
fi
exec build/bin/node exec -images build/e2e/image.tar,build/e2e/upgrade.tar -- "${test[@]}"
