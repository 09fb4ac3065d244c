#!/usr/bin/env bash
# Builds the controller and packs it into an image for one or more architectures.
#
#	VERSION=v1.2.3 IMAGE=registry.example/name:v1.2.3 hack/tools/image/image.sh build/image.tar amd64
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."

if (($# < 2)); then
	echo "usage: VERSION=… IMAGE=… $0 OUTPUT ARCHITECTURE…" >&2
	exit 2
fi
mkdir -p "$(dirname "$1")"
hack/tools/build.sh ./image
pairs=()
for arch in "${@:2}"; do
	binary=build/image/linux-$arch/samplecrd-controller
	hack/tools/image/build.sh linux "$arch" "$binary"
	pairs+=("linux/$arch" "$binary")
done
build/bin/image -o "$1" -image "${IMAGE:?}" -version "${VERSION:?}" -revision "${REVISION:-unknown}" \
	-created "${SOURCE_DATE_EPOCH:-0}" "${pairs[@]}"
