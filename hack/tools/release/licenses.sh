#!/usr/bin/env bash
# Prints the modules in the controller's binary and their licences. It fails if a
# licence may not be shipped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."

made=build/licenses
mkdir -p "$made"
for arch in amd64 arm64; do
	CGO_ENABLED=0 GOOS=linux GOARCH=$arch go list -deps -tags grpcnotrace -f '{{with .Module}}{{.Path}}{{end}}' . | sort -u >"$made/$arch"
done
if ! diff -u "$made/amd64" "$made/arm64"; then
	echo "licenses: the binaries of two architectures have different modules" >&2
	exit 1
fi
hack/tools/build.sh ./release
VERSION=licenses hack/tools/image/build.sh linux "$(go env GOARCH)" "$made/samplecrd-controller"
build/bin/release -licenses "$made/table" "$made/samplecrd-controller"
cat "$made/table"
