package main

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// rewriteAnswers lets the controllers that start later see other answers of
// Neutron.
func (h *harness) rewriteAnswers(rewrite func(r *http.Request, body string) string) {
	h.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		h.neutron.ServeHTTP(answer, r)
		maps.Copy(w.Header(), answer.Header())
		w.Header().Del("Content-Length")
		w.WriteHeader(answer.Code)
		if answer.Code != http.StatusNoContent {
			_, _ = io.WriteString(w, rewrite(r, answer.Body.String()))
		}
	}))
	h.Cleanup(server.Close)
	h.neutronURL = server.URL
}

// TestEndlessList: a list of Neutron's state that does not end delays neither the
// start of the controller nor its end.
func TestEndlessList(t *testing.T) {
	h := newHarness(t)
	hold := func(r *http.Request) {
		if r.Method == http.MethodGet && listsAll(r.URL.Path, r.URL.RawQuery) {
			h.untilTestEnds(r.Context().Done())
		}
	}
	h.hold.Store(&hold)
	h.settings.drift.StartTimeout = 50 * time.Millisecond
	stop := h.startController()
	h.create("example", "10.0.0.0/24", "")
	h.waitReady("example")
	if err := h.hasLogged("starting without it"); err != nil {
		t.Error(err)
	}
	if err := h.watchdog.Check(0); err == nil {
		t.Error("the watchdog does not watch the list")
	}
	began := time.Now()
	stop()
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the controller took %v to stop", took)
	}
}

// TestRunEnds: Run returns when its own context ends, although the informers and the
// lists of Neutron's state continue. Nor is it a failure if the informers end first.
func TestRunEnds(t *testing.T) {
	for name, informersEnd := range map[string]bool{"informers continue": false, "informers have ended": true} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			ctx, cancel := context.WithCancel(t.Context())
			ofInformers := t.Context()
			if informersEnd {
				ofInformers = ctx
			}
			c, start := h.newController(ofInformers)
			start()
			if !c.WarmUp(ofInformers) {
				t.Fatal("WarmUp() = false")
			}
			cancel()
			h.eventually(func() error {
				if informersEnd && !h.informer.IsStopped() {
					return errors.New("the informer has not stopped")
				}
				return nil
			})
			ended := make(chan error, 1)
			go func() { ended <- c.Run(ctx, 1, time.Minute) }()
			select {
			case err := <-ended:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(patience):
				t.Error("Run did not return")
			}
		})
	}
}

// TestNotConverging: a Neutron whose answers never match the requests does not keep
// the controller busy.
func TestNotConverging(t *testing.T) {
	h := newHarness(t)
	h.rewriteAnswers(func(_ *http.Request, body string) string {
		return strings.ReplaceAll(body, `"name":"`+h.namespace+`/example"`, `"name":"another"`)
	})
	h.startController()
	h.create("example", "10.0.0.0/24", "")
	h.waitCondition("example", metav1.ConditionFalse, "NotConverging", "Neutron's responses do not match the requests")
	h.eventually(func() error { return errors.Join(h.isIdle(), h.hasLogged("Sync failed; retrying later")) })
	updates := 0
	for _, request := range h.neutronRequests() {
		if request.Method == http.MethodPut {
			updates++
		}
	}
	if updates == 0 || updates > 60 {
		t.Errorf("Neutron received %d updates, want 1 to 60", updates)
	}
	h.wantCounts(1, 0)
}

// TestCopiedMarker: without created_at, a duplicate is deleted whenever it was created,
// because it names another request. A copy of the owner marker names the same: it is
// reported, and not deleted, even with the network that it is a copy of.
func TestCopiedMarker(t *testing.T) {
	h := newHarness(t)
	h.rewriteAnswers(func(_ *http.Request, body string) string {
		return regexp.MustCompile(`"created_at":"[^"]*",`).ReplaceAllString(body, "")
	})
	h.settings.drift.ResyncPeriod = shortResync
	h.startController()
	h.create("example", "10.0.0.0/24", "")
	id := h.waitReady("example").Status.NetworkID
	h.postNetwork(h.namespace+"/example", h.requested("example", "another"))
	h.eventually(func() error { return h.hasCounts(1, 1) })

	copied := h.postNetwork(h.namespace+"/example", h.inNeutron().Networks[0].Description)
	h.waitCondition("example", metav1.ConditionFalse, "Ambiguous", "Neutron has 2 networks with an owner marker of")
	h.delete("example")
	h.waitGone("example")
	if all := h.inNeutron().Networks; len(all) != 1 || all[0].ID != copied {
		t.Errorf("Neutron has %+v after the deletion, want the copy %s of %s", all, copied, id)
	}
}
