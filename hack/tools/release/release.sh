#!/usr/bin/env bash
# Makes a release in the folder given: binaries with their SBOMs, the image for two
# architectures, the manifests (crds.yaml, and then install.yaml; both also as an OCI
# artifact), the licences, and checksums. The files depend only on the commit and the
# version of Go.
#
#	VERSION=v1.2.3 IMAGE=… REVISION=… SOURCE_DATE_EPOCH=… hack/tools/release/release.sh build/release
#
# KUBECTL is the kubectl that renders install.yaml.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."

out=${1:?"usage: $0 FOLDER"}
: "${VERSION:?}" "${IMAGE:?}" "${REVISION:?}" "${SOURCE_DATE_EPOCH:?}"
name=samplecrd-controller
rm -rf "$out"
mkdir -p "$out"
out=$(cd "$out" && pwd)

hack/tools/build.sh ./release
for platform in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64; do
	binary=$out/${name}_${VERSION}_${platform/\//_}
	echo "$(basename "$binary")"
	hack/tools/image/build.sh "${platform%/*}" "${platform#*/}" "$binary"
	build/bin/release -sbom "$binary.cdx.json" -version "$VERSION" -created "$SOURCE_DATE_EPOCH" "$binary"
done

hack/tools/image/image.sh "$out/${name}_${VERSION}_image.tar" amd64 arm64

build/bin/release -texts "$out/THIRD_PARTY_LICENSES.txt" "$out/${name}_${VERSION}_linux_amd64"
cp LICENSE "$out"
hack/tools/release/manifests.sh "$out"

(cd "$out" && sha256sum -- * >../SHA256SUMS && mv ../SHA256SUMS .)
ls -l "$out"
