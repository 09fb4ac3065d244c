#!/usr/bin/env bash
# Makes the release of the last commit in two clones, and fails if a file differs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."

copies=$PWD/build/verify-release
rm -rf "$copies"
trap 'rm -rf "$copies"' EXIT
for copy in one two/in/another/folder; do
	git clone -q . "$copies/$copy"
	# The variables that make exports describe this tree, which may have changes.
	env -u MAKEFLAGS -u VERSION -u REVISION -u SOURCE_DATE_EPOCH -u IMAGE \
		KUBECTL="${KUBECTL:-$PWD/build/bin/kubectl}" make -C "$copies/$copy" --no-print-directory release >"$copies/log" 2>&1 || {
		cat "$copies/log" >&2
		exit 1
	}
done
if ! diff "$copies/one/build/release/SHA256SUMS" "$copies/two/in/another/folder/build/release/SHA256SUMS"; then
	echo "verify-release: these files differ between two clones of one commit" >&2
	exit 1
fi
cat "$copies/one/build/release/SHA256SUMS"
echo "verify-release: two clones of $(git rev-parse --short HEAD) give identical files"
