#!/usr/bin/env bash
# Runs the end-to-end test on a node, with two versions of the program, in images with the
# name in deploy/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

repository=ghcr.io/samplecrd/network-controller
arch=$(go env GOARCH)
tag=1922342 # of digits only, as a short hash of a commit can be
mkdir -p build/e2e
VERSION=v0.0.0-e2e.1 IMAGE=$repository:$tag hack/tools/image/image.sh build/e2e/image.tar "$arch" >/dev/null
VERSION=v0.0.0-e2e.2 IMAGE=$repository:e2e-upgrade hack/tools/image/image.sh build/e2e/upgrade.tar "$arch" >/dev/null
IMAGE=$repository:$tag hack/tools/release/manifests.sh build/e2e
CGO_ENABLED=0 go test -c -o build/e2e/e2e.test ./test/e2e
cd test/e2e
exec ../../build/bin/node exec -images ../../build/e2e/image.tar,../../build/e2e/upgrade.tar -- \
	../../build/e2e/e2e.test -test.v -test.failfast -test.timeout 20m
