# What .ci/run and .ci/nightly share: settings, packages, and steps with their
# durations. A script sources this file in its first lines. Its arguments are the
# names of the steps to run; without any, all run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# With TEST_REQUIRE_ALL, a test that cannot run here fails: nothing is skipped.
# The flags of Go are those of the Makefile, for one build cache.
export CI=true TEST_REQUIRE_ALL=yes CGO_ENABLED=0
GOFLAGS="$(go env GOFLAGS) -trimpath"
export GOFLAGS

mkdir -p build/ci
: >build/ci/steps # a line for each that has ended
names=("$@") current='' begun=0 lane='' lane_log=''

# step NAME COMMAND… runs a step, if it is one of those to run.
step() {
	local name
	for name in "${names[@]}"; do
		[[ $name != "$1" ]] || break
	done
	[[ ${name-$1} == "$1" ]] || return 0
	current=$1 begun=$SECONDS
	shift
	printf '\n=== %s: %s\n' "$current" "$*"
	"$@"
	printf '%5ds  %s\n' $((SECONDS - begun)) "$current" >>build/ci/steps
	current=
}

# beside NAME COMMAND… runs a command or a function with steps beside the steps that
# follow.
beside() {
	lane_log=build/ci/beside-${1// /-}.log
	shift
	set -m # it gets its own process group
	(
		trap failed EXIT
		"$@"
	) >"$lane_log" 2>&1 &
	lane=$!
	set +m
}

# join waits for what runs beside, prints its output, and fails if it failed.
join() {
	local code=0
	wait "$lane" || code=$?
	lane=
	cat "$lane_log"
	return "$code"
}

# failed notes the step that has not ended.
failed() {
	local code=$?
	((code == 0)) || [[ -z $current ]] ||
		printf '%5ds  %s: failed with exit code %d\n' $((SECONDS - begun)) "$current" "$code" >>build/ci/steps
}

# summary prints the duration of each step, and the result.
summary() {
	local code=$?
	(exit "$code") || failed
	if [[ -n $lane ]]; then
		kill -TERM -- "-$lane" 2>/dev/null || true
		wait "$lane" || true
	fi
	printf '\n=== duration of the steps\n'
	cat build/ci/steps
	local name
	for name in "${names[@]}"; do
		((code == 0)) || break
		grep -qE "^ *[0-9]+s  $name(:|\$)" build/ci/steps || { echo "there is no step $name"; code=2; }
	done
	if ((code == 0)); then
		printf '%5ds  %s passed\n' "$SECONDS" "$0"
	else
		printf '%5ds  %s failed with exit code %d\n' "$SECONDS" "$0" "$code"
	fi
	exit "$code"
}
trap summary EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# packages COMMAND=PACKAGES… installs the Debian packages of missing commands.
packages() {
	local pair names missing=()
	for pair; do
		command -v "${pair%%=*}" >/dev/null && continue
		read -ra names <<<"${pair#*=}"
		missing+=("${names[@]}")
	done
	((${#missing[@]})) || return 0
	apt-get update -qq
	# With RUNLEVEL=1, Debian starts no service that it installs.
	RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
}
