// Command node runs a command with a Kubernetes of one node, which exists only for
// that command:
//
//	build/bin/node exec [-images a.tar,b.tar] -- COMMAND ARGS…
//
// etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubelet and
// containerd run in private namespaces. Outside of them, the machine gets no
// interface, no mount and no firewall rule. Everything is gone a moment after the
// command ends, and also after kill -9 of this program. Its exit code is that of
// the command. `make node` builds this program and what it runs: kubernetes,
// kubectl and node-components, which must be in the same folder.
//
// The command runs inside of these namespaces, with the files of the machine, in
// the working directory of this program, and with these environment variables:
//
//	KUBECONFIG        of an administrator
//	NODE_ADDRESS      an address of the node. Pods reach servers that listen there
//	                  or on 0.0.0.0, and the command reaches the addresses of pods
//	NODE_RUN_FOLDER   a folder with NAME.log and NAME.pid for each program NAME of
//	                  those above; the process ID is of this PID namespace
//	NODE_AUDIT_LOG    a file with all requests of service accounts, except those of
//	                  kube-system, and the decision of the authorizer
//	PATH              kubectl comes first
//
// Each of the programs is started again when it ends, even after kill -9. The
// containers survive when containerd is killed. To restart everything on the node,
// kill the processes containerd-shim-runc-v2, too; all of them belong to this node.
// kube-controller-manager discovers new CRDs only after a while, so that dependents
// of their objects may stay for 40 seconds; kill it after applying CRDs.
//
// Images are archives as `docker save` writes them, or OCI archives.
//
// Pods must set imagePullPolicy: Never (or IfNotPresent): the namespaces have no
// other network than that of the node. There is no DNS and no kube-proxy either.
// The only Service that can be reached is kubernetes.default, by its address, which
// pods have in their environment.
//
// The first Ctrl-C or SIGTERM is passed on to the command, the second kills it. The
// command reads the standard input of this program, except from a terminal. In its
// mount namespace, /run is empty at first, and new folders in /var/lib and /var/log
// disappear with the namespace: install packages before.
//
// It needs Debian 12 and root, because it installs containerd, runc and CNI plugins
// from Debian's packages. On other systems the exit code is 3 and nothing was
// changed. If TEST_REQUIRE_ALL=yes is set, the exit code is 1.
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
