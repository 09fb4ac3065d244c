#!/usr/bin/env bash
# Builds a program of this module: the one of this folder, which is etcd,
# kube-apiserver, kube-controller-manager and kubectl in one file, or the one of
# a folder in it. Puts a symbolic link kubectl beside the first. Needs Go and its
# module proxy, and no C compiler.
#
#	hack/kubernetes/build.sh build/bin/kubernetes
#	hack/kubernetes/build.sh build/bin/node-components ./node
#
# Does nothing when the program is there already, made of the same sources by
# the same Go.
set -euo pipefail

if (($# < 1 || $# > 2)) || [[ -z $1 || $1 == -* ]]; then
	echo "usage: $0 OUTPUT [PACKAGE]" >&2
	exit 2
fi
mkdir -p "$(dirname "$1")"
out=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
package=${2:-.}
cd "$(dirname "${BASH_SOURCE[0]}")"

export CGO_ENABLED=0 GOWORK=off

# All that the program is made of. Go itself finds out in about four seconds
# that there is nothing to do; comparing this takes none.
sources() {
	go env GOVERSION GOOS GOARCH GOFLAGS GOEXPERIMENT
	cat go.mod go.sum "$package/main.go" build.sh
}

up_to_date() {
	[[ -x $out ]] || return
	[[ $package != . || -e $(dirname "$out")/kubectl ]] || return
	sources | cmp -s - "$out.stamp"
}

# Two builds at once would each compile everything: the second one waits for
# the first. A lock whose owner has died is taken over. Should two take it over
# at the same moment, both build, and the result is still right.
lock() {
	local owner waiting=
	while ! ln -sn $$ "$out.lock" 2>/dev/null; do
		owner=$(readlink "$out.lock" || true)
		if [[ -n $owner ]] && ! kill -0 "$owner" 2>/dev/null; then
			rm -f "$out.lock"
			continue
		fi
		if [[ -z $waiting ]]; then
			echo "Waiting for process $owner, which is building Kubernetes already."
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

# Says every 20 seconds how far the build is, until it has ended.
progress() {
	local next=20 compiled total=
	while kill -0 "$build" 2>/dev/null; do
		sleep 1
		((SECONDS >= next)) || continue
		next=$((SECONDS + 20))
		compiled=$(grep -vc '^go: ' "$tmp/log" || true)
		if ((compiled == 0)); then
			echo "  ${SECONDS}s: preparing, $(grep -c '^go: ' "$tmp/log" || true) modules downloaded so far"
			continue
		fi
		total=${total:-$(go list -deps "$package" 2>/dev/null | grep -c . || true)}
		echo "  ${SECONDS}s: $compiled of at most $total packages compiled"
	done
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
fi
tmp='' build=''
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
lock
if up_to_date; then # the one that we waited for has built it
	exit
fi

echo "Building Kubernetes into $out (the first build may take ten minutes on two cores)."
tmp=$(mktemp -d "$out.XXXXXX")
sources >"$tmp/stamp"
SECONDS=0
set -m # gives the build a process group of its own
(compile) >"$tmp/log" 2>&1 &
build=$!
set +m
progress
if ! wait "$build"; then
	build=
	echo "Building Kubernetes failed. What go build said at the end:" >&2
	# Without the names of the packages that were compiled.
	grep -Ev '^[A-Za-z0-9._~/-]+$|^go: downloading ' "$tmp/log" | tail -n 20 >&2 || true
	exit 1
fi
build=
rm -f "$out.stamp" # it may belong to other sources than the file that comes now
mv -f "$tmp/program" "$out"
if [[ $package == . ]]; then
	ln -sfn "$(basename "$out")" "$(dirname "$out")/kubectl"
fi
mv -f "$tmp/stamp" "$out.stamp"
echo "Built it in ${SECONDS}s."
