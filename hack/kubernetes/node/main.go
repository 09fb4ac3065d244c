// Command node-components is what a node of a small Kubernetes takes besides the
// control plane and a container runtime: kubelet and kube-scheduler in one
// program. The first argument chooses which of them it is.
//
// It is a program of its own, beside the one in the folder above, because most
// of what is done here needs no node.
package main

import (
	"context"
	"fmt"
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of the clients
	_ "k8s.io/component-base/metrics/prometheus/version"  // metric kubernetes_build_info
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

var programs = map[string]func() (exitCode int){
	"kubelet":        func() int { return cli.Run(kubelet.NewKubeletCommand(context.Background())) },
	"kube-scheduler": func() int { return cli.Run(scheduler.NewSchedulerCommand()) },
}

func main() {
	if len(os.Args) > 1 {
		if run, ok := programs[os.Args[1]]; ok {
			os.Args = os.Args[1:]
			os.Exit(run())
		}
	}
	fmt.Fprintln(os.Stderr, "usage: node-components kubelet|kube-scheduler [arguments]")
	os.Exit(2)
}
