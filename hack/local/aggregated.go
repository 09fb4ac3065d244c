package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// demoAggregated shows what Neutron has with kubectl: what a Network owns, what somebody has
// deleted there, an orphan, and what a tenant sees of it.
func demoAggregated(s *stage) {
	neutron := s.freeAddress("127.0.0.1:0")
	s.neutron = "http://" + neutron
	s.say("$ ./samplecrd-controller -resync-period=1h, with a Neutron in memory")
	// Its next look at Neutron is in an hour, so that a difference stays.
	s.startController("-embedded-neutron-address="+neutron, "-resync-period=1h")
	s.show("apply", "-f", "example/example-network.yaml")

	s.title("1. An API server registers itself for a group")
	s.registerAPIServer(neutron)

	s.title("2. Whose is it? What Neutron has, and the Network that owns it")
	s.showOnce("Owned", "get", "neutronnetworks", "-n", "default", "-o", "wide")
	s.say("$ kubectl get nn -A --watch   (its output comes at the end)")
	s.start("watch", s.cluster.KubectlPath(), "--kubeconfig="+s.cluster.Kubeconfig(), "get", "nn", "-A", "--watch")

	s.title("3. Somebody deletes the subnet in Neutron: the Network is Ready, and Neutron is not")
	s.deleteSubnet()
	s.show("get", "networks")
	s.showOnce("create subnet", "get", "nn", "-n", "default")

	s.title("4. A network whose Network does not exist is an orphan, in the namespace of its owner")
	marker := "samplecrd.k8s.io owner: " +
		s.kubectl("get", "namespace", "kube-system", "-o", "jsonpath={.metadata.uid}") + "/team-b/gone"
	s.say("$ openstack network create left --description '%s'", marker)
	s.send(http.MethodPost, s.neutron+"/v2.0/networks", `{"network": {"name": "left", "description": "`+marker+`"}}`, nil)
	s.showOnce("Orphaned", "get", "nn", "-A", "--field-selector=status.state=Orphaned")

	s.title("5. Kubernetes decides who may see what: alice has the role view in one namespace")
	s.show("create", "rolebinding", "alice", "--clusterrole=view", "--user=alice", "-n", "default")
	s.showOnce("Owned", "get", "nn", "-n", "default", "--as=alice")
	s.showRejected("Forbidden", "get", "nn", "-n", "team-b", "--as=alice")
	s.showRejected("MethodNotAllowed", "delete", "nn", "--all", "-n", "team-b")

	s.title("6. What the watch has received meanwhile")
	s.eventually(func(context.Context) error {
		text, err := os.ReadFile(filepath.Join(s.cluster.Dir(), "watch.log"))
		if err == nil && !strings.Contains(string(text), "Orphaned") {
			err = fmt.Errorf("the watch prints:\n%s", text)
		}
		if err == nil {
			s.output(string(text))
		}
		return err
	})
}

// kubeconfigFor returns a kubeconfig with the permissions of a service account.
func (s *stage) kubeconfigFor(namespace, account string) (path string) {
	if s.err == nil {
		path, s.err = s.cluster.KubeconfigFor(s.ctx, namespace, account)
	}
	return path
}

// registerAPIServer starts the API server with the permissions of its account, and registers
// with kube-apiserver where it is, and which certificate it has.
func (s *stage) registerAPIServer(neutron string) {
	const manifest = "example/aggregated/deploy/apiservice.yaml"
	address := s.freeAddress("127.0.0.1:0")
	_, port, _ := net.SplitHostPort(address)
	certificates := filepath.Join(s.cluster.Dir(), "neutron-api-certificate")
	s.say("$ build/bin/neutron-api, with the permissions of example/aggregated/deploy/rbac.yaml")
	s.start("neutron-api", "build/bin/neutron-api", "--kubeconfig="+s.kubeconfigFor("neutron-api", "neutron-api"),
		"--cert-dir="+certificates, "--bind-address=127.0.0.1", "--secure-port="+port,
		"--embedded-neutron-address="+neutron, "--resync-period=1s")
	file := filepath.Join(s.cluster.Dir(), "apiservice.yaml")
	s.eventually(func(ctx context.Context) error {
		certificate, err := os.ReadFile(filepath.Join(certificates, "apiserver.crt"))
		if err != nil {
			return err
		}
		connection, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(manifest)
		registration := strings.NewReplacer(
			"CA_BUNDLE", base64.StdEncoding.EncodeToString(certificate), "port: 6443", "port: "+port).Replace(string(text))
		return errors.Join(err, connection.Close(), os.WriteFile(file, []byte(registration), 0o600))
	})
	s.show("apply", "-f", file)
	s.show("wait", "--for=condition=Available", "--timeout=1m", "apiservice/v1alpha1.neutron.samplecrd.k8s.io")
}

// deleteSubnet deletes the subnet in Neutron, as another client of OpenStack does.
func (s *stage) deleteSubnet() {
	var found struct{ Subnets []struct{ ID string } }
	s.send(http.MethodGet, s.neutron+"/v2.0/subnets", "", &found)
	if s.err == nil && len(found.Subnets) != 1 {
		s.err = fmt.Errorf("neutron has %d subnets, expected 1", len(found.Subnets))
	}
	for _, subnet := range found.Subnets {
		s.say("$ openstack subnet delete %s", subnet.ID)
		s.send(http.MethodDelete, s.neutron+"/v2.0/subnets/"+subnet.ID, "", nil)
	}
}

// showRejected shows a command that is rejected for a reason.
func (s *stage) showRejected(reason string, args ...string) {
	if s.err != nil {
		return
	}
	s.say("$ %s", commandLine(args))
	_, err := s.try(s.ctx, args...)
	if err == nil || !strings.Contains(err.Error(), reason) {
		s.err = fmt.Errorf("%s is not rejected: %w", commandLine(args), err)
		return
	}
	_, message, _ := strings.Cut(err.Error(), "exit status 1: ")
	s.output(message)
}
