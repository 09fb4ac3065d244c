#!/usr/bin/env bash
# Runs gremlins on packages: it changes their code in one place at a time (a
# mutant) and runs their own tests. The tests must fail for at least 95 of 100
# mutants. A report of each package goes to build/mutation.
#
#   hack/mutation/run.sh pkg/plan …
#
# GREMLINS_FLAGS are more flags for gremlins, such as '-E ^subnet' to leave a
# file out.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
REAL_GO=$(type -P go)
"$root/hack/tools/build.sh" github.com/go-gremlins/gremlins/cmd/gremlins

# gremlins copies the whole module for each worker, so it gets only the code.
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -R "$root"/{go.mod,go.sum,pkg} "$copy"
mkdir -p "$root/build/mutation"
cd "$copy"

# Here, `go` is hack/mutation/bin/go. The test runs must not come from Go's cache:
# gremlins derives its time limit from the first one.
export REAL_GO PATH=$root/hack/mutation/bin:$PATH GOFLAGS='-count=1 -vet=off -ldflags=-s'
for package in "$@"; do
	# shellcheck disable=SC2086 # several flags
	"$root/build/bin/gremlins" unleash "./$package" --invert-logical --timeout-coefficient 10 \
		--output "$root/build/mutation/$(basename "$package").json" ${GREMLINS_FLAGS:-}
done

# gremlins 0.6 ignores its flags for thresholds.
failed=
for package in "$@"; do
	report=$root/build/mutation/$(basename "$package").json
	value() { sed -nE "s/.*\"$1\":([0-9.]+).*/\1/p" "$report"; }
	if ! awk -v killed="$(value test_efficacy)" -v covered="$(value mutations_coverage)" 'BEGIN { exit !(killed >= 95 && covered == 100) }'; then
		echo "$package: the tests fail for $(value test_efficacy) % of the mutants, and run $(value mutations_coverage) % of them: at least 95 and 100 are required" >&2
		failed=yes
	fi
done
[[ -z $failed ]]
