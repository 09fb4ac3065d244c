#!/usr/bin/env bash
# Runs a command with the programs of a local Kubernetes. They are, in this order:
#
#	the folder in KUBEBUILDER_ASSETS, if it is set
#	build/bin/kubernetes, if hack/kubernetes/build.sh has built it from the current sources
#	what setup-envtest downloads for this version of Kubernetes, if its index can be reached
#	build/bin/kubernetes, which is built now
#
#	hack/kubernetes/with.sh build/bin/local tour
#
# A download has no kube-controller-manager: what needs it builds Kubernetes first. For tests,
# BIN is a folder in place of build/bin, and ENVTEST_INDEX the URL of an index.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bin=$(realpath -m "${BIN:-build/bin}")
seconds=10 # for the index of setup-envtest

# download downloads the programs, once, and sets KUBEBUILDER_ASSETS. It fails if it cannot.
download() {
	local version index=() envtest
	version=$(sed -nE 's/^\s*k8s\.io\/kubernetes v([0-9]+\.[0-9]+)\..*/\1/p' hack/kubernetes/go.mod)
	[[ -z ${ENVTEST_INDEX:-} ]] || index=(--index "$ENVTEST_INDEX")
	hack/tools/build.sh sigs.k8s.io/controller-runtime/tools/setup-envtest || return
	envtest=(build/bin/setup-envtest --bin-dir "$bin/envtest")
	if KUBEBUILDER_ASSETS=$("${envtest[@]}" use -i -p path "$version" 2>/dev/null); then
		return
	fi
	echo "Looking for a prebuilt Kubernetes $version, for at most $seconds seconds." >&2
	if [[ $(timeout "$seconds" "${envtest[@]}" list "${index[@]}" --os "$(go env GOOS)" --arch "$(go env GOARCH)" "$version" 2>/dev/null) != *available* ]]; then
		echo "There is none: the index of setup-envtest cannot be reached, or does not have this version." >&2
		return 1
	fi
	echo "Downloading etcd, kube-apiserver and kubectl: tens of megabytes, once, into $bin/envtest. setup-envtest checks them." >&2
	KUBEBUILDER_ASSETS=$("${envtest[@]}" use "${index[@]}" -p path "$version") || {
		echo "The download failed." >&2
		return 1
	}
}

if [[ -z ${KUBEBUILDER_ASSETS:-} ]] && ! hack/kubernetes/build.sh -check "$bin/kubernetes"; then
	unset KUBEBUILDER_ASSETS
	if download; then
		export KUBEBUILDER_ASSETS
		echo "Using the Kubernetes in $KUBEBUILDER_ASSETS." >&2
	else
		unset KUBEBUILDER_ASSETS
		hack/kubernetes/build.sh "$bin/kubernetes"
	fi
fi
exec "$@"
