// Command tour plays the walkthrough in slow motion, for a browser tab with the debug
// page beside the terminal: step by step on Enter, with the explanation of what moved.
// The numbers are those of the page's JSON.
//
// With -yes, or if the input is not a terminal, it does not wait. The environment
// variable KUBEBUILDER_ASSETS names a folder with programs for the local Kubernetes.
package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/samplecrd/network-controller/hack/local"
	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/pkg/neutron/faults"
	"github.com/samplecrd/network-controller/test/controlplane"
)

// slowMotion is how long each stage holds a key: long enough to look at it, or in a run
// without a spectator just enough to be used.
const (
	slowMotion    = 800 * time.Millisecond
	unwatched     = 50 * time.Millisecond
	example, key  = "example-network", "default/example-network"
	preferredPage = "127.0.0.1:8123"
)

func main() {
	language := flag.String("lang", systemLanguage(), "The `language` of the explanations: en or zh. Defaults to that of the system.")
	yes := flag.Bool("yes", !local.IsTerminal(os.Stdin), "Do not wait for Enter. Defaults to true if the input is not a terminal.")
	flag.Parse()
	if flag.NArg() > 0 || *language != "en" && *language != "zh" {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	err := run(ctx, &tour{language: *language, yes: *yes, input: bufio.NewScanner(os.Stdin)})
	switch {
	case err != nil && ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "\ntour: interrupted; everything is stopped")
		os.Exit(1)
	case err != nil:
		fmt.Fprintf(os.Stderr, "\ntour: %v\n", err)
		os.Exit(1)
	}
}

// systemLanguage returns the language of the locale.
func systemLanguage() string {
	if strings.HasPrefix(cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_MESSAGES"), os.Getenv("LANG")), "zh") {
		return "zh"
	}
	return "en"
}

// tour has what the steps use.
type tour struct {
	ctx      context.Context
	language string
	yes      bool
	input    *bufio.Scanner

	cluster *controlplane.Cluster
	neutron *faults.Front // in front of an embedded one
	page    string        // its URL
	heal    func()        // ends the failure of Neutron
}

// run starts everything, plays the steps, and stops everything.
func run(ctx context.Context, t *tour) (err error) {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return err
	}
	if err := os.Chdir(root); err != nil {
		return fmt.Errorf("changing to the module's root: %w", err)
	}
	fmt.Println(t.say(starting))
	t.cluster, err = controlplane.Start(ctx, controlplane.Options{Apply: []string{"crd"}, Assets: os.Getenv("KUBEBUILDER_ASSETS")})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.cluster.Stop()) }()
	t.neutron = faults.New(embedded.New(embedded.Options{}))
	server := httptest.NewServer(t.neutron)
	defer server.Close()
	address, err := local.FreeAddress(ctx, preferredPage)
	if err != nil {
		return err
	}
	t.page = "http://" + address + "/"
	controller, err := local.StartController("-kubeconfig="+t.cluster.Kubeconfig(), "-neutron-endpoint="+server.URL, "-debug-bind-address="+address, "-resync-period=5s")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, controller.Stop()) }()
	t.ctx = controller.Context(ctx)
	if err := local.Eventually(t.ctx, controller.Leads); err != nil {
		return err
	}
	slow := slowMotion
	if t.yes {
		slow = unwatched
	}
	if err := t.slowDown(slow); err != nil {
		return err
	}
	fmt.Printf(t.say(ready)+"\n", t.page+"#"+key, slow.Milliseconds(), t.cluster.Kubeconfig())
	for i, step := range steps {
		if err := t.enter(); err != nil {
			return err
		}
		fmt.Printf("\n%s\n", local.Bold(fmt.Sprintf("%d. %s", i+1, t.say(step.title))))
		if err := step.play(t); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
		fmt.Printf("\n%s\n", t.say(step.lesson))
	}
	fmt.Printf("\n%s\n", t.say(finished))
	return t.enter()
}

// enter waits for the Enter key, if a user is there.
func (t *tour) enter() error {
	if t.yes {
		return t.ctx.Err()
	}
	fmt.Printf("\n%s ", t.say(pressEnter))
	pressed := make(chan bool, 1)
	go func() { pressed <- t.input.Scan() }()
	select {
	case ok := <-pressed:
		if !ok {
			return errors.New("the input has ended")
		}
		return nil
	case <-t.ctx.Done():
		return t.ctx.Err()
	}
}

// kubectl shows and runs a kubectl command.
func (t *tour) kubectl(args ...string) error {
	fmt.Printf("$ kubectl %s\n", local.ShellWords(args))
	output, err := t.cluster.Kubectl(t.ctx, args...)
	fmt.Print(local.Indent(string(output)))
	return err
}

func create(t *tour) error {
	if err := t.kubectl("apply", "-f", "example/example-network.yaml"); err != nil {
		return err
	}
	return t.untilSynced(time.Now().Add(-time.Second))
}

// edit changes the gateway.
func edit(t *tour) error { return t.change("192.168.1.1") }

func (t *tour) change(gateway string) error {
	begun := time.Now()
	if err := t.kubectl("patch", "network", example, "--type=merge", "--patch", patchOf(gateway)); err != nil {
		return err
	}
	return t.untilSynced(begun)
}

func patchOf(gateway string) string { return `{"spec":{"gateway":"` + gateway + `"}}` }

// tenEdits changes the gateway ten times at once.
func tenEdits(t *tour) error {
	begun := time.Now()
	fmt.Printf("$ for i in {1..10}; do kubectl patch network %s --type=merge --patch '%s' & done\n", example, patchOf("192.168.2.$i"))
	errs := make(chan error)
	for i := range 10 {
		go func() {
			_, err := t.cluster.Kubectl(t.ctx, "patch", "network", example, "--type=merge", "--patch", patchOf(fmt.Sprintf("192.168.2.%d", i+1)))
			errs <- err
		}()
	}
	var all []error
	for range 10 {
		all = append(all, <-errs)
	}
	if err := errors.Join(all...); err != nil {
		return err
	}
	return t.untilSynced(begun)
}

// drift deletes the network in Neutron, as another client of OpenStack does.
func drift(t *tour) error {
	begun := time.Now()
	id, err := t.cluster.Kubectl(t.ctx, "get", "network", example, "-o", "jsonpath={.status.networkID}")
	if err != nil {
		return err
	}
	fmt.Printf("$ openstack network delete %s\n", id)
	request := httptest.NewRequestWithContext(t.ctx, http.MethodDelete, "/v2.0/networks/"+string(id), nil)
	answer := httptest.NewRecorder()
	if t.neutron.ServeHTTP(answer, request); answer.Code != http.StatusNoContent {
		return fmt.Errorf("deleting the network in Neutron: %d %s", answer.Code, answer.Body)
	}
	return t.untilJourney(begun, func(j journey) bool { return j.Ended != nil && !j.Failed && len(j.Steps) > 0 })
}

// failure edits the Network while Neutron is unavailable.
func failure(t *tour) error {
	t.heal = t.neutron.Inject(faults.Fault{Method: http.MethodPut, Status: http.StatusServiceUnavailable})
	begun := time.Now()
	if err := t.kubectl("patch", "network", example, "--type=merge", "--patch", patchOf("192.168.3.1")); err != nil {
		return err
	}
	return t.untilJourney(begun, func(j journey) bool { return j.Failed && j.Retry != nil && j.Retry.Failures >= 3 })
}

func heal(t *tour) error {
	begun := time.Now()
	fmt.Println(t.say(healed))
	t.heal()
	return t.untilSynced(begun)
}

func remove(t *tour) error {
	begun := time.Now()
	if err := t.kubectl("delete", "network", example, "--timeout", local.Timeout.String()); err != nil {
		return err
	}
	return t.untilJourney(begun, func(j journey) bool { return j.Ended != nil && !j.Failed })
}
