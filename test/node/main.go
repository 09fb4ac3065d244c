// Command node runs a command with a whole Kubernetes of one node that is there
// for that command alone:
//
//	build/bin/node exec [-images a.tar,b.tar] [-audit-log FILE] -- COMMAND ARGS…
//
// etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubelet and
// containerd run in private namespaces: the machine gets no process that it can
// see from outside by its name, no interface, no mount, no rule of a firewall.
// All is gone a moment after the command ends, and also after kill -9 of this
// program. Its exit code is the command's. `make node` builds it, and what it
// runs: kubernetes, kubectl and node-components, which have to lie beside it.
//
// The command runs inside of these namespaces, with the files of the machine, in
// the working directory of this program, and with this in its environment:
//
//	KUBECONFIG        an administrator's
//	NODE_ADDRESS      an address of the node: what listens there (or on 0.0.0.0)
//	                  is reached by pods, and pods' addresses are reached from there
//	NODE_RUN_FOLDER   a folder with NAME.log and NAME.pid for each program NAME of
//	                  those above; the process ID is of this PID namespace
//	NODE_AUDIT_LOG    a file with all requests of service accounts but those of
//	                  kube-system: who asked for what, when, and who was refused
//	PATH              kubectl and this program come first
//
// Each of the programs is started again when it ends, kill -9 included. A killed
// containerd leaves the containers alone, as it should; to restart all that runs
// on the node, kill the processes containerd-shim-runc-v2 too, all of which are
// this node's. kube-controller-manager learns of new CRDs only after a while, so
// that owners' garbage may lie about for 40 seconds; kill it after applying them.
//
// Images are archives as `docker save` writes them, or OCI's. More can come later:
//
//	node load FILE.tar    # inside, thus by the command
//
// Pods have to say imagePullPolicy: Never (or IfNotPresent): there is no network
// but the node's. There is no DNS and no kube-proxy either: of all Services, only
// kubernetes.default can be reached, by its address, which pods find in their
// environment.
//
// Ctrl-C and SIGTERM are for the command, and kill it the second time. What it
// reads is what this program reads, but nothing from a terminal. In its mount
// namespace /run is empty at first, and folders that are new in /var/lib and
// /var/log disappear with the namespace: packages are to be installed before.
//
// It needs Debian 12 and root, since it installs containerd, runc and CNI plugins
// from its packages. Elsewhere the exit code is 3, which says that nothing was
// tried; with CI set in the environment, where nobody would notice, it is 1.
package main

import (
	"errors"
	"fmt"
	"os"
)

const (
	exitFailed  = 1
	exitUsage   = 2
	exitSkipped = 3
)

const usage = `usage: node exec [-images a.tar,b.tar] [-audit-log FILE] -- COMMAND ARGS…
           run a command with a Kubernetes of one node
       node load FILE.tar…
           load more images; for that command
`

// errSkipped says that this host cannot be used, so that nothing was tried.
var errSkipped = errors.New("skipped")

func main() {
	if len(os.Args) < 2 {
		os.Exit(explain())
	}
	exitCode, err := run(os.Args[1], os.Args[2:])
	switch {
	case errors.Is(err, errSkipped) && os.Getenv("CI") == "":
		exitCode = exitSkipped
	case err != nil:
		exitCode = max(exitCode, exitFailed)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "node:", err)
	}
	os.Exit(exitCode)
}

// explain says how this program is used, and returns the exit code for that.
func explain() int {
	fmt.Fprint(os.Stderr, usage)
	return exitUsage
}

// tell tells how things go, apart from what other programs may want to read.
func tell(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}
