// Command node runs a command with a Kubernetes of one node, which exists only for
// that command:
//
//	build/bin/node exec [-images a.tar,b.tar] -- COMMAND ARGS…
//
// etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubelet and
// containerd run in private namespaces. Outside of them, the machine gets no
// interface, no mount and no firewall rule. Everything is gone a moment after the
// command ends. After kill -9 of this program, the processes are; the next run removes
// the run folder and the cgroups. The exit code is that of the command. `make node` builds
// this program and what it runs: kubernetes, kubectl and node-components, which must be in
// the same folder.
//
// The command runs inside of these namespaces, with the files of the machine, in
// the working directory of this program, and with these environment variables:
//
//	KUBECONFIG        of an administrator
//	NODE_ADDRESS      an address of the node. Pods reach servers that listen there
//	                  or on 0.0.0.0, and the command reaches the addresses of pods
//	NODE_RUN_FOLDER   a folder with NAME.log and NAME.pid for each program NAME of
//	                  those above; the process ID is of this PID namespace
//	NODE_AUDIT_LOG    a file with the requests of service accounts outside of kube-system
//	PATH              kubectl comes first
//
// Each of the programs is started again when it ends, even after kill -9.
// kube-controller-manager discovers new CRDs only after a while: kill it after applying
// CRDs, or dependents of their objects stay for 40 seconds.
//
// Images are archives as `docker save` writes them, or OCI archives. Pods must not pull
// them: they have no network but that of the node, no DNS and no kube-proxy. The only
// Service is kubernetes.default, by its address, which is in their environment.
//
// The first Ctrl-C or SIGTERM is passed on to the command, the second kills it. Its /run is
// empty at first, and its new folders in /var/lib and /var/log disappear.
//
// It needs Debian 12 and root, because it installs containerd, runc and CNI plugins
// from Debian's packages. On other systems, nothing is changed and the exit code is 3.
package main

import (
	"fmt"
	"os"

	"github.com/samplecrd/network-controller/test/internal/require"
)

const usage = `usage: node exec [-images a.tar,b.tar] -- COMMAND ARGS…
           run a command with a Kubernetes of one node
`

func main() {
	if len(os.Args) < 2 {
		os.Exit(explain())
	}
	exitCode, err := run(os.Args[1], os.Args[2:])
	require.Exit("node", exitCode, err)
}

// explain prints how this program is used, and returns the exit code for that.
func explain() int {
	fmt.Fprint(os.Stderr, usage)
	return require.ExitUsage
}
