# What the demos share. They run on a local Kubernetes, which KUBECONFIG names:
#
#	build/bin/local exec hack/demo/network.sh
#
# A command that fails ends the demo, and with it the programs that it has started.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
run=$(dirname "$(realpath "$KUBECONFIG")") # for files: it disappears with the Kubernetes

programs=()
end() {
	local code=$? pid
	for pid in "${programs[@]}"; do
		kill "$pid" 2>/dev/null && wait "$pid" || true
	done
	((code == 0 || code == 130)) || for log in "$run"/{controller,namespaceplus,neutron-api}.log; do
		[[ ! -e $log ]] || tail -n 20 "$log" >&2
	done
	exit "$code"
}
trap end EXIT
trap 'exit 130' INT TERM

# title prints a line in bold, after an empty one.
title() {
	if [[ -t 1 && -z ${NO_COLOR:-} ]]; then
		printf '\n\e[1m%s\e[0m\n' "$1"
	else
		printf '\n%s\n' "$1"
	fi
}

# say prints a command that the demo does not run as it is.
say() { printf '$ %s\n' "$*"; }

# show prints a command, and runs it.
show() {
	local word line=''
	for word; do
		[[ $word != *[{}\"\ ]* ]] || word="'$word'"
		line+=" $word"
	done
	say "${line# }"
	"$@" 2>&1 | sed 's/^/  /'
}

# once TEXT COMMAND… waits until a command prints a text, for a minute, and shows what it prints.
once() {
	local text=$1 output='' i
	shift
	for ((i = 0; i < 300; i++)); do
		output=$("$@" 2>&1) || true
		if [[ $output == *"$text"* ]]; then
			sed 's/^/  /' <<<"$output"
			return
		fi
		sleep 0.2
	done
	printf '%s does not print %s, but:\n%s\n' "$*" "$text" "$output" >&2
	return 1
}

# start NAME COMMAND… starts a program in the background, with a log.
start() {
	local name=$1
	shift
	"$@" >"$run/$name.log" 2>&1 &
	programs+=("$!")
}

# free_port prints a port of 127.0.0.1 at which nothing listens.
free_port() {
	local port
	while port=$((20000 + RANDOM % 12000)); (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do :; done
	echo "$port"
}

# start_controller FLAGS… starts the controller with a Neutron in memory, and waits until it
# reconciles.
start_controller() {
	neutron=127.0.0.1:$(free_port)
	start controller ./samplecrd-controller -embedded-neutron-address="$neutron" "$@"
	once '"Starting workers"' cat "$run/controller.log" >/dev/null
}

# neutron METHOD PATH sends a request to Neutron, as another client: get, delete or create.
neutron() { kubectl --kubeconfig=/dev/null --server="http://$neutron" "$1" --raw "/v2.0/$2" "${@:3}"; }

# objects KIND FIELD… prints these fields, in the order of their names, of each object.
objects() {
	local query
	query=$(printf '&fields=%s' "${@:2}")
	neutron get "$1?${query#&}" | { grep -o '{[^][{}]*}' || true; } | sed -E 's/"[a-z_]+":|[{}"]//g; s/,/ /g'
}

# account_config NAMESPACE NAME prints the path of a kubeconfig file with the permissions of a
# ServiceAccount, and no others.
account_config() {
	local file=$run/$2.kubeconfig
	kubectl config view --raw --flatten --minify >"$file"
	kubectl config --kubeconfig="$file" set-credentials "$2" \
		--token="$(kubectl create token --namespace="$1" "$2")" >/dev/null
	kubectl config --kubeconfig="$file" set-context --current --user="$2" >/dev/null
	echo "$file"
}
