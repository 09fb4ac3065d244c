#!/usr/bin/env bash
# Builds the program of this folder, or a tool of its go.mod.
#
#	hack/release/build.sh build/bin/release
#	hack/release/build.sh build/bin/govulncheck golang.org/x/vuln/cmd/govulncheck
set -euo pipefail
mkdir -p "$(dirname "$1")"
out=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
cd "$(dirname "${BASH_SOURCE[0]}")"
CGO_ENABLED=0 GOWORK=off exec go build -trimpath -o "$out" "${2:-.}" 2> >(sed '/^go: downloading /d' >&2)
