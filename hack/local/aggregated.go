package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/samplecrd/network-controller/test/controlplane"
	"github.com/samplecrd/network-controller/test/launch"
)

// aggregated has what the demo of the aggregated API uses: a cluster, a controller with an
// embedded Neutron, and the API server.
type aggregated struct {
	kubectl
	cluster  *launch.Cluster
	neutron  string // the address
	programs []*launch.Controller
}

// demoAggregated shows what Neutron has with kubectl: what a Network owns, what somebody has
// deleted there, an orphan, and what a tenant sees of it.
func demoAggregated(ctx context.Context, _ <-chan os.Signal, _ []string) (exitCode int, err error) {
	begun := time.Now()
	title("kubectl shows what Neutron really has")
	c, err := launch.StartCluster(ctx, controlplane.Options{
		Apply:             []string{"crd", "example/aggregated/deploy/rbac.yaml", "example/aggregated/local.yaml"},
		ControllerManager: true,
	})
	if err != nil {
		return 1, err
	}
	a := &aggregated{kubectl: of(c), cluster: c}
	defer func() { err = errors.Join(err, a.stop()) }()
	parts := []func(context.Context) error{a.startController, a.register, a.showOwner, a.showDrift, a.showTenant}
	for _, part := range parts {
		if err := part(ctx); err != nil {
			return 1, err
		}
	}
	title(fmt.Sprintf("All as expected in %.0f s. Next: docs/learn/19-an-api-without-storage.md",
		time.Since(begun).Seconds()))
	return 0, nil
}

// start starts a program in the background.
func (a *aggregated) start(name string, command ...string) (*launch.Controller, error) {
	program, err := launch.StartProgram(a.cluster.Dir(), name, command...)
	if err == nil {
		a.programs = append(a.programs, program)
	}
	return program, err
}

// stop stops what has been started, and removes the cluster.
func (a *aggregated) stop() (err error) {
	for _, program := range a.programs {
		err = errors.Join(err, program.Stop())
	}
	return errors.Join(err, a.cluster.Stop())
}

// startController starts the controller. Its next look at Neutron is in an hour, so that a
// difference stays.
func (a *aggregated) startController(ctx context.Context) (err error) {
	if a.neutron, err = launch.FreeAddress(ctx, "127.0.0.1:0"); err != nil {
		return err
	}
	fmt.Println("$ ./samplecrd-controller -resync-period=1h, with a Neutron in memory")
	controller, err := a.start("controller", "samplecrd-controller", "-kubeconfig="+a.cluster.Kubeconfig(),
		"-embedded-neutron-address="+a.neutron, "-resync-period=1h")
	if err != nil {
		return err
	}
	if err := controller.Eventually(ctx, controller.Leads); err != nil {
		return err
	}
	return a.show(ctx, "apply", "-f", "example/example-network.yaml")
}

// register starts the API server with the permissions of its account, and registers it.
func (a *aggregated) register(ctx context.Context) error {
	title("1. An API server registers itself for a group")
	address, err := launch.FreeAddress(ctx, "127.0.0.1:0")
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	kubeconfig, err := a.cluster.KubeconfigFor(ctx, "neutron-api", "neutron-api")
	if err != nil {
		return err
	}
	certificates := filepath.Join(a.cluster.Dir(), "neutron-api-certificate")
	fmt.Println("$ build/bin/neutron-api, with the permissions of example/aggregated/deploy/rbac.yaml")
	server, err := a.start("neutron-api", "build/bin/neutron-api", "--kubeconfig="+kubeconfig, "--cert-dir="+certificates,
		"--bind-address=127.0.0.1", "--secure-port="+port, "--embedded-neutron-address="+a.neutron, "--resync-period=1s")
	if err != nil {
		return err
	}
	var certificate []byte
	if err = server.Eventually(ctx, func(ctx context.Context) (err error) {
		if certificate, err = os.ReadFile(filepath.Join(certificates, "apiserver.crt")); err != nil {
			return err
		}
		var dialer net.Dialer
		connection, err := dialer.DialContext(ctx, "tcp", address)
		if err == nil {
			err = connection.Close()
		}
		return err
	}); err != nil {
		return err
	}
	return a.registerAt(ctx, port, certificate)
}

// registerAt registers with kube-apiserver where the API server is, and which certificate it has.
func (a *aggregated) registerAt(ctx context.Context, port string, certificate []byte) error {
	manifest, err := os.ReadFile("example/aggregated/deploy/apiservice.yaml")
	if err != nil {
		return err
	}
	replacer := strings.NewReplacer(
		"CA_BUNDLE", base64.StdEncoding.EncodeToString(certificate), "port: 6443", "port: "+port)
	file := filepath.Join(a.cluster.Dir(), "apiservice.yaml")
	if err := os.WriteFile(file, []byte(replacer.Replace(string(manifest))), 0o600); err != nil {
		return err
	}
	if err := a.show(ctx, "apply", "-f", file); err != nil {
		return err
	}
	return a.show(ctx, "wait", "--for=condition=Available", "--timeout=1m", "apiservice/v1alpha1.neutron.samplecrd.k8s.io")
}

// showOwner shows whose a network is, and begins to watch.
func (a *aggregated) showOwner(ctx context.Context) error {
	title("2. Whose is it? What Neutron has, and the Network that owns it")
	if err := a.showOnce(ctx, "Owned", "get", "neutronnetworks", "-n", "default", "-o", "wide"); err != nil {
		return err
	}
	fmt.Println("$ kubectl get nn -A --watch   (its output comes at the end)")
	_, err := a.start("watch", a.cluster.KubectlPath(),
		"--kubeconfig="+a.cluster.Kubeconfig(), "get", "nn", "-A", "--watch")
	return err
}

// showDrift deletes a subnet, and creates a network whose Network does not exist.
func (a *aggregated) showDrift(ctx context.Context) error {
	title("3. Somebody deletes the subnet in Neutron: the Network is Ready, and Neutron is not")
	url := "http://" + a.neutron + "/v2.0/"
	var found struct{ Subnets []struct{ ID string } }
	if err := send(ctx, http.MethodGet, url+"subnets", &found); err != nil {
		return err
	}
	if len(found.Subnets) != 1 {
		return fmt.Errorf("neutron has %d subnets, expected 1", len(found.Subnets))
	}
	fmt.Println("$ openstack subnet delete", found.Subnets[0].ID)
	if err := send(ctx, http.MethodDelete, url+"subnets/"+found.Subnets[0].ID, nil); err != nil {
		return err
	}
	if err := a.show(ctx, "get", "networks"); err != nil {
		return err
	}
	if err := a.showOnce(ctx, "create subnet", "get", "nn", "-n", "default"); err != nil {
		return err
	}
	title("4. A network whose Network does not exist is an orphan, in the namespace of its owner")
	cluster, err := a.kubectl(ctx, "get", "namespace", "kube-system", "-o", "jsonpath={.metadata.uid}")
	if err != nil {
		return err
	}
	marker := "samplecrd.k8s.io owner: " + cluster + "/team-b/gone"
	fmt.Printf("$ openstack network create left --description '%s'\n", marker)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"networks",
		strings.NewReader(`{"network": {"name": "left", "description": "`+marker+`"}}`))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	return a.showOnce(ctx, "Orphaned", "get", "nn", "-A", "--field-selector=status.state=Orphaned")
}

// showTenant shows what somebody with the role view in a namespace sees, and what the watch
// has printed.
func (a *aggregated) showTenant(ctx context.Context) error {
	title("5. Kubernetes decides who may see what: alice has the role view in one namespace")
	binding := []string{"create", "rolebinding", "alice", "--clusterrole=view", "--user=alice", "-n", "default"}
	if err := a.show(ctx, binding...); err != nil {
		return err
	}
	if err := a.showOnce(ctx, "Owned", "get", "nn", "-n", "default", "--as=alice"); err != nil {
		return err
	}
	for _, args := range [][]string{{"get", "nn", "-n", "team-b", "--as=alice"},
		{"delete", "nn", "--all", "-n", "team-b"}} {
		fmt.Printf("$ %s\n", commandLine(args))
		_, err := a.kubectl(ctx, args...)
		if err == nil || !strings.Contains(err.Error(), "Forbidden") && !strings.Contains(err.Error(), "MethodNotAllowed") {
			return fmt.Errorf("%s is not rejected: %w", commandLine(args), err)
		}
		_, reason, _ := strings.Cut(err.Error(), "exit status 1: ")
		printIndented(reason)
	}
	title("6. What the watch has received meanwhile")
	watch := a.programs[len(a.programs)-1]
	return watch.Eventually(ctx, func(context.Context) error {
		text, err := os.ReadFile(filepath.Join(a.cluster.Dir(), "watch.log"))
		if err == nil && !strings.Contains(string(text), "Orphaned") {
			err = fmt.Errorf("the watch prints:\n%s", text)
		}
		if err == nil {
			printIndented(string(text))
		}
		return err
	})
}

// showOnce shows the output of a command once it has a text.
func (a *aggregated) showOnce(ctx context.Context, text string, args ...string) error {
	fmt.Printf("$ %s\n", commandLine(args))
	return a.programs[len(a.programs)-1].Eventually(ctx, func(ctx context.Context) error {
		output, err := a.kubectl(ctx, args...)
		if err == nil && !strings.Contains(output, text) {
			err = fmt.Errorf("the output has no %s:\n%s", text, output)
		}
		if err == nil {
			printIndented(output)
		}
		return err
	})
}
