#!/usr/bin/env bash
# Makes everything that is generated: the deepcopy and register functions beside
# the types, the client packages in pkg/client, the CRD in crd/ and deploy/base, and the
# reference in docs/reference. The
# generators' versions are those of hack/tools/go.mod.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export GOBIN="${GOBIN:-$PWD/build/bin}"
go -C hack/tools mod download k8s.io/code-generator
codegen=$(go -C hack/tools list -m -f '{{.Dir}}' k8s.io/code-generator)

# shellcheck source=/dev/null
source "$codegen/kube_codegen.sh"
kube::codegen::gen_helpers --boilerplate hack/boilerplate.go.txt pkg/apis
kube::codegen::gen_register --boilerplate hack/boilerplate.go.txt pkg/apis
kube::codegen::gen_client \
	--with-watch \
	--with-applyconfig \
	--output-dir pkg/client \
	--output-pkg github.com/samplecrd/network-controller/pkg/client \
	--boilerplate hack/boilerplate.go.txt \
	pkg/apis

go -C hack/tools install sigs.k8s.io/controller-tools/cmd/controller-gen
"$GOBIN/controller-gen" crd paths=./pkg/apis/... output:crd:stdout >crd/network.yaml
cp crd/network.yaml deploy/base/crd.yaml # kustomize reads no file outside of its folder

# What it says while all is well is of no use to anybody.
go -C hack/tools tool crd-ref-docs --log-level=WARN --renderer=markdown --config="$PWD/hack/reference.yaml" \
	--source-path="$PWD/pkg/apis" --output-path="$PWD/docs/reference/api.md" >/dev/null
