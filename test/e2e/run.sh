#!/usr/bin/env bash
# Runs the end-to-end test on a node, with three images: one of the tag in deploy/, as make
# image makes it; one as for a release, for two architectures and with the manifests in an OCI
# artifact; and one of another version, to upgrade to.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

repository=ghcr.io/samplecrd/network-controller
out=build/e2e
rm -rf "$out"
mkdir -p "$out"
VERSION=v0.0.0-e2e.2 IMAGE=$repository:e2e-upgrade hack/tools/image/image.sh $out/upgrade.tar "$(go env GOARCH)" >/dev/null
export VERSION=v0.0.0-e2e.1
IMAGE=$repository:latest hack/tools/image/image.sh $out/latest.tar "$(go env GOARCH)" >/dev/null
export IMAGE=$repository:1922342 # of digits only, as a short hash of a commit can be
hack/tools/image/image.sh $out/image.tar amd64 arm64 >/dev/null
hack/tools/release/manifests.sh $out >/dev/null

# unpack unpacks the only layer of an OCI artifact into a folder, as Flux does.
unpack() {
	local layout=$2.layout blob=index.json
	mkdir -p "$2" "$layout"
	tar -xf "$1" -C "$layout"
	for _ in manifest layer; do # the last digest in the index is the manifest's, and in that the layer's
		blob=blobs/sha256/$(grep -oE '[0-9a-f]{64}' "$layout/$blob" | tail -1)
	done
	tar -xf "$layout/$blob" -C "$2"
}
unpack "$out/samplecrd-controller_${VERSION}_manifests.tar" $out/manifests
CGO_ENABLED=0 go test -c -o build/e2e/e2e.test ./test/e2e
cd test/e2e
exec ../../build/bin/node exec -images ../../build/e2e/latest.tar,../../build/e2e/image.tar,../../build/e2e/upgrade.tar -- \
	../../build/e2e/e2e.test -test.v -test.failfast -test.timeout 20m
