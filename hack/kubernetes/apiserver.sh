#!/usr/bin/env bash
# Builds kube-apiserver of another version of Kubernetes than that of this module, from its
# module, and puts it beside the etcd and kubectl of build/bin: a folder for
# KUBEBUILDER_ASSETS.
#
#	hack/kubernetes/apiserver.sh v1.31.4 build/kubernetes/v1.31.4
set -euo pipefail
if (($# != 2)); then
	echo "usage: $0 VERSION FOLDER" >&2
	exit 2
fi
version=$1
mkdir -p "$2/source"
out=$(cd "$2" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
programs=$PWD/build/bin
for program in etcd kubectl; do
	ln -sfn "$programs/kubernetes" "$out/$program"
done
[[ ! -x $out/kube-apiserver ]] || exit 0

cd "$out/source"
export CGO_ENABLED=0 GOFLAGS= GOWORK=off
cat >main.go <<'EOF'
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() { os.Exit(cli.Run(app.NewAPIServerCommand())) }
EOF
# The module replaces those that are developed in its repository by folders, which a
# downloaded module does not have. Each is published with the same version as v0.
gomod=$(go mod download -json "k8s.io/kubernetes@$version" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
{
	printf 'module apiserver\n\ngo %s\n\nrequire k8s.io/kubernetes %s\n\nreplace (\n' "$(go env GOVERSION | sed 's/^go//; s/ .*//')" "$version"
	sed -En 's|^\s*(replace )?(k8s.io/[a-z0-9-]+) => ./staging.*|\2|p' "$gomod" | while read -r module; do
		printf '\t%s => %s v0%s\n' "$module" "$module" "${version#v1}"
	done
	echo ')'
} >go.mod

IFS=. read -r major minor _ <<<"${version#v}"
flags=(-s -w)
for versioned in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
	flags+=(-X "$versioned.gitVersion=$version" -X "$versioned.gitMajor=$major" -X "$versioned.gitMinor=$minor")
done
echo "Building kube-apiserver $version: about ten minutes on two cores, once."
go build -mod=mod -trimpath -buildvcs=false -ldflags "${flags[*]}" -o "$out/kube-apiserver" . 2> >(sed '/^go: /d' >&2)
