#!/usr/bin/env bash
# Writes the modules that the controller is made of, and their licences, to
# docs/dependencies.md; with "check", only fails where that file is not up to
# date. Either way it fails where a licence is not one of those that we ship.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

table=docs/dependencies.md
made=build/licenses
hack/release/build.sh build/bin/release
for arch in amd64 arm64; do
	VERSION=licenses hack/image/build.sh linux "$arch" "$made/linux-$arch/samplecrd-controller"
	build/bin/release -licenses "$made/$arch.md" "$made/linux-$arch/samplecrd-controller"
done
if ! diff -u "$made/amd64.md" "$made/arm64.md"; then
	echo "licenses: the binaries of two architectures are made of different modules" >&2
	exit 1
fi
case ${1:-} in
"") cp "$made/amd64.md" "$table" ;;
check)
	if ! diff -u "$table" "$made/amd64.md"; then
		echo "licenses: $table is not up to date: run make licenses and commit what it changes" >&2
		exit 1
	fi
	echo "licenses: $table is up to date, and every licence is one that we ship"
	;;
*)
	echo "usage: $0 [check]" >&2
	exit 2
	;;
esac
