package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// acts are the parts of the demo: a kubectl command, the reason of the event that reports
// its outcome, and the subnet that Neutron then has, if it has one.
var acts = []struct {
	title   string
	command []string
	reason  string
	subnet  string
}{
	{
		"1. Create",
		[]string{"apply", "-f", "example/example-network.yaml"},
		"NetworkCreated", "192.168.0.0/16, gateway 192.168.0.1",
	},
	{
		"2. Edit: the same range, written differently, and another gateway",
		[]string{
			"patch", "network", example, "--type=merge", "--patch",
			`{"spec":{"cidr":"192.168.1.0/16","gateway":"192.168.1.1"}}`,
		},
		"SubnetUpdated", "192.168.0.0/16, gateway 192.168.1.1",
	},
	{"3. Delete", []string{"delete", "network", example, "--timeout", "1m"}, "NetworkDeleted", ""},
}

// demoNetwork creates, edits and deletes a Network. After each act, it shows the state in
// Kubernetes and in Neutron, and checks it.
func demoNetwork(s *stage) {
	s.show("apply", "-f", "crd/")
	address := s.freeAddress("127.0.0.1:0")
	s.neutron = "http://" + address
	s.say("$ ./samplecrd-controller -kubeconfig build/run/kubeconfig -embedded-neutron-address %s", address)
	s.say("  with an embedded Neutron in memory: %s", s.neutron)
	s.startController("-embedded-neutron-address=" + address)
	network := ""
	for _, act := range acts {
		s.title(act.title)
		s.show(act.command...)
		if act.subnet != "" {
			s.show("wait", "--for=condition=Ready", "network/"+example, "--timeout", "1m")
		}
		s.show("get", "networks")
		if act.subnet != "" {
			const text = `jsonpath={range .status.conditions[*]}{.type}={.status}  {.reason}: {.message}{"\n"}{end}`
			s.say("Conditions")
			s.output(s.kubectl("get", "network", example, "-o", text))
		}
		s.say("Events")
		s.output(s.once(act.reason, "get", "events.events.k8s.io",
			"--field-selector", "regarding.name="+example+",reason="+act.reason,
			"-o", `jsonpath={range .items[*]}{.type}  {.reason}: {.note}{"\n"}{end}`))
		network = s.showNeutron(network, act.subnet)
	}
}

// showNeutron shows the state of Neutron, and checks that it is one network with this
// subnet, or nothing. The network is the one before, if there was one.
func (s *stage) showNeutron(before, subnet string) (network string) {
	var all struct {
		Networks, Subnets []struct {
			ID, Name, CIDR string
			Gateway        string `json:"gateway_ip"`
		}
	}
	s.send(http.MethodGet, s.neutron+"/v2.0/networks", "", &all)
	s.send(http.MethodGet, s.neutron+"/v2.0/subnets", "", &all)
	s.say("Neutron has (curl %s/v2.0/networks)", s.neutron)
	var found, want []string
	for _, n := range all.Networks {
		network = fmt.Sprintf("network %s  %s", n.ID, n.Name)
		found = append(found, network)
	}
	for _, n := range all.Subnets {
		found = append(found, fmt.Sprintf("subnet  %s  %s, gateway %s", n.ID, n.CIDR, n.Gateway))
		want = []string{cmp.Or(before, network), "subnet  " + n.ID + "  " + subnet}
	}
	s.output(cmp.Or(strings.Join(found, "\n"), "nothing"))
	if s.err == nil && (!slices.Equal(found, want) || (subnet == "") != (found == nil)) {
		s.err = errors.New("the state of Neutron is not as requested")
	}
	s.say("✔ as requested")
	return network
}
