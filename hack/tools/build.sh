#!/usr/bin/env bash
# Builds programs of this module, or tools of its go.mod, into build/bin.
#
#	hack/tools/build.sh ./release golang.org/x/vuln/cmd/govulncheck
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
CGO_ENABLED=0 GOWORK=off exec go build -trimpath -o ../../build/bin/ "$@" 2> >(sed '/^go: downloading /d' >&2)
