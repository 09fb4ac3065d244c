package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/samplecrd/network-controller/hack/local"
	"github.com/samplecrd/network-controller/pkg/debugpage"
)

type journey = debugpage.Journey

// request sends a request to the page, and decodes the answer if it is JSON.
func (t *tour) request(method, path, body string, answer any) error {
	request, err := http.NewRequestWithContext(t.ctx, method, strings.TrimSuffix(t.page, "/")+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("reading the debug page: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("reading %s of the debug page: %w", path, err)
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("reading %s of the debug page: %s: %s", path, response.Status, bytes.TrimSpace(text))
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(text, answer)
}

// slowDown makes each stage hold a key.
func (t *tour) slowDown(each time.Duration) error {
	return t.request(http.MethodPost, "/api/slow", fmt.Sprintf(`{"milliseconds":%d}`, each.Milliseconds()), nil)
}

// untilSynced waits until the controller has observed the last edit, and shows the
// journeys since a time.
func (t *tour) untilSynced(since time.Time) error {
	err := local.Eventually(t.ctx, func() error {
		text, err := t.cluster.Kubectl(t.ctx, "get", "network", example, "-o", `jsonpath={.metadata.generation} {.status.conditions[?(@.type=="Ready")].observedGeneration} {.status.conditions[?(@.type=="Ready")].status}`)
		if err != nil {
			return err
		}
		fields := strings.Fields(string(text))
		if len(fields) != 3 || fields[0] != fields[1] || fields[2] != "True" {
			return fmt.Errorf("the Network is not ready: generation, observed generation and Ready are %s", text)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return t.untilJourney(since, func(j journey) bool { return j.Ended != nil && !j.Failed })
}

// untilJourney waits until the newest journey is one that a function accepts, and shows
// all that ended since a time.
func (t *tour) untilJourney(since time.Time, accept func(journey) bool) error {
	var journeys []journey
	err := local.Eventually(t.ctx, func() error {
		journeys = nil // decoding into earlier ones would keep what a new one lacks
		if err := t.request(http.MethodGet, "/api/journeys?key="+url.QueryEscape(key), "", &journeys); err != nil {
			return err
		}
		journeys = slices.DeleteFunc(journeys, func(j journey) bool { return j.Ended == nil || j.Ended.Before(since) })
		if len(journeys) == 0 || !accept(journeys[0]) {
			return errors.New("the journey has not ended yet")
		}
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Printf("\n%s\n", t.say(whatMoved))
	events := 0
	for _, j := range slices.Backward(journeys) {
		fmt.Print(t.describe(j))
		events += j.CauseCount
	}
	if events > len(journeys) {
		fmt.Printf("  "+t.say(merged)+"\n", events, len(journeys))
	}
	return nil
}

// describe returns a journey in words.
func (t *tour) describe(j journey) string {
	var text strings.Builder
	line := func(label words, format string, args ...any) {
		fmt.Fprintf(&text, "  %s  %s\n", t.say(label), fmt.Sprintf(format, args...))
	}
	var causes []string
	for _, c := range j.Causes {
		cause := c.Type
		if details := strings.Trim(c.Changed+", resourceVersion "+c.ResourceVersion, ", "); c.ResourceVersion != "" {
			cause += " (" + details + ")"
		}
		causes = append(causes, cause)
	}
	line(labelEvents, "%s", strings.Join(causes, "; "))
	if j.Taken != nil {
		line(labelQueue, t.say(waited), rounded(j.Taken.Sub(j.Queued)), j.Worker)
	}
	line(labelDesired, "%s", j.Desired)
	line(labelActual, "%s", j.Actual)
	for _, s := range j.Steps {
		line(labelStep, "%s", s.Text)
		for _, r := range s.Requests {
			line(labelRequest, "%s: %s, %d, %.1f ms", r.Server, r.Operation, r.Code, r.Milliseconds)
		}
	}
	line(labelOutcome, t.say(after), j.Outcome, rounded(j.Ended.Sub(j.Queued)))
	if j.Retry != nil {
		line(labelRetry, t.say(retryIn), rounded(j.Retry.Until.Sub(j.Retry.From)), j.Retry.Failures)
	}
	return text.String() + "\n"
}

// rounded returns a duration in a readable precision.
func rounded(d time.Duration) time.Duration {
	if d < time.Millisecond {
		return d.Round(time.Microsecond)
	}
	return d.Round(time.Millisecond)
}
