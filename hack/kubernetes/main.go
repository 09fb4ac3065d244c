// Command kubernetes is a small Kubernetes in one program: etcd,
// kube-apiserver, kube-controller-manager and kubectl, built from their own
// source code. The first argument chooses which of them it is, or its own
// name: a symbolic link kubectl that points to it is a kubectl.
//
// They are in one program because they share most of their code: it is built
// and linked once, and is a third as large as the four of them.
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	_ "time/tzdata" // time zones of CronJobs, also where the system has none

	"go.etcd.io/etcd/server/v3/etcdmain"
	"go.etcd.io/etcd/server/v3/storage/wal"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // kubectl's ways to log in
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of the clients
	_ "k8s.io/component-base/metrics/prometheus/version"  // metric kubernetes_build_info
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

// exitWhenStdinCloses is the environment variable that ties a daemon to the
// process that started it. When it is set (and not empty), the daemon ends as
// soon as its standard input does. Whoever starts it keeps the other end of
// the pipe open and has nothing else to do: the kernel closes it, however that
// process ends, kill -9 included. This works on every Unix.
const exitWhenStdinCloses = "EXIT_WHEN_STDIN_CLOSES"

// program is one of the programs that this one can be.
type program struct {
	daemon bool // stays until it is stopped, and reads nothing from its standard input
	run    func() (exitCode int)
}

var programs = map[string]program{
	"etcd":                    {daemon: true, run: etcd},
	"kube-apiserver":          {daemon: true, run: func() int { return cli.Run(apiserver.NewAPIServerCommand()) }},
	"kube-controller-manager": {daemon: true, run: func() int { return cli.Run(controllermanager.NewControllerManagerCommand()) }},
	"kubectl":                 {run: kubectl},
}

const usage = `usage: kubernetes etcd|kube-apiserver|kube-controller-manager|kubectl [arguments]

A symbolic link to this program that has one of these names is that program.
For daemons, ` + exitWhenStdinCloses + `=1 means: exit when the standard input closes.
`

func main() {
	name, args := choose(os.Args)
	chosen, ok := programs[name]
	if !ok {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	os.Args = args
	if chosen.daemon && os.Getenv(exitWhenStdinCloses) != "" {
		go exitAfterStdin(name)
	}
	os.Exit(chosen.run())
}

// choose returns the name of the program that the command line asks for, and
// the command line as that program expects it.
func choose(args []string) (name string, programArgs []string) {
	if len(args) == 0 {
		return "", nil
	}
	name = strings.TrimSuffix(filepath.Base(args[0]), ".exe")
	if _, ok := programs[name]; ok {
		return name, args
	}
	if len(args) == 1 {
		return "", nil
	}
	return args[1], args[1:]
}

// exitAfterStdin ends the process when nothing more can come from its standard
// input. It ends it at once: nobody is left who could wait for it.
func exitAfterStdin(name string) {
	_, _ = io.Copy(io.Discard, os.Stdin)
	fmt.Fprintf(os.Stderr, "%s: standard input was closed, exiting\n", name)
	os.Exit(1)
}

func etcd() int {
	// etcd reserves two segments of its log at once, 128 MB by default, which
	// is much for a cluster of a few seconds.
	wal.SegmentSizeBytes = 4 << 20
	etcdmain.Main(os.Args) // exits by itself when something is wrong
	return 0
}

func kubectl() int {
	// While kubectl's commands are put together, plugins and kuberc are read
	// already: the verbosity must be known before the flags are parsed.
	_, _ = logs.GlogSetter(cmd.GetLogVerbosity(os.Args))
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err) // prints it as kubectl does, and exits
		return 1
	}
	return 0
}
