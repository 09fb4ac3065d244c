package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/samplecrd/network-controller/pkg/glass"
	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/test/launch"
)

const (
	// neutronWorks is the time of a request to Neutron, as in a large cloud: long enough to see
	// what happens meanwhile.
	neutronWorks = 500 * time.Millisecond
	// readingTime is how long a recording shows the end of each step.
	readingTime = 5 * time.Second
)

type journey = glass.Journey

// tour has what the steps use.
type tour struct {
	*stage
	language string
	yes      bool
	record   string // the path of a recording, or empty
	input    *bufio.Scanner

	embedded *embedded.Server
	page     string // its URL
	heal     func() // ends the failure of Neutron
	hurry    func() // lets Neutron respond at once
	recorder recorder
}

// guide plays the walkthrough, for a browser tab with the debug page beside the terminal:
// step by step on Enter, with the explanation of what moved there.
func guide(ctx context.Context, _ <-chan os.Signal, args []string) (exitCode int, err error) {
	t := &tour{input: bufio.NewScanner(os.Stdin), embedded: embedded.New(embedded.Options{})}
	flags := flag.NewFlagSet("tour", flag.ExitOnError)
	flags.StringVar(&t.language, "lang", systemLanguage(),
		"The `language` of the explanations: en or zh. Defaults to that of the system.")
	flags.BoolVar(&t.yes, "yes", !isTerminal(os.Stdin),
		"Do not wait for Enter. Defaults to true if the input is not a terminal.")
	flags.StringVar(&t.record, "record", "", "Write a recording for docs/watch to this `file`. Implies -yes.")
	_ = flags.Parse(args) // it exits
	if flags.NArg() > 0 || t.language != "en" && t.language != "zh" {
		flags.Usage()
		return 2, nil
	}
	fmt.Println(t.in(starting))
	return 0, play(ctx, t.play)
}

// systemLanguage returns the language of the locale.
func systemLanguage() string {
	if strings.HasPrefix(cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_MESSAGES"), os.Getenv("LANG")), "zh") {
		return "zh"
	}
	return "en"
}

// play starts the controller, plays all steps, and writes the recording, if there is one.
func (t *tour) play(s *stage) {
	t.stage = s
	address, err := launch.FreeAddress(s.ctx, pageAddress)
	if s.err = errors.Join(err, t.embedded.Listen("")); s.err != nil {
		return
	}
	t.work()
	t.page = "http://" + address
	flags := []string{"-neutron-endpoint=" + t.embedded.URL(), "-debug-bind-address=" + address, "-resync-period=30s"}
	if t.record != "" { // less to wait for, and to show
		t.yes, flags = true, append(flags, "-resync-period=10s", "-workers=4")
	}
	s.startController(flags...)
	if t.record != "" && s.err == nil {
		s.err = t.recorder.start(s.ctx, t.page, "default/"+example)
	}
	s.say(t.in(ready), t.page+"/#default/"+example, s.cluster.Kubeconfig())
	for i, step := range steps {
		t.enter()
		s.title(fmt.Sprintf("%d. %s", i+1, t.in(step.title)))
		t.recorder.begin(step)
		begun := time.Now()
		step.play(t)
		t.finished(begun, step.until)
		if s.err != nil {
			s.err = fmt.Errorf("step %d: %w", i+1, s.err)
			return
		}
		if t.record != "" {
			<-time.After(readingTime)
		}
		s.say("\n%s", t.in(step.lesson))
	}
	s.say("\n%s", t.in(ended))
	t.enter()
	if t.record != "" && s.err == nil {
		s.err = t.recorder.write(t.record)
	}
}

// enter waits for the Enter key, if a user is there.
func (t *tour) enter() {
	if t.yes || t.err != nil {
		return
	}
	fmt.Printf("\n%s ", t.in(pressEnter))
	pressed := make(chan bool, 1)
	go func() { pressed <- t.input.Scan() }()
	select {
	case ok := <-pressed:
		if !ok {
			t.err = errors.New("the input has ended")
		}
	case <-t.ctx.Done():
		t.err = t.ctx.Err()
	}
}

// show runs kubectl, and prints and records the command.
func (t *tour) show(args ...string) {
	t.recorder.command(commandLine(args))
	t.stage.show(args...)
}

// sayCommand prints and records the command that would do what follows.
func (t *tour) sayCommand(line string) {
	t.recorder.command(line)
	t.say("$ %s", line)
}

// wait waits until the controller has observed the last edit.
func (t *tour) wait() {
	t.stage.show("wait", "--for=condition=Ready", "network/"+example, "--timeout", "1m")
}

func create(t *tour) {
	t.show("apply", "-f", "example/example-network.yaml")
	t.wait()
}

// edit changes the gateway.
func edit(t *tour) {
	t.show(patch("192.168.1.1")...)
	t.wait()
}

// patch returns a kubectl command that changes the gateway.
func patch(gateway string) []string {
	return []string{"patch", "network", example, "--type=merge", "--patch", `{"spec":{"gateway":"` + gateway + `"}}`}
}

// tenEdits changes the gateway ten times at once.
func tenEdits(t *tour) {
	t.sayCommand("for i in {1..10}; do kubectl patch network " + example + " --type=merge " +
		`--patch '{"spec":{"gateway":"192.168.2.'$i'"}}' & done`)
	var errs [10]error
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { _, errs[i] = t.try(t.ctx, patch(fmt.Sprintf("192.168.2.%d", i+1))...) })
	}
	all.Wait()
	t.err = errors.Join(append(errs[:], t.err)...)
	t.wait()
}

// drift deletes the network in Neutron, as another client of OpenStack does.
func drift(t *tour) {
	id := t.kubectl("get", "network", example, "-o", "jsonpath={.status.networkID}")
	t.sayCommand("openstack network delete " + id)
	t.send(http.MethodDelete, t.embedded.URL()+"/v2.0/networks/"+id, "", nil)
}

// work lets Neutron need its time for each request.
func (t *tour) work() { t.hurry = t.embedded.Inject(embedded.Fault{Work: neutronWorks}) }

// failure edits the Network while Neutron is unavailable.
func failure(t *tour) {
	t.hurry()
	t.heal = t.embedded.Inject(embedded.Fault{Method: http.MethodPut, Status: http.StatusServiceUnavailable})
	t.show(patch("192.168.3.1")...)
}

func heal(t *tour) {
	t.say(t.in(healed))
	t.heal()
	t.work()
	t.wait()
}

func remove(t *tour) { t.show("delete", "network", example, "--timeout", "1m") }

// finished waits until the newest journey has ended since a time, and is one that a
// function accepts.
func (t *tour) finished(since time.Time, accept func(journey) bool) {
	t.eventually(func(ctx context.Context) error {
		var journeys []journey
		err := send(ctx, http.MethodGet, t.page+"/api/journeys?key=default/"+example, "", &journeys)
		if err == nil &&
			(len(journeys) == 0 || journeys[0].Ended == nil || journeys[0].Ended.Before(since) || !accept(journeys[0])) {
			err = errors.New("the journey has not ended yet")
		}
		return err
	})
}
