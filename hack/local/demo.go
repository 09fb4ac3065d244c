package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/samplecrd/network-controller/test/controlplane"
	"github.com/samplecrd/network-controller/test/launch"
)

const example = "example-network"

// act is a part of the demo: a kubectl command, the reason of the event that reports
// its outcome, and the subnet that Neutron then has, if it has one.
type act struct {
	title   string
	command []string
	reason  string
	subnet  string
}

var acts = []act{
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

// stage has what the acts use: a cluster, a controller, and the Neutron embedded in it.
type stage struct {
	kubectl
	controller *launch.Controller
	neutron    string // its URL
	network    string // the line of the first act's network in Neutron
}

// demo creates, edits and deletes a Network on a real API server. After each act, it
// shows the state in Kubernetes and in Neutron, and checks it.
func demo(ctx context.Context, _ <-chan os.Signal, _ []string) (exitCode int, err error) {
	begun := time.Now()
	title("A Network becomes a real network")
	fmt.Print("\nStarting a Kubernetes API server on loopback … ")
	c, err := launch.StartCluster(ctx, controlplane.Options{})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	fmt.Printf("ready after %.1f s\n", time.Since(begun).Seconds())
	s := &stage{kubectl: of(c)}
	if err := s.show(ctx, "apply", "-f", "crd/"); err != nil {
		return 1, err
	}
	if err := s.startController(ctx, c); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, s.controller.Stop()) }()
	if err := s.controller.Eventually(ctx, s.controller.Leads); err != nil {
		return 1, err
	}
	for _, a := range acts {
		if err := s.play(ctx, a); err != nil {
			return 1, err
		}
	}
	title(fmt.Sprintf("All as expected in %.0f s. Next: make run, and try it yourself.", time.Since(begun).Seconds()))
	return 0, nil
}

// startController starts the controller, with a Neutron at a free port.
func (s *stage) startController(ctx context.Context, c *launch.Cluster) error {
	address, err := launch.FreeAddress(ctx, "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.neutron = "http://" + address
	fmt.Printf("$ ./samplecrd-controller -kubeconfig build/run/kubeconfig -embedded-neutron-address %s\n", address)
	fmt.Printf("  with an embedded Neutron in memory: %s\n", s.neutron)
	s.controller, err = launch.StartController(c.Dir(),
		"-kubeconfig", c.Kubeconfig(), "-embedded-neutron-address", address)
	return err
}

// play runs the command of an act, and shows and checks what follows from it.
func (s *stage) play(ctx context.Context, a act) error {
	title(a.title)
	if err := s.show(ctx, a.command...); err != nil {
		return err
	}
	if a.subnet != "" {
		if err := s.show(ctx, "wait", "--for=condition=Ready", "network/"+example, "--timeout", "1m"); err != nil {
			return err
		}
	}
	if err := s.show(ctx, "get", "networks"); err != nil {
		return err
	}
	if a.subnet != "" {
		const text = `jsonpath={range .status.conditions[*]}{.type}={.status}  {.reason}: {.message}{"\n"}{end}`
		conditions, err := s.kubectl(ctx, "get", "network", example, "-o", text)
		if err != nil {
			return err
		}
		fmt.Println("Conditions")
		printIndented(conditions)
	}
	if err := s.showEvent(ctx, a.reason); err != nil {
		return err
	}
	return s.showNeutron(ctx, a.subnet)
}

// showEvent waits for an event with a reason, and shows it.
func (s *stage) showEvent(ctx context.Context, reason string) (err error) {
	var events string
	err = s.controller.Eventually(ctx, func(ctx context.Context) error {
		events, err = s.kubectl(ctx, "get", "events.events.k8s.io",
			"--field-selector", "regarding.name="+example+",reason="+reason,
			"-o", `jsonpath={range .items[*]}{.type}  {.reason}: {.note}{"\n"}{end}`)
		if err == nil && events == "" {
			err = fmt.Errorf("the Network has no event %s", reason)
		}
		return err
	})
	fmt.Println("Events")
	printIndented(events)
	return err
}

// showNeutron shows the state of Neutron, and checks that it is one network with this
// subnet, or nothing. After an edit, the network must be the same.
func (s *stage) showNeutron(ctx context.Context, subnet string) error {
	var all struct {
		Networks []struct{ ID, Name string }
		Subnets  []struct {
			ID, CIDR string
			Gateway  string `json:"gateway_ip"`
		}
	}
	for _, path := range []string{"/v2.0/networks", "/v2.0/subnets"} {
		if err := send(ctx, http.MethodGet, s.neutron+path, &all); err != nil {
			return err
		}
	}
	fmt.Printf("Neutron has (curl %s/v2.0/networks)\n", s.neutron)
	var found []string
	for _, n := range all.Networks {
		found = append(found, fmt.Sprintf("network %s  %s", n.ID, n.Name))
	}
	if s.network == "" {
		s.network = strings.Join(found, "\n")
	}
	for _, n := range all.Subnets {
		found = append(found, fmt.Sprintf("subnet  %s  %s, gateway %s", n.ID, n.CIDR, n.Gateway))
	}
	asRequested := len(found) == 2 && len(all.Networks) == 1 && found[0] == s.network &&
		strings.HasSuffix(found[1], "  "+subnet)
	if subnet == "" {
		asRequested = len(found) == 0
	}
	printIndented(cmp.Or(strings.Join(found, "\n"), "nothing"))
	if !asRequested {
		return errors.New("the state of Neutron is not as requested")
	}
	fmt.Println("✔ as requested")
	return nil
}
