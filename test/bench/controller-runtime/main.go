// Command controller-runtime is this controller written with controller-runtime, the
// library behind Kubebuilder and Operator SDK. It decides with pkg/plan and speaks
// to Neutron with pkg/neutron, as the product does, so that only the framework
// differs. reconciler.go is the loop, as a user of the library writes it; steps.go has
// the requests. The benchmark measures this program, and a lesson explains it.
//
// It covers less than the product: networks with a CIDR and a gateway. Each sync
// reads the state of one network from Neutron.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/pkg/neutron/openstack"
)

func main() {
	// controller-runtime defines -kubeconfig.
	endpoint := flag.String("neutron-endpoint", "", "`URL` of a Neutron without authentication; defaults to an embedded "+
		"Neutron")
	address := flag.String("embedded-neutron-address", "", "loopback `address` of the embedded Neutron; defaults to a "+
		"free port")
	workers := flag.Int("workers", 5, "number of Networks that are reconciled concurrently")
	resync := flag.Duration("resync-period", 30*time.Second, "time until a change in Neutron is noticed")
	flag.Parse()
	ctrl.SetLogger(klog.Background())
	err := samplecrdv1.Install(scheme.Scheme)
	if err == nil && *endpoint == "" {
		server := embedded.New(embedded.Options{})
		err = server.Listen(*address)
		*endpoint = server.URL()
	}
	if err == nil {
		err = run(*endpoint, *workers, *resync)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "controller-runtime:", err)
		os.Exit(1)
	}
}

func run(endpoint string, workers int, resync time.Duration) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme.Scheme, Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	neutronClient, err := openstack.New(endpoint, openstack.Options{})
	if err != nil {
		return err
	}
	r := &Reconciler{Client: manager.GetClient(), Neutron: neutronClient,
		Events: manager.GetEventRecorder("network-controller"), Resync: resync}
	if err := r.SetupWithManager(manager, workers); err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}
