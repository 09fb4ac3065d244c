package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/samplecrd/network-controller/test/controlplane"
)

// stage is where the walkthrough is played: a cluster, a controller, and the
// Neutron in it.
type stage struct {
	ctx     context.Context
	cluster *controlplane.Cluster
	client  kubernetes.Interface

	controller    *exec.Cmd
	controllerLog bytes.Buffer
	ended         chan struct{} // closed when the controller has ended
	neutron       string        // its URL

	seen      map[string]bool // events that were shown
	networkID string          // after the first act
}

func newStage(ctx context.Context, cluster *controlplane.Cluster) (*stage, error) {
	client, err := kubernetes.NewForConfig(cluster.RESTConfig())
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return &stage{ctx: ctx, cluster: cluster, client: client, seen: map[string]bool{}}, nil
}

func (s *stage) title(text string) {
	fmt.Printf("\n%s\n", bold(text))
}

// kubectl shows and runs a kubectl command.
func (s *stage) kubectl(args ...string) error {
	fmt.Printf("$ kubectl %s\n", shellWords(args))
	command := exec.CommandContext(s.ctx, filepath.Join("build", "bin", "kubectl"), args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+s.cluster.Kubeconfig())
	output, err := command.CombinedOutput()
	fmt.Print(indent(string(output)))
	if err != nil {
		return fmt.Errorf("kubectl %s: %w", args[0], err)
	}
	return nil
}

// startController starts the controller, with a Neutron at a free port.
func (s *stage) startController() error {
	listener, err := (&net.ListenConfig{}).Listen(s.ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("looking for a free port: %w", err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	s.neutron = "http://" + address

	program, err := filepath.Abs("samplecrd-controller")
	if err != nil {
		return err
	}
	fmt.Printf("$ ./samplecrd-controller -kubeconfig %s -embedded-neutron-address %s\n", filepath.Base(s.cluster.Kubeconfig()), address)
	s.controller = exec.Command(program, "-kubeconfig", s.cluster.Kubeconfig(), "-embedded-neutron-address", address) //nolint:noctx // it is asked to stop, not killed
	s.controller.Stdout, s.controller.Stderr = &s.controllerLog, &s.controllerLog
	s.controller.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt reaches it through us
	if err := s.controller.Start(); err != nil {
		return fmt.Errorf("starting the controller: %w", err)
	}
	s.ended = make(chan struct{})
	var noUse context.CancelFunc // without a controller, nothing else is worth waiting for
	s.ctx, noUse = context.WithCancel(s.ctx)
	go func() {
		_ = s.controller.Wait() // its exit code is in ProcessState
		close(s.ended)
		noUse()
	}()
	fmt.Printf("  with a Neutron in its memory: %s\n", s.neutron)
	return nil
}

// stopController stops the controller as Kubernetes would.
func (s *stage) stopController() error {
	_ = s.controller.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.ended:
	case <-time.After(timeout):
		_ = s.controller.Process.Kill()
		<-s.ended
	}
	if code := s.controller.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("the controller exited with %d; its log ends with\n%s", code, tail(s.controllerLog.String()))
	}
	return nil
}

// eventually waits until a check passes, and fails with what it said last.
func (s *stage) eventually(check func() error) error {
	last := errors.New("there was no time to look")
	err := wait.PollUntilContextTimeout(s.ctx, 20*time.Millisecond, timeout, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%w (%w)", last, err)
	}
	return nil
}

// kubernetesSays waits until the Network is ready, and shows its row, its
// condition, and its events.
func (s *stage) kubernetesSays(events ...string) error {
	if err := s.kubectl("wait", "--for=condition=Ready", "network/"+example, "--timeout", timeout.String()); err != nil {
		return err
	}
	if err := s.kubectl("get", "networks"); err != nil {
		return err
	}
	condition := `{range .status.conditions[*]}{.type}={.status}  {.reason}: {.message}{"\n"}{end}`
	output, err := s.cluster.Kubectl(s.ctx, "get", "network", example, "-o", "jsonpath="+condition)
	if err != nil {
		return fmt.Errorf("reading the condition: %w", err)
	}
	fmt.Printf("Condition\n%s", indent(string(output)))
	return s.events(events...)
}

// events waits until the Network has new events with these reasons, in this
// order, and shows them.
func (s *stage) events(reasons ...string) error {
	var found []eventsv1.Event
	err := s.eventually(func() error {
		list, err := s.client.EventsV1().Events(metav1.NamespaceDefault).List(s.ctx, metav1.ListOptions{FieldSelector: "regarding.name=" + example})
		if err != nil {
			return fmt.Errorf("listing events: %w", err)
		}
		found = slices.DeleteFunc(list.Items, func(e eventsv1.Event) bool { return s.seen[e.Name] })
		slices.SortFunc(found, func(a, b eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
		var got []string
		for _, e := range found {
			got = append(got, e.Reason)
		}
		if !slices.Equal(got, reasons) {
			return fmt.Errorf("the events are %v and should be %v", got, reasons)
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

// inNeutron is what Neutron has, as it says itself.
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

func (s *stage) askNeutron() (inNeutron, error) {
	var all inNeutron
	for _, path := range []string{"/v2.0/networks", "/v2.0/subnets"} {
		request, err := http.NewRequestWithContext(s.ctx, http.MethodGet, s.neutron+path, nil)
		if err != nil {
			return all, err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return all, fmt.Errorf("asking Neutron: %w", err)
		}
		err = json.NewDecoder(response.Body).Decode(&all)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK {
			return all, fmt.Errorf("asking Neutron for %s: %s: %w", path, response.Status, err)
		}
	}
	return all, nil
}

// neutronHas shows what Neutron has, and checks that it is one network with one
// subnet of this range and gateway: after an edit, the same network.
func (s *stage) neutronHas(cidr, gateway string) error {
	all, err := s.askNeutron()
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
		return fmt.Errorf("there are %d networks and %d subnets in Neutron, and there should be one of each", len(all.Networks), len(all.Subnets))
	case all.Subnets[0].CIDR != cidr || all.Subnets[0].Gateway != gateway || all.Subnets[0].NetworkID != all.Networks[0].ID:
		return fmt.Errorf("the subnet in Neutron is not %s with gateway %s on network %s", cidr, gateway, all.Networks[0].ID)
	case s.networkID != "" && s.networkID != all.Networks[0].ID:
		return fmt.Errorf("the network in Neutron is not the one that it was before, %s", s.networkID)
	}
	s.networkID = all.Networks[0].ID
	fmt.Println("✔ as asked for")
	return nil
}

func (s *stage) neutronHasNothing() error {
	all, err := s.askNeutron()
	if err != nil {
		return err
	}
	fmt.Printf("Neutron has (curl %s/v2.0/networks)\n", s.neutron)
	if len(all.Networks)+len(all.Subnets) > 0 {
		return fmt.Errorf("there are still %d networks and %d subnets in Neutron", len(all.Networks), len(all.Subnets))
	}
	fmt.Println("  nothing")
	fmt.Println("✔ as asked for")
	return nil
}

func indent(text string) string {
	if text = strings.TrimRight(text, "\n"); text == "" {
		return ""
	}
	return "  " + strings.ReplaceAll(text, "\n", "\n  ") + "\n"
}

func tail(log string) string {
	lines := strings.Split(strings.TrimRight(log, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}
