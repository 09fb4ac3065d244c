#!/usr/bin/env bash
# Makes a release in the folder given: binaries with their SBOMs, the image, the
# manifests (crd.yaml, and then install.yaml), the licences, and checksums. The
# files depend only on the commit and the version of Go.
#
#	VERSION=v1.2.3 IMAGE=… REVISION=… SOURCE_DATE_EPOCH=… hack/tools/release/release.sh build/release
#
# KUBECTL is the kubectl that renders install.yaml.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."

out=${1:?"usage: $0 FOLDER"}
: "${VERSION:?}" "${IMAGE:?}" "${REVISION:?}" "${SOURCE_DATE_EPOCH:?}"
kubectl=${KUBECTL:-build/bin/kubectl}
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

for arch in amd64 arm64; do
	hack/tools/image/image.sh "$out/${name}_${VERSION}_image_$arch.tar" "$arch"
done

build/bin/release -texts "$out/THIRD_PARTY_LICENSES.txt" "$out/${name}_${VERSION}_linux_amd64"
cp LICENSE "$out"
cat crd/*.yaml >"$out/crd.yaml"

# A kustomization that sets the image to this version.
overlay=build/install
rm -rf "$overlay"
mkdir -p "$overlay"
cat >"$overlay/kustomization.yaml" <<EOF
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
- ../../deploy/overlays/openstack
images:
- name: ghcr.io/samplecrd/network-controller
  newName: ${IMAGE%:*}
  newTag: ${IMAGE##*:}
EOF
"$kubectl" kustomize "$overlay" >"$out/install.yaml"
if ! grep -qF "image: $IMAGE" "$out/install.yaml"; then
	echo "release: install.yaml does not run $IMAGE" >&2
	exit 1
fi
if grep -q "^kind: CustomResourceDefinition" "$out/install.yaml"; then
	echo "release: install.yaml has the CRD: kubectl delete -f install.yaml would delete all Networks" >&2
	exit 1
fi

(cd "$out" && sha256sum -- * >../SHA256SUMS && mv ../SHA256SUMS .)
ls -l "$out"
