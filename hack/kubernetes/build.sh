#!/usr/bin/env bash
# Builds a program of this module: the one of this folder, which is etcd,
# kube-apiserver, kube-controller-manager and kubectl in one file, or the one of
# a subfolder. Creates a symbolic link kubectl beside the first. Needs Go and a
# module proxy, and no C compiler.
#
#	hack/kubernetes/build.sh build/bin/kubernetes
#	hack/kubernetes/build.sh build/bin/node-components ./node
#
# Does nothing if the program exists and was built from the current sources by the
# current version of Go. With -check before the arguments, it only reports by its exit code
# whether that is so.
set -euo pipefail

check=
if [[ ${1:-} == -check ]]; then
	check=yes
	shift
fi
if (($# < 1 || $# > 2)) || [[ -z $1 || $1 == -* ]]; then
	echo "usage: $0 [-check] OUTPUT [PACKAGE]" >&2
	exit 2
fi
[[ -z $check || -d $(dirname "$1") ]] || exit 1
mkdir -p "$(dirname "$1")"
out=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
package=${2:-.}
cd "$(dirname "${BASH_SOURCE[0]}")"

export CGO_ENABLED=0 GOWORK=off

# Everything that determines the program. Comparing it takes no time; go build
# needs about four seconds to find that the program is up to date.
sources() {
	go env GOVERSION GOOS GOARCH GOEXPERIMENT
	cat go.mod go.sum "$package/main.go" multicall/multicall.go build.sh
}

up_to_date() {
	[[ -x $out ]] || return
	[[ $package != . || -e $(dirname "$out")/kubectl ]] || return
	sources | cmp -s - "$out.stamp"
}

# A second build waits for the first: otherwise, each compiles everything. A lock
# whose owner has died is removed. If two builds remove it at the same moment,
# both build, and the result is still correct.
lock() {
	local owner waiting=
	while ! ln -sn $$ "$out.lock" 2>/dev/null; do
		owner=$(readlink "$out.lock" || true)
		if [[ -n $owner ]] && ! kill -0 "$owner" 2>/dev/null; then
			rm -f "$out.lock"
			continue
		fi
		if [[ -z $waiting ]]; then
			echo "Waiting for process $owner, which is building Kubernetes."
			waiting=yes
		fi
		sleep 1
	done
}

compile() {
	local version major minor versioned flags=(-s -w)
	version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
	IFS=. read -r major minor _ <<<"${version#v}"
	for versioned in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
		flags+=(-X "$versioned.gitVersion=$version" -X "$versioned.gitMajor=$major" -X "$versioned.gitMinor=$minor"
			-X "$versioned.gitCommit=" -X "$versioned.gitTreeState=archive")
	done
	exec go build -v -trimpath -buildvcs=false -ldflags "${flags[*]}" -o "$tmp/program" "$package"
}

# Prints every 20 seconds how far the build is and estimates the time left. The
# estimate is too high if Go's build cache has some of the packages already.
progress() {
	local next=20 compiled total= begun=0
	while kill -0 "$build" 2>/dev/null; do
		sleep 1
		compiled=$(grep -vc '^go: ' "$tmp/log" || true)
		((compiled > 0)) || begun=$SECONDS
		((SECONDS >= next)) || continue
		next=$((SECONDS + 20))
		if ((compiled == 0)); then
			echo "  ${SECONDS}s: preparing, $(grep -c '^go: ' "$tmp/log" || true) modules downloaded"
			continue
		fi
		total=${total:-$(go list -deps "$package" 2>/dev/null | grep -c . || true)}
		if ((compiled >= total)); then
			echo "  ${SECONDS}s: linking"
		elif ((compiled * 20 < total)); then # too early for an estimate
			echo "  ${SECONDS}s: $compiled of at most $total packages compiled"
		else
			echo "  ${SECONDS}s: $compiled of at most $total packages compiled, about $(minutes $(((SECONDS - begun) * (total - compiled) / compiled))) left"
		fi
	done
}

minutes() {
	local rounded=$(($1 / 60 + 1))
	((rounded == 1)) && echo "1 minute" || echo "$rounded minutes"
}

clean_up() {
	if [[ -n ${build:-} ]]; then
		kill -INT -- "-$build" 2>/dev/null || true # go build, and the compilers that it has started
		wait "$build" 2>/dev/null || true
	fi
	if [[ $(readlink "$out.lock" || true) == "$$" ]]; then
		rm -f "$out.lock"
	fi
	rm -rf "${tmp:-}"
}

if up_to_date; then
	exit
elif [[ -n $check ]]; then
	exit 1
fi
tmp='' build=''
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
lock
if up_to_date; then # the other build has built it
	exit
fi

echo "Building Kubernetes into $out: about ten minutes on two cores, once."
if [[ $package == . ]]; then
	echo "make demo and make run do without it, with a folder of etcd, kube-apiserver and kubectl"
	echo "(KUBEBUILDER_ASSETS=folder); make run does, with a cluster (KUBECONFIG=path)."
fi
tmp=$(mktemp -d "$out.XXXXXX")
sources >"$tmp/stamp"
SECONDS=0
set -m # the build gets its own process group
(compile) >"$tmp/log" 2>&1 &
build=$!
set +m
progress
if ! wait "$build"; then
	build=
	echo "Building Kubernetes failed. The last lines of go build:" >&2
	# The log also has the names of the packages compiled.
	grep -Ev '^[A-Za-z0-9._~/-]+$|^go: downloading ' "$tmp/log" | tail -n 20 >&2 || true
	exit 1
fi
build=
rm -f "$out.stamp" # it may describe other sources than those of the new file
mv -f "$tmp/program" "$out"
if [[ $package == . ]]; then
	ln -sfn "$(basename "$out")" "$(dirname "$out")/kubectl"
fi
mv -f "$tmp/stamp" "$out.stamp"
echo "Built Kubernetes in ${SECONDS}s."
