package watchdog_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"github.com/samplecrd/network-controller/pkg/watchdog"
)

// TestCheck: work is stuck if it makes no progress for longer than the limit, until
// it ends.
func TestCheck(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	clock := testingclock.NewFakePassiveClock(time.Now())
	w := watchdog.New(clock)
	isStuck := func() bool {
		err := w.Check(time.Minute)
		if err != nil && err.Error() != "the sync of default/example is stuck: no progress for 2m0s" {
			t.Errorf("Check() = %v", err)
		}
		return err != nil
	}
	ctx, end := w.Watch(t.Context(), "the sync of default/example")
	clock.SetTime(clock.Now().Add(time.Minute))
	if isStuck() {
		t.Error("work is stuck at the limit")
	}

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := watchdog.Transport(http.DefaultTransport).RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	clock.SetTime(clock.Now().Add(time.Minute))
	if isStuck() {
		t.Error("a request is no progress")
	}

	watchdog.Progress(t.Context()) // of other work
	clock.SetTime(clock.Now().Add(time.Minute))
	if !isStuck() {
		t.Error("work without progress is not stuck")
	}
	end()
	if isStuck() {
		t.Error("work that has ended is stuck")
	}
}
