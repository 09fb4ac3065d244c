#!/usr/bin/env bash
# Fails if generated files differ from the output of hack/update-codegen.sh. It
# works on a copy and does not change the tree.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

copy=build/verify-codegen
rm -rf "$copy"
mkdir -p "$copy"
trap 'rm -rf "$copy"' EXIT
mkdir -p "$copy/docs/learn"
cp -R ./*.go go.mod go.sum hack pkg crd example "$copy"
cp -R docs/reference docs/watch "$copy/docs"
cp -R docs/learn/code "$copy/docs/learn"

GOBIN="${GOBIN:-$PWD/build/bin}" "$copy/hack/update-codegen.sh" >/dev/null

for generated in pkg/apis pkg/client crd example docs/learn/code docs/reference docs/watch; do
	if ! diff -ru "$generated" "$copy/$generated"; then
		echo "verify-codegen: $generated is not up to date: run make generate and commit what it changes" >&2
		exit 1
	fi
done
echo "verify-codegen: pkg/apis, pkg/client, crd, example, docs/learn/code, docs/reference and docs/watch are up to date"
