#!/usr/bin/env bash
# Generates the deepcopy and register functions of the types, the packages in
# pkg/client, the CRD in crd/, the code of a lesson, docs/reference, and the page of
# docs/watch. The versions of the generators are those of hack/tools/go.mod.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export GOBIN="${GOBIN:-$PWD/build/bin}"
go -C hack/tools mod download k8s.io/code-generator
codegen=$(go -C hack/tools list -m -f '{{.Dir}}' k8s.io/code-generator)

# shellcheck source=/dev/null
source "$codegen/kube_codegen.sh"
for folder in pkg example/namespaceplus example/portrule; do
	(
		boilerplate=$PWD/hack/boilerplate.go.txt
		cd "$folder" # it may be a module of its own
		kube::codegen::gen_helpers --boilerplate "$boilerplate" apis
		kube::codegen::gen_register --boilerplate "$boilerplate" apis
		kube::codegen::gen_client \
			--with-watch \
			--with-applyconfig \
			--output-dir client \
			--output-pkg "github.com/samplecrd/network-controller/$folder/client" \
			--boilerplate "$boilerplate" \
			apis
	)
done

go -C hack/tools install sigs.k8s.io/controller-tools/cmd/controller-gen
"$GOBIN/controller-gen" crd paths=./pkg/apis/... output:crd:stdout |
	CGO_ENABLED=0 go run -trimpath ./hack/crd pkg/apis/samplecrd/v1/schema.yaml >crd/network.yaml
"$GOBIN/controller-gen" crd paths=./example/namespaceplus/apis/... output:crd:dir=example/namespaceplus/deploy
(cd example/portrule && "$GOBIN/controller-gen" crd paths=./apis/... output:crd:stdout >crd.yaml)

# The example of an aggregated API is a module of its own. Its OpenAPI needs the types of
# Kubernetes that every API uses.
go -C hack/tools install k8s.io/kube-openapi/cmd/openapi-gen
(
	cd example/aggregated
	boilerplate=../../hack/boilerplate.go.txt
	kube::codegen::gen_helpers --boilerplate "$boilerplate" v1alpha1
	# The names of models only for our own package: a file of names is written beside the
	# types, which are in the module cache for the others.
	unused=$(mktemp -d)
	"$GOBIN/openapi-gen" --go-header-file "$boilerplate" --output-dir "$unused" --report-filename /dev/null \
		--output-pkg names --output-file zz_generated.openapi.go --output-model-name-file zz_generated.model_name.go ./v1alpha1
	rm -r "$unused"
	"$GOBIN/openapi-gen" --go-header-file "$boilerplate" --output-dir openapi --report-filename /dev/null \
		--output-pkg github.com/samplecrd/network-controller/example/aggregated/openapi --output-file zz_generated.openapi.go \
		k8s.io/apimachinery/pkg/{apis/meta/v1,runtime,version} ./v1alpha1
)

# crd-ref-docs prints warnings for standard types, which are expected.
go -C hack/tools tool crd-ref-docs --log-level=WARN --renderer=markdown --config="$PWD/hack/reference/api.yaml" \
	--source-path="$PWD/pkg/apis" --output-path="$PWD/docs/reference/api.md" >/dev/null
CGO_ENABLED=0 go run -trimpath ./hack/reference # conditions, flags and metrics
hack/update-watch.sh
