#!/usr/bin/env bash
# Builds the controller and packs it into an image for one architecture.
#
#	VERSION=v1.2.3 IMAGE=registry.example/name:v1.2.3 hack/tools/image/image.sh build/image.tar amd64
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."

if (($# != 2)); then
	echo "usage: VERSION=… IMAGE=… $0 OUTPUT ARCHITECTURE" >&2
	exit 2
fi
mkdir -p "$(dirname "$1")"
hack/tools/build.sh ./image
binary=build/image/linux-$2/samplecrd-controller
hack/tools/image/build.sh linux "$2" "$binary"
build/bin/image -o "$1" -image "${IMAGE:?}" -version "${VERSION:?}" -revision "${REVISION:-unknown}" \
	-created "${SOURCE_DATE_EPOCH:-0}" "linux/$2" "$binary"
