#!/usr/bin/env bash
# Builds the controller as it is shipped: static, and the same file wherever and
# by whomever it is built from one commit with one version of Go.
#
#	VERSION=v1.2.3 hack/image/build.sh linux arm64 build/image/arm64/samplecrd-controller
#
# make image, make release and the Dockerfile all build with it.
set -euo pipefail

if (($# != 3)); then
	echo "usage: VERSION=… $0 GOOS GOARCH OUTPUT" >&2
	exit 2
fi
mkdir -p "$(dirname "$3")"
out=$(cd "$(dirname "$3")" && pwd)/$(basename "$3")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# What a developer has set for other builds would show in the file.
export CGO_ENABLED=0 GOWORK=off GOFLAGS= GOEXPERIMENT= GOAMD64=v1 GOARM64=v8.0 GOOS=$1 GOARCH=$2
# gRPC, of which the traces use a little, would bring html/template, and with it
# every method of everything: 55 MB in place of 35.
exec go build -trimpath -buildvcs=false -tags grpcnotrace -ldflags "-s -w -X main.version=${VERSION:?}" -o "$out" .
