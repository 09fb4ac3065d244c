#!/usr/bin/env bash
# Fails if the controller calls code with a known vulnerability. It reads the Go
# vulnerability database, or the copy in GOVULNDB (file:///folder).
#
# It also fails if there is no database, unless VULNCHECK_ALLOW_NO_DATABASE=yes,
# which is for machines that cannot reach it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."

no_database() {
	echo "VULNCHECK: NOTHING WAS CHECKED: $1" >&2
	if [[ ${VULNCHECK_ALLOW_NO_DATABASE:-} == yes ]]; then
		echo "VULNCHECK: NOT A FAILURE, SINCE VULNCHECK_ALLOW_NO_DATABASE=yes" >&2
		exit 0
	fi
	exit 1
}

# govulncheck finds no vulnerabilities in a folder that has none.
if [[ ${GOVULNDB:-} == file://* && ! -s ${GOVULNDB#file://}/index/modules.json ]]; then
	no_database "THERE IS NO DATABASE IN $GOVULNDB"
fi

hack/tools/build.sh golang.org/x/vuln/cmd/govulncheck
log=$(mktemp build/vulncheck-XXXXXX)
trap 'rm -f "$log"' EXIT
code=0
build/bin/govulncheck ${GOVULNDB:+-db "$GOVULNDB"} . 2>&1 | tee "$log" || code=${PIPESTATUS[0]}
if ((code == 1)) && grep -q '^govulncheck: fetching vulnerabilities: ' "$log"; then
	no_database "THE VULNERABILITY DATABASE CANNOT BE REACHED"
fi
exit "$code"
