package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/rand"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/test/controlplane"
	"github.com/samplecrd/network-controller/test/launch"
)

const (
	example = "example-network"
	crdName = "networks.samplecrd.k8s.io"
)

// act is a part of the demo: a kubectl command, the reason of the event that reports
// its outcome, and the subnet that Neutron then has, if it has one.
type act struct {
	title   string
	command []string
	reason  string
	subnet  string
}

var acts = []act{
	{"1. Create", []string{"apply", "-f", "example/example-network.yaml"}, "NetworkCreated", "192.168.0.0/16, gateway 192.168.0.1"},
	{
		"2. Edit: the same range, written differently, and another gateway",
		[]string{"patch", "network", example, "--type=merge", "--patch", `{"spec":{"cidr":"192.168.1.0/16","gateway":"192.168.1.1"}}`},
		"SubnetUpdated", "192.168.0.0/16, gateway 192.168.1.1",
	},
	{"3. Delete", []string{"delete", "network", example, "--timeout", "1m"}, "NetworkDeleted", ""},
}

// stage has what the acts use: a cluster, a controller, and the Neutron embedded in it.
type stage struct {
	kubectl
	namespace  string
	kubeconfig string
	flags      []string // of the controller
	folder     string   // for its log
	remove     func() error

	controller *launch.Controller
	neutron    string // its URL
	network    string // the line of the first act's network in Neutron
}

// demo creates, edits and deletes a Network on a real API server. After each act, it
// shows the state in Kubernetes and in Neutron, and checks it.
func demo(ctx context.Context, _ <-chan os.Signal, args []string) (exitCode int, err error) {
	flags := flag.NewFlagSet("demo", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "`path` of the kubeconfig file of a cluster to use. Defaults to a local control plane.")
	_ = flags.Parse(args) // it exits
	begun := time.Now()
	title("A Network becomes a real network")
	s, err := stageIn(ctx, *kubeconfig)
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, s.remove()) }()
	if err := s.startController(ctx); err != nil {
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

// stageIn starts a local control plane, which is removed as a whole, or uses the
// cluster of a kubeconfig file.
func stageIn(ctx context.Context, kubeconfig string) (*stage, error) {
	if kubeconfig != "" {
		return useCluster(ctx, kubeconfig)
	}
	fmt.Print("\nStarting a Kubernetes API server on loopback … ")
	begun := time.Now()
	c, err := launch.StartCluster(ctx, controlplane.Options{})
	if err != nil {
		return nil, err
	}
	fmt.Printf("ready after %.1f s\n", time.Since(begun).Seconds())
	s := &stage{kubectl: of(c), namespace: "default", kubeconfig: c.Kubeconfig(), folder: c.Dir(), remove: c.Stop}
	if err := s.show(ctx, "apply", "-f", "crd/"); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return s, nil
}

// useCluster makes a namespace in the cluster of a kubeconfig file, and the CRD unless
// it is there. The demo's Neutron is in memory: its controller must not touch other
// Networks.
func useCluster(ctx context.Context, kubeconfig string) (_ *stage, err error) {
	program, err := exec.LookPath("kubectl")
	if err != nil {
		if program, err = exec.LookPath("build/bin/kubectl"); err != nil {
			return nil, errors.New("kubectl is not installed: install it, or build it with make control-plane")
		}
	}
	if kubeconfig, err = expandHome(kubeconfig); err == nil {
		kubeconfig, err = filepath.Abs(kubeconfig)
	}
	if err != nil {
		return nil, err
	}
	s := &stage{namespace: "network-demo-" + rand.String(5), kubeconfig: kubeconfig}
	s.flags = []string{"-namespaces", s.namespace, "-deployment-networks", "none"}
	s.kubectl = func(ctx context.Context, args ...string) (string, error) {
		args = append([]string{"--kubeconfig", kubeconfig, "--namespace", s.namespace}, args...)
		output, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		} else if err != nil {
			err = fmt.Errorf("kubectl %s: %w: %s", args[4], err, output)
		}
		return string(output), err
	}
	if s.folder, err = os.MkdirTemp("", "network-demo-"); err != nil {
		return nil, err
	}
	madeCRD := false
	s.remove = func() error { return errors.Join(s.removeAll(madeCRD), os.RemoveAll(s.folder)) }
	fmt.Printf("\nUsing the cluster of %s, namespace %s\n", kubeconfig, s.namespace)
	_, err = s.kubectl(ctx, "create", "namespace", s.namespace)
	found := ""
	if err == nil {
		found, err = s.kubectl(ctx, "get", "crd", crdName, "--ignore-not-found", "-o", "name")
	}
	if madeCRD = err == nil && found == ""; madeCRD {
		err = s.show(ctx, "apply", "-f", "crd/")
	}
	if err != nil {
		return nil, errors.Join(err, s.remove())
	}
	return s, nil
}

// removeAll removes what the demo created in a cluster. The controller has been
// stopped: the finalizers that it left are removed too, because its Neutron is gone.
func (s *stage) removeAll(madeCRD bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), launch.Timeout) // also after Ctrl-C
	defer cancel()
	var errs []error
	run := func(args ...string) string {
		output, err := s.kubectl(ctx, args...)
		errs = append(errs, err)
		return output
	}
	removed := "namespace " + s.namespace
	for name := range strings.FieldsSeq(run("get", "networks", "--ignore-not-found", "-o", "name")) {
		run("patch", name, "--type=merge", "--patch", `{"metadata":{"finalizers":null}}`)
	}
	run("delete", "namespace", s.namespace)
	if madeCRD {
		if run("get", "networks", "--all-namespaces", "-o", "name") == "" {
			run("annotate", "crd", crdName, samplecrdv1.AnnotationAllowDeletion+"=true")
			run("delete", "-f", "crd/")
			removed += " and CRD " + crdName
		} else {
			removed += "; not CRD " + crdName + ", because Networks exist"
		}
	}
	err := errors.Join(errs...)
	if err == nil {
		fmt.Printf("\nRemoved %s.\n", removed)
	}
	return err
}

// startController starts the controller, with a Neutron at a free port.
func (s *stage) startController(ctx context.Context) error {
	address, err := launch.FreeAddress(ctx, "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.neutron = "http://" + address
	flags := append([]string{"-kubeconfig", s.kubeconfig, "-embedded-neutron-address", address}, s.flags...)
	shown := strings.Join(flags, " ")
	if here, err := os.Getwd(); err == nil {
		shown = strings.Replace(shown, here+"/", "", 1)
	}
	fmt.Printf("$ ./samplecrd-controller %s\n  with an embedded Neutron in memory: %s\n", shown, s.neutron)
	s.controller, err = launch.StartController(s.folder, flags...)
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
		conditions, err := s.kubectl(ctx, "get", "network", example, "-o", `jsonpath={range .status.conditions[*]}{.type}={.status}  {.reason}: {.message}{"\n"}{end}`)
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
		events, err = s.kubectl(ctx, "get", "events.events.k8s.io", "--field-selector", "regarding.name="+example+",reason="+reason,
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
		if err := send(ctx, http.MethodGet, s.neutron+path, "", &all); err != nil {
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
	asRequested := len(found) == 2 && len(all.Networks) == 1 && found[0] == s.network && strings.HasSuffix(found[1], "  "+subnet)
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
