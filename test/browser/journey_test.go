package browser

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// path are the stages that a key passes in a sync with a request.
var path = []string{"watch", "fifo", "indexer", "handler", "queue", "worker", "desired", "actual", "plan", "apply", "neutron", "report"}

// litSince returns the stages that were lit since the last call.
func (p *tab) litSince() []string {
	p.Helper()
	return evaluate[[]string](p, `observed.lit.splice(0)`)
}

// follow follows a key as a user does, and waits until the page receives what happens
// to it.
func (p *tab) follow(key string) {
	p.Helper()
	p.do(chromedp.Click("#follow"), chromedp.Evaluate[chromedp.Void](`document.querySelector('#follow').select()`), chromedp.KeyEvent(key+kb.Enter))
	p.waitFor("the stream of the key is open", `observed.stream.url.endsWith(encodeURIComponent(`+literal(key)+`)) && observed.stream.readyState === EventSource.OPEN`)
}

// The walkthrough: each of its three acts lights the stages in their order, and shows
// its journey.
func TestWalkthrough(t *testing.T) {
	s := newSite(t, "walkthrough")
	p := s.open(t, look{width: 1440})
	p.follow(s.namespace + "/example")
	p.do(chromedp.Focus("#slow"))
	p.press(kb.ArrowDown, kb.ArrowDown)
	p.eventually("slow motion is on", func() bool {
		state, err := fetch[struct {
			Process struct{ SlowMilliseconds int }
		}](s, "/api/state")
		return err == nil && state.Process.SlowMilliseconds > 0
	})
	acts := []struct {
		name string
		do   func()
		want string // in words, of the step
	}{
		{"create", func() { s.create("example", "192.168.0.0/16") }, "reate network"},
		{"edit", func() { s.patch("example", `{"spec":{"gateway":"192.168.1.1"}}`) }, "pdate subnet"},
		{"delete", func() { s.delete("example") }, "elete network"},
	}
	for _, act := range acts {
		p.litSince()
		before := len(s.journeys("example"))
		act.do()
		p.eventually("the journey of "+act.name+" has ended", func() bool {
			journeys := s.journeys("example")
			return len(journeys) > before && journeys[0].Ended != nil && slices.ContainsFunc(journeys, func(j journey) bool { return j.Ended != nil && hasStep(j, act.want) })
		})
		p.waitFor("the page shows the step of "+act.name, `document.querySelector('#journeys').textContent.includes(`+literal(act.want)+`)`)
		p.waitFor("no stage is lit any more", `!document.querySelector('[data-stage].lit')`)
		lit := p.litSince()
		t.Logf("%s lit %s", act.name, strings.Join(lit, " "))
		if missing := missingInOrder(lit, path); missing != "" {
			t.Errorf("%s lit %v: after the earlier stages, %s is missing", act.name, lit, missing)
		}
	}
}

// missingInOrder returns the first of the wanted values that does not come after those
// before it.
func missingInOrder(got, want []string) string {
	for _, value := range want {
		i := slices.Index(got, value)
		if i < 0 {
			return value
		}
		got = got[i+1:]
	}
	return ""
}

// Neutron fails, and the page counts down to the next attempt; Neutron heals, and the
// entry leaves the page.
func TestBackoffCountsDown(t *testing.T) {
	s := newSite(t, "backoff")
	p := s.open(t, look{width: 1440})
	p.follow(s.namespace + "/example")
	s.create("example", "10.0.1.0/24")
	s.waitForReady("example", 1)
	heal := s.failEdit("example", 4)
	entry := `document.querySelector('#backoff [data-key="` + s.namespace + `/example"]')`
	p.waitFor("the key waits", entry)
	p.waitFor("the page shows the error", `/503|unavailable/i.test(document.querySelector('#journeys').textContent)`)

	// A wait that begins later is longer: eventually one lasts long enough for two looks.
	var seconds []float64
	p.eventually("the time counts down", func() bool {
		text := evaluate[string](p, entry+`?.querySelector('.countdown').textContent ?? ''`)
		if left, ok := secondsOf(text); ok && (len(seconds) == 0 || left != seconds[len(seconds)-1]) {
			seconds = append(seconds, left)
		}
		n := len(seconds)
		return n >= 3 && seconds[n-3] > seconds[n-2] && seconds[n-2] > seconds[n-1]
	})
	t.Logf("it counted %v", seconds)
	p.waitFor("the stage backoff was lit", `observed.lit.includes('backoff')`)
	heal()
	p.waitFor("the key no longer waits", "!"+entry)
	p.waitFor("the page shows the success", `document.querySelector('#journeys').textContent.includes('Ready')`)
}

// secondsOf returns the first number of seconds in a text.
func secondsOf(text string) (float64, bool) {
	match := regexp.MustCompile(`(\d+(?:\.\d+)?) ?s\b`).FindStringSubmatch(text)
	if match == nil {
		return 0, false
	}
	seconds, err := strconv.ParseFloat(match[1], 64)
	return seconds, err == nil
}

// The page reconnects to a controller that was restarted, and shows its state.
func TestReconnect(t *testing.T) {
	s := newSite(t, "reconnect")
	p := s.open(t, look{width: 1440})
	s.create("before", "10.0.0.0/24")
	s.waitForReady("before", 1)
	s.stop()
	p.waitFor("the page shows that it is not connected", `document.querySelector('#connection').dataset.state === 'lost'`)
	s.start()
	p.waitFor("the page is connected again", `document.querySelector('#connection').dataset.state === 'open'`)
	p.forgive("net::ERR_CONNECTION_REFUSED")
	p.forgive("net::ERR_INCOMPLETE_CHUNKED_ENCODING")
	p.litSince()
	s.create("after", "10.0.1.0/24")
	p.follow(s.namespace + "/after")
	p.waitFor("the page shows a journey of the new process", `document.querySelector('#journeys').textContent.includes('Ready')`)
	p.waitFor("the stages are lit again", `observed.lit.includes('neutron')`)
}

// hasStep reports whether a journey has a step whose words contain a text.
func hasStep(j journey, text string) bool {
	return slices.ContainsFunc(j.Steps, func(step struct{ Text string }) bool { return strings.Contains(step.Text, text) })
}
