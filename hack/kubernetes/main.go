// Command kubernetes is a small Kubernetes in one program: etcd,
// kube-apiserver, kube-controller-manager and kubectl, built from their own
// source code. Package multicall selects which of them runs.
//
// They are in one program because they share most of their code: the code is
// built and linked once, and the file is a third as large as four files.
package main

import (
	"os"
	_ "time/tzdata" // time zones of CronJobs, in case the system has none

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

	"github.com/samplecrd/network-controller/hack/kubernetes/multicall"
)

func main() {
	multicall.Main(map[string]func() int{
		"etcd":                    etcd,
		"kube-apiserver":          func() int { return cli.Run(apiserver.NewAPIServerCommand()) },
		"kube-controller-manager": func() int { return cli.Run(controllermanager.NewControllerManagerCommand()) },
		"kubectl":                 kubectl,
	})
}

func etcd() int {
	// etcd preallocates two segments of its log, by default 128 MB, which is a
	// lot for a cluster that lives for seconds.
	wal.SegmentSizeBytes = 4 << 20
	etcdmain.Main(os.Args) // exits by itself on an error
	return 0
}

func kubectl() int {
	// Constructing kubectl's commands already reads plugins and kuberc: the
	// verbosity must be set before the flags are parsed.
	_, _ = logs.GlogSetter(cmd.GetLogVerbosity(os.Args))
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err) // prints the error as kubectl does, and exits
		return 1
	}
	return 0
}
