package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/samplecrd/network-controller/hack/local"
)

// stage has what the walkthrough uses: a cluster, a controller, and the Neutron
// embedded in it.
type stage struct {
	ctx     context.Context
	cluster *cluster
	client  kubernetes.Interface

	controller *local.Controller
	neutron    string // its URL

	seen      map[string]bool // events that were shown
	networkID string          // after the first act
}

func newStage(ctx context.Context, cluster *cluster) (*stage, error) {
	config, err := clientcmd.BuildConfigFromFlags("", cluster.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig file: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return &stage{ctx: ctx, cluster: cluster, client: client, seen: map[string]bool{}}, nil
}

func (s *stage) title(text string) {
	fmt.Printf("\n%s\n", local.Bold(text))
}

// kubectl shows and runs a kubectl command.
func (s *stage) kubectl(args ...string) error {
	fmt.Printf("$ kubectl %s\n", local.ShellWords(args))
	output, err := s.cluster.kubectl(s.ctx, args...)
	fmt.Print(local.Indent(output))
	return err
}

// startController starts the controller, with a Neutron at a free port.
func (s *stage) startController() error {
	address, err := local.FreeAddress(s.ctx)
	if err != nil {
		return err
	}
	s.neutron = "http://" + address
	args := append([]string{"-kubeconfig", s.cluster.kubeconfig, "-embedded-neutron-address", address}, s.cluster.controllerFlags...)
	shown := slices.Clone(args)
	shown[1] = filepath.Base(args[1])
	fmt.Printf("$ ./samplecrd-controller %s\n", strings.Join(shown, " "))
	if s.controller, err = local.StartController(args...); err != nil {
		return err
	}
	s.ctx = s.controller.Context(s.ctx)
	fmt.Printf("  with an embedded Neutron in memory: %s\n", s.neutron)
	return nil
}

// showKubernetes waits until the Network is ready, and shows its row, its
// conditions, and its events.
func (s *stage) showKubernetes(events ...string) error {
	if err := s.kubectl("wait", "--for=condition=Ready", "network/"+example, "--timeout", local.Timeout.String()); err != nil {
		return err
	}
	if err := s.kubectl("get", "networks"); err != nil {
		return err
	}
	condition := `{range .status.conditions[*]}{.type}={.status}  {.reason}: {.message}{"\n"}{end}`
	output, err := s.cluster.kubectl(s.ctx, "get", "network", example, "-o", "jsonpath="+condition)
	if err != nil {
		return fmt.Errorf("reading the conditions: %w", err)
	}
	fmt.Printf("Conditions\n%s", local.Indent(output))
	return s.events(events...)
}

// events waits until the Network has new events with these reasons, in this
// order, and shows them.
func (s *stage) events(reasons ...string) error {
	var found []eventsv1.Event
	err := local.Eventually(s.ctx, func() error {
		list, err := s.client.EventsV1().Events(s.cluster.namespace).List(s.ctx, metav1.ListOptions{FieldSelector: "regarding.name=" + example})
		if err != nil {
			return fmt.Errorf("listing events: %w", err)
		}
		found = slices.DeleteFunc(list.Items, func(e eventsv1.Event) bool { return s.seen[e.Name] })
		slices.SortFunc(found, func(a, b eventsv1.Event) int { return strings.Compare(a.Name, b.Name) }) // they contain the time
		var got []string
		for _, e := range found {
			got = append(got, e.Reason)
		}
		if !slices.Equal(got, reasons) {
			return fmt.Errorf("the events are %v, want %v", got, reasons)
		}
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Println("Events")
	for _, e := range found {
		s.seen[e.Name] = true
		fmt.Printf("  %s  %s: %s\n", e.Type, e.Reason, e.Note)
	}
	return nil
}

// inNeutron is what Neutron lists.
type inNeutron struct {
	Networks []struct {
		ID, Name string
	}
	Subnets []struct {
		ID, CIDR  string
		NetworkID string `json:"network_id"`
		Gateway   string `json:"gateway_ip"`
	}
}

func (s *stage) listNeutron() (inNeutron, error) {
	var all inNeutron
	for _, path := range []string{"/v2.0/networks", "/v2.0/subnets"} {
		request, err := http.NewRequestWithContext(s.ctx, http.MethodGet, s.neutron+path, nil)
		if err != nil {
			return all, err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return all, fmt.Errorf("listing in Neutron: %w", err)
		}
		err = json.NewDecoder(response.Body).Decode(&all)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK {
			return all, fmt.Errorf("listing %s in Neutron: %s: %w", path, response.Status, err)
		}
	}
	return all, nil
}

// showNeutron shows the state of Neutron, and checks that it is one network with
// one subnet of this range and gateway. After an edit, the ID must not change.
func (s *stage) showNeutron(cidr, gateway string) error {
	all, err := s.listNeutron()
	if err != nil {
		return err
	}
	fmt.Printf("Neutron has (curl %s/v2.0/networks)\n", s.neutron)
	for _, n := range all.Networks {
		fmt.Printf("  network %s  %s\n", n.ID, n.Name)
	}
	for _, n := range all.Subnets {
		fmt.Printf("  subnet  %s  %s, gateway %s\n", n.ID, n.CIDR, n.Gateway)
	}
	switch {
	case len(all.Networks) != 1 || len(all.Subnets) != 1:
		return fmt.Errorf("%d networks and %d subnets in Neutron, want one of each", len(all.Networks), len(all.Subnets))
	case all.Subnets[0].CIDR != cidr || all.Subnets[0].Gateway != gateway || all.Subnets[0].NetworkID != all.Networks[0].ID:
		return fmt.Errorf("the subnet in Neutron has not range %s and gateway %s on network %s", cidr, gateway, all.Networks[0].ID)
	case s.networkID != "" && s.networkID != all.Networks[0].ID:
		return fmt.Errorf("the network in Neutron is not %s, which it was before", s.networkID)
	}
	s.networkID = all.Networks[0].ID
	fmt.Println("✔ as requested")
	return nil
}

func (s *stage) checkNeutronEmpty() error {
	all, err := s.listNeutron()
	if err != nil {
		return err
	}
	fmt.Printf("Neutron has (curl %s/v2.0/networks)\n", s.neutron)
	if len(all.Networks)+len(all.Subnets) > 0 {
		return fmt.Errorf("%d networks and %d subnets are left in Neutron", len(all.Networks), len(all.Subnets))
	}
	fmt.Println("  nothing")
	fmt.Println("✔ as requested")
	return nil
}
