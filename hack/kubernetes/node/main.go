// Command node-components is kubelet and kube-scheduler in one program: what a
// node needs in addition to the control plane and a container runtime. Package
// multicall selects which of them runs.
//
// It is separate from the program in the folder above, because most commands of
// this repository need no node.
package main

import (
	"context"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of the clients
	_ "k8s.io/component-base/metrics/prometheus/version"  // metric kubernetes_build_info
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"

	"github.com/samplecrd/network-controller/hack/kubernetes/multicall"
)

func main() {
	multicall.Main(map[string]func() int{
		"kubelet":        func() int { return cli.Run(kubelet.NewKubeletCommand(context.Background())) },
		"kube-scheduler": func() int { return cli.Run(scheduler.NewSchedulerCommand()) },
	})
}
