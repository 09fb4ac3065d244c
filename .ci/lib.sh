# What .ci/run and .ci/nightly share: settings, packages, and steps with their
# durations. A script sources this file in its first lines.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# With TEST_REQUIRE_ALL, a test that cannot run here fails: nothing is skipped.
# The flags of Go are those of the Makefile, for one build cache.
export CI=true TEST_REQUIRE_ALL=yes CGO_ENABLED=0
GOFLAGS="$(go env GOFLAGS) -trimpath"
export GOFLAGS

finished=() current='' begun=0

# step NAME COMMAND… runs a step.
step() {
	current=$1 begun=$SECONDS
	shift
	printf '\n=== %s: %s\n' "$current" "$*"
	"$@"
	finished+=("$(printf '%5ds  %s' $((SECONDS - begun)) "$current")")
	current=
}

# summary prints the duration of each step, and the result.
summary() {
	local code=$?
	stop_background
	printf '\n=== duration of the steps\n'
	((${#finished[@]} == 0)) || printf '%s\n' "${finished[@]}"
	if ((code == 0)); then
		printf '%5ds  %s passed\n' "$SECONDS" "$0"
		return
	fi
	printf '%5ds  %s\n' $((SECONDS - begun)) "${current:-setup}: failed with exit code $code"
	printf '%5ds  %s failed\n' "$SECONDS" "$0"
}
trap summary EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# background COMMAND… runs a command beside the steps, with less priority.
background() {
	mkdir -p build
	set -m # the command gets its own process group
	nice "$@" >build/ci-background.log 2>&1 &
	background=$!
	set +m
}

# wait_for_background prints the output of the command, and fails if it failed.
wait_for_background() {
	local code=0
	wait "$background" || code=$?
	background=
	cat build/ci-background.log
	return "$code"
}

background=
stop_background() {
	[[ -n $background ]] || return 0
	kill -TERM -- "-$background" 2>/dev/null || true
	wait "$background" || true
}

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
