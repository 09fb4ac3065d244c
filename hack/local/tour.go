package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/samplecrd/network-controller/pkg/glass"
	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/test/controlplane"
	"github.com/samplecrd/network-controller/test/launch"
)

// slowMotion is how long each stage holds a key: long enough to look at it, or in a run
// without a spectator just enough to be used.
const (
	slowMotion = 800 * time.Millisecond
	recorded   = 300 * time.Millisecond
	unwatched  = 50 * time.Millisecond
)

type journey = glass.Journey

// tour has what the steps use.
type tour struct {
	kubectl
	ctx      context.Context
	language string
	yes      bool
	input    *bufio.Scanner

	controller *launch.Controller
	neutron    *embedded.Server
	page       string    // its URL
	heal       func()    // ends the failure of Neutron
	recorder   *recorder // or nil
}

// guide plays the walkthrough in slow motion, for a browser tab with the debug page
// beside the terminal: step by step on Enter, with the explanation of what moved there.
func guide(ctx context.Context, _ <-chan os.Signal, args []string) (exitCode int, err error) {
	t := &tour{ctx: ctx, input: bufio.NewScanner(os.Stdin), neutron: embedded.New(embedded.Options{})}
	flags := flag.NewFlagSet("tour", flag.ExitOnError)
	flags.StringVar(&t.language, "lang", systemLanguage(),
		"The `language` of the explanations: en or zh. Defaults to that of the system.")
	flags.BoolVar(&t.yes, "yes", !isTerminal(os.Stdin),
		"Do not wait for Enter. Defaults to true if the input is not a terminal.")
	record := flags.String("record", "", "Write a recording for docs/watch to this `file`. Implies -yes.")
	_ = flags.Parse(args) // it exits
	if flags.NArg() > 0 || t.language != "en" && t.language != "zh" {
		flags.Usage()
		return 2, nil
	}
	fmt.Println(t.say(starting))
	c, err := launch.StartCluster(ctx, controlplane.Options{Apply: []string{"crd"}})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	t.kubectl = of(c)
	if err := t.neutron.Listen(""); err != nil {
		return 1, err
	}
	address, err := launch.FreeAddress(ctx, pageAddress)
	if err != nil {
		return 1, err
	}
	t.page = "http://" + address
	controllerFlags := []string{
		"-kubeconfig=" + c.Kubeconfig(), "-neutron-endpoint=" + t.neutron.URL(),
		"-debug-bind-address=" + address, "-resync-period=30s",
	}
	if *record != "" { // less to wait for, and to show
		controllerFlags = append(controllerFlags, "-resync-period=10s", "-workers=4")
	}
	if t.controller, err = launch.StartController(c.Dir(), controllerFlags...); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, t.controller.Stop()) }()
	if err := t.controller.Eventually(ctx, t.controller.Leads); err != nil {
		return 1, err
	}
	return 0, t.playAndRecord(c.Kubeconfig(), *record)
}

// playAndRecord plays all steps, and writes a recording of them unless its path is empty.
func (t *tour) playAndRecord(kubeconfig, path string) (err error) {
	if path == "" {
		return t.play(kubeconfig)
	}
	t.yes = true
	if t.recorder, err = startRecording(t.ctx, t.page, "default/"+example); err != nil {
		return err
	}
	if err := t.play(kubeconfig); err != nil {
		return err
	}
	return t.recorder.write(path)
}

// systemLanguage returns the language of the locale.
func systemLanguage() string {
	if strings.HasPrefix(cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_MESSAGES"), os.Getenv("LANG")), "zh") {
		return "zh"
	}
	return "en"
}

// play plays all steps.
func (t *tour) play(kubeconfig string) error {
	slow := slowMotion
	switch {
	case t.recorder != nil:
		slow = recorded
	case t.yes:
		slow = unwatched
	}
	setting := fmt.Sprintf("%s/api/slow?milliseconds=%d", t.page, slow.Milliseconds())
	if err := send(t.ctx, http.MethodPost, setting, nil); err != nil {
		return err
	}
	fmt.Printf(t.say(ready)+"\n", t.page+"/#default/"+example, slow.Milliseconds(), kubeconfig)
	for i, step := range steps {
		if err := t.enter(); err != nil {
			return err
		}
		title(fmt.Sprintf("%d. %s", i+1, t.say(step.title)))
		t.recorder.begin(step)
		begun := time.Now()
		err := step.play(t)
		if err == nil {
			err = t.finished(begun, step.until)
		}
		if err == nil {
			err = t.recorder.end(t.ctx)
		}
		if err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
		fmt.Printf("\n%s\n", t.say(step.lesson))
	}
	fmt.Printf("\n%s\n", t.say(ended))
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

func create(t *tour) error {
	return t.ready(t.show("apply", "-f", "example/example-network.yaml"))
}

// show runs kubectl, and prints and records the command.
func (t *tour) show(args ...string) error {
	t.recorder.command(commandLine(args))
	return t.kubectl.show(t.ctx, args...)
}

// printCommand prints and records the command that would do what follows.
func (t *tour) printCommand(line string) {
	t.recorder.command(line)
	fmt.Printf("$ %s\n", line)
}

// ready waits until the controller has observed the last edit, unless that failed.
func (t *tour) ready(failed error) error {
	if failed != nil {
		return failed
	}
	return t.kubectl.show(t.ctx, "wait", "--for=condition=Ready", "network/"+example, "--timeout", "1m")
}

// edit changes the gateway.
func edit(t *tour) error { return t.ready(t.show(patch("192.168.1.1")...)) }

// patch returns a kubectl command that changes the gateway.
func patch(gateway string) []string {
	return []string{"patch", "network", example, "--type=merge", "--patch", `{"spec":{"gateway":"` + gateway + `"}}`}
}

// tenEdits changes the gateway ten times at once.
func tenEdits(t *tour) error {
	t.printCommand("for i in {1..10}; do kubectl patch network " + example + " --type=merge " +
		`--patch '{"spec":{"gateway":"192.168.2.'$i'"}}' & done`)
	errs := make(chan error)
	for i := range 10 {
		go func() {
			_, err := t.kubectl(t.ctx, patch(fmt.Sprintf("192.168.2.%d", i+1))...)
			errs <- err
		}()
	}
	var all error
	for range 10 {
		all = errors.Join(all, <-errs)
	}
	return t.ready(all)
}

// drift deletes the network in Neutron, as another client of OpenStack does.
func drift(t *tour) error {
	id, err := t.kubectl(t.ctx, "get", "network", example, "-o", "jsonpath={.status.networkID}")
	if err != nil {
		return err
	}
	t.printCommand("openstack network delete " + id)
	return send(t.ctx, http.MethodDelete, t.neutron.URL()+"/v2.0/networks/"+id, nil)
}

// failure edits the Network while Neutron is unavailable.
func failure(t *tour) error {
	t.heal = t.neutron.Inject(embedded.Fault{Method: http.MethodPut, Status: http.StatusServiceUnavailable})
	return t.show(patch("192.168.3.1")...)
}

func heal(t *tour) error {
	fmt.Println(t.say(healed))
	t.heal()
	return t.ready(nil)
}

func remove(t *tour) error {
	return t.show("delete", "network", example, "--timeout", "1m")
}

// finished waits until the newest journey has ended since a time, and is one that a
// function accepts.
func (t *tour) finished(since time.Time, accept func(journey) bool) error {
	return t.controller.Eventually(t.ctx, func(ctx context.Context) error {
		var journeys []journey
		if err := send(ctx, http.MethodGet, t.page+"/api/journeys?key=default/"+example, &journeys); err != nil {
			return err
		}
		if len(journeys) == 0 || journeys[0].Ended == nil || journeys[0].Ended.Before(since) || !accept(journeys[0]) {
			return errors.New("the journey has not ended yet")
		}
		return nil
	})
}

// send sends a request, and decodes the body of the response unless that is nil.
func send(ctx context.Context, method, url string, response any) error {
	request, err := http.NewRequestWithContext(ctx, method, url, http.NoBody)
	if err != nil {
		return err
	}
	got, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = got.Body.Close() }()
	if got.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("%s responds with %s", url, got.Status)
	}
	if response == nil {
		return nil
	}
	return json.NewDecoder(got.Body).Decode(response)
}
