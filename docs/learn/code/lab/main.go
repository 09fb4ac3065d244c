// Command lab runs what a controller needs, without a controller: a local Kubernetes
// and a Neutron in memory. Both outlive the controllers that a lesson starts, stops and
// kills. The lab prints each request that changes something in Neutron.
//
//	go run ./docs/learn/code/lab
//
// It also makes trouble, with curl -X POST http://127.0.0.1:9696/lab/hold and others:
//
//	hold                keep the next request that creates a network unanswered
//	release             execute the request that is kept
//	outage              answer all requests with 503
//	recovery            end the outage
//	restart-kubernetes  restart the API server, so that all watches break
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/test/controlplane"
)

func main() {
	log.SetFlags(log.Ltime)
	log.SetOutput(os.Stdout)
	address := flag.String("neutron-address", "127.0.0.1:9696", "loopback `address` of Neutron")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *address)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

// run runs Kubernetes and Neutron until the context ends.
func run(ctx context.Context, address string) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("starting Neutron: %w", err)
	}
	log.Print("Starting a local Kubernetes.")
	cluster, err := controlplane.Start(ctx, controlplane.Options{Apply: []string{"crd"}, ControllerManager: true})
	if err != nil {
		return err
	}
	link := filepath.Join(filepath.Dir(cluster.Dir()), "kubeconfig")
	_ = os.Remove(link) // of a run that was killed
	if err := os.Symlink(cluster.Kubeconfig(), link); err != nil {
		log.Print("The kubeconfig file has no short path: ", err)
		link = cluster.Kubeconfig()
	}
	l := &lab{cluster: cluster, neutron: embedded.New(embedded.Options{}), release: func() {}, recover: func() {}}
	server := &http.Server{Handler: l.routes(), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }() // ends with Close
	log.Printf("Ready: export KUBECONFIG=%s. Neutron is at http://%s. Ctrl-C ends both.", link, listener.Addr())

	<-ctx.Done()
	_ = server.Close()
	if link != cluster.Kubeconfig() {
		_ = os.Remove(link)
	}
	return cluster.Stop()
}
