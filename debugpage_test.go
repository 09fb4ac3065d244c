package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/samplecrd/network-controller/pkg/debugpage"
)

// TestDebugPage: the program shows the journeys of a Network that is created, edited
// while Neutron fails, healed and deleted.
func TestDebugPage(t *testing.T) {
	h := newHarness(t)
	p := startProgram(t, "-kubeconfig="+cluster.Kubeconfig(), "-neutron-endpoint="+h.neutronURL, "-cluster-name="+testCluster,
		"-namespaces="+h.namespace, "-leader-elect=false", "-debug-bind-address=127.0.0.1:0")
	p.waitFor(t, "Starting workers")
	page := p.served(t, "the debug page")
	get := func(path string, value any) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, page+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		if err := json.NewDecoder(response.Body).Decode(value); err != nil {
			t.Fatal(err)
		}
	}
	// waitJourney waits for a journey that ended with an outcome because of a cause.
	waitJourney := func(cause, changed string, failed bool) (found debugpage.Journey) {
		t.Helper()
		h.eventually(func() error {
			var all []debugpage.Journey
			get("api/journeys?key="+url.QueryEscape(h.namespace+"/example"), &all)
			for _, found = range all {
				isCause := func(c debugpage.Cause) bool { return c.Type == cause && c.Changed == changed }
				if found.Ended != nil && found.Failed == failed && slices.ContainsFunc(found.Causes, isCause) {
					return nil
				}
			}
			return fmt.Errorf("the journeys are %+v, want one because of %s %s", all, cause, changed)
		})
		return found
	}
	wantStep := func(in debugpage.Journey, text, server string) {
		t.Helper()
		if !slices.ContainsFunc(in.Steps, func(s debugpage.JourneyStep) bool {
			return s.Text == text && slices.ContainsFunc(s.Requests, func(r debugpage.JourneyRequest) bool { return r.Server == server && r.Code != 0 })
		}) {
			t.Errorf("the journey is %+v, want the step %q with a request to %s", in, text, server)
		}
	}

	follow := newDefaultProgram(t, "follow", h.namespace+"/example", "-address="+strings.TrimSuffix(strings.TrimPrefix(page, "http://"), "/"))
	follow.start(t)
	follow.waitFor(t, "Following "+h.namespace+"/example")

	h.create("example", "10.0.0.0/24", "")
	h.waitReady("example")
	created := waitJourney("added", "", false)
	wantStep(created, "add finalizer", "Kubernetes")
	wantStep(created, "create subnet: 10.0.0.0/24, gateway 10.0.0.1", "Neutron")
	wantStep(created, "write the status", "Kubernetes")
	if created.Outcome != "Ready" || created.Worker == 0 || created.Taken == nil || created.Desired == "" || created.Actual == "" {
		t.Errorf("the journey is %+v, want one to Ready", created)
	}

	unavailable := func(r *http.Request) {
		if r.Method == http.MethodPut {
			panic(http.ErrAbortHandler)
		}
	}
	h.hold.Store(&unavailable)
	h.patch("example", `{"spec":{"gateway":"10.0.0.9"}}`)
	if failed := waitJourney("updated", "spec", true); failed.Retry == nil || failed.Retry.Reason != "backoff" || failed.Retry.Failures != 1 {
		t.Errorf("the journey is %+v, want one with a retry", failed)
	}
	h.hold.Store(nil)
	wantStep(waitJourney("retry", "", false), "write the status", "Kubernetes")
	h.delete("example")
	wantStep(waitJourney("updated", "deletionTimestamp", false), "remove finalizer", "Kubernetes")
	waitJourney("deleted", "", false)

	for _, line := range []string{"added to the queue: added", "taken by worker 1", "  plan: create subnet: 10.0.0.0/24", "  Neutron: create subnet: 201 in", "done: Ready", "failed; waiting for the retry: ", "done: Deleted"} {
		follow.waitFor(t, line)
	}
	follow.signal(t, syscall.SIGINT)
	follow.wantExit(t, 0)

	var state debugpage.State
	get("api/state", &state)
	informer := state.Informers[0]
	if !state.Process.Leads || !state.Process.MaySlowDown || informer.Activity != "watching" || informer.ResourceVersion == "" || informer.Watches == 0 ||
		state.Handlers.Add != 1 || state.Handlers.Delete != 1 || state.Neutron.Limit == 0 || state.Cache.Refreshed == nil || len(state.Workers) != 32 || len(state.Plans) == 0 {
		t.Errorf("the state is %+v", state)
	}
	p.signal(t, syscall.SIGTERM)
	p.wantExit(t, 0)
}
