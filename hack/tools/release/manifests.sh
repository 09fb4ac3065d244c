#!/usr/bin/env bash
# Writes the manifests of a release to a folder: crds.yaml, and install.yaml, which runs
# IMAGE with an OpenStack. They are two files, because who deletes the CRD deletes all
# Networks. An OCI artifact has both, too.
#
#	VERSION=v1.2.3 IMAGE=registry.example/name:v1.2.3 hack/tools/release/manifests.sh build/release
set -euo pipefail
out=$(cd "${1:?"usage: $0 FOLDER"}" && pwd)
: "${VERSION:?}" "${IMAGE:?}"
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."

for file in crd/*.yaml; do
	echo "---"
	cat "$file"
done >"$out/crds.yaml"

# A kustomization that sets the image.
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
  newTag: "${IMAGE##*:}"
EOF
"${KUBECTL:-build/bin/kubectl}" kustomize "$overlay" >"$out/install.yaml"
if ! grep -qF "image: $IMAGE" "$out/install.yaml"; then
	echo "install.yaml does not run $IMAGE" >&2
	exit 1
fi
if grep -q "^kind: CustomResourceDefinition" "$out/install.yaml"; then
	echo "install.yaml has the CRD: kubectl delete -f install.yaml would delete all Networks" >&2
	exit 1
fi

hack/tools/build.sh ./image
build/bin/image -manifests -o "$out/samplecrd-controller_${VERSION}_manifests.tar" \
	-image "${IMAGE%:*}-manifests:${IMAGE##*:}" -version "$VERSION" -revision "${REVISION:-unknown}" \
	-created "${SOURCE_DATE_EPOCH:-0}" "$out/crds.yaml" "$out/install.yaml"
