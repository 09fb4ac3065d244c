package browser

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/samplecrd/network-controller/pkg/neutron/faults"
)

// path are the stages that a key passes in a sync with a request.
var path = []string{"watch", "fifo", "indexer", "handler", "queue", "worker", "desired", "actual", "plan", "apply", "server", "report"}

// The walkthrough in slow motion: each of its acts lights the stages in their order, and
// shows its journey. A user who prefers less motion gets none.
func TestWalkthrough(t *testing.T) {
	s := newSite(t, "walkthrough")
	p := s.open(t, look{width: 1440, still: true})
	p.follow(s.namespace + "/example")
	p.do(chromedp.Focus("#slow"))
	p.press(kb.ArrowDown)
	for _, act := range []struct {
		name string
		do   func()
		want string // in words, of the step
	}{
		{"create", func() { s.create("example") }, "reate network"},
		{"edit", func() { s.setGateway("example", "10.0.0.200") }, "pdate subnet"},
		{"delete", func() { s.kubectl("delete", "network", "example") }, "elete network"},
	} {
		evaluate[bool](p, `(observed.lit.length = 0, true)`)
		act.do()
		p.waitFor("the page shows the step of "+act.name, `document.querySelector('#journeys').textContent.includes(`+literal(act.want)+`)`)
		p.waitFor("no stage is lit any more", `observed.lit.includes('report') && !document.querySelector('[data-stage].lit')`)
		lit := evaluate[[]string](p, `observed.lit`)
		if missing := missingInOrder(lit, path); missing != "" {
			t.Errorf("%s lit %v: after the earlier stages, %s is missing", act.name, lit, missing)
		}
		moving := evaluate[int](p, `document.getAnimations().filter(a => a.playState === 'running' && a.effect.getComputedTiming().duration > 50).length`)
		if moving > 0 {
			t.Errorf("with prefers-reduced-motion, %d animations run", moving)
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
// entry leaves the page. The page survives a restart of the controller.
func TestBackoffAndReconnect(t *testing.T) {
	s := newSite(t, "backoff")
	p := s.open(t, look{width: 1440})
	p.follow(s.namespace + "/example")
	s.create("example")
	heal := s.failEdit("example", "10.0.0.200")
	entry := `document.querySelector('#backoff [data-key="` + s.namespace + `/example"]')`
	p.waitFor("the key waits", entry)
	p.waitFor("the page shows the error", `/503|unavailable/i.test(document.querySelector('#journeys').textContent)`)
	// A wait that begins later is longer: eventually one lasts long enough for three looks.
	p.waitFor("the time counts down", `(() => {
		const left = Number(/[\d.]+(?= ?s\b)/.exec(`+entry+`?.querySelector('.countdown').textContent ?? '')?.[0] ?? NaN), seen = (observed.left ??= []);
		if (!Number.isNaN(left) && left !== seen.at(-1)) seen.push(left);
		return seen.length >= 3 && seen.at(-3) > seen.at(-2) && seen.at(-2) > seen.at(-1);
	})()`)
	heal()
	p.waitFor("the key no longer waits", "!"+entry)
	p.waitFor("the page shows the success", `document.querySelector('#journeys').textContent.includes('Ready')`)

	s.controller.Stop(patience)
	p.waitFor("the page shows that it is not connected", `document.querySelector('#connection').dataset.state === 'lost'`)
	s.start()
	p.waitFor("the page is connected again", `document.querySelector('#connection').dataset.state === 'open'`)
	p.forgive("net::ERR_CONNECTION_REFUSED")
	p.forgive("net::ERR_INCOMPLETE_CHUNKED_ENCODING")
	evaluate[bool](p, `(observed.lit.length = 0, true)`)
	s.create("after")
	p.waitFor("the stages are lit again", `observed.lit.includes("server")`)
}

// A journey is copied as text, in the language of the page, and opened by its address. The
// text has what the page shows, and nothing of the bodies of requests and responses.
func TestJourneyAsText(t *testing.T) {
	const secret = "a-word-of-the-body"
	s := newSite(t, "journey")
	s.create("example")
	key := s.namespace + "/example"
	s.neutron.Inject(faults.Fault{Method: http.MethodPut, Status: http.StatusServiceUnavailable, Body: secret})
	s.setGateway("example", "10.0.0.200")
	s.kubectl("wait", "network", "example", "--for=condition=Ready=False", "--timeout=60s")
	for _, l := range []look{{width: 1440}, {width: 390, language: "zh-CN"}} {
		p := s.open(t, l)
		p.follow(key)
		p.waitFor("a journey has failed", `document.querySelector('#journeys > .failed:not(:first-child)')`)
		p.do(chromedp.Click("#pause"))
		// Another journey can arrive until the page is paused: from here on, it is this one.
		journey := `#journeys [data-id="` +
			evaluate[string](p, `document.querySelector('#journeys > .failed:not(:first-child)').dataset.id`) + `"]`
		p.do(chromedp.Click(journey+" summary"), chromedp.Click(journey+" .copy"))
		p.waitFor("the page says that it is copied",
			`/^(Copied|已复制)$/.test(document.querySelector('`+journey+` .copy').textContent)`)
		copied := p.paste()
		address := evaluate[string](p, `location.href`)
		id := address[strings.LastIndex(address, "/")+1:]
		for _, want := range []string{key, id, "local", "update subnet", "503", "10.0.0.200", evaluate[string](p, `document.querySelector('#journeys details[open] .queued strong').textContent`)} {
			if !strings.Contains(copied, want) {
				t.Errorf("%v: the text does not have %q:\n%s", l, want, copied)
			}
		}
		if strings.Contains(copied, secret) || strings.Contains(copied, s.server.URL) {
			t.Errorf("%v: the text has a body or an address:\n%s", l, copied)
		}

		opened := openTab(t, address, l)
		opened.waitFor("only the journey is open", `Array.from(document.querySelectorAll('#journeys details[open]'), d => d.dataset.id).join() === `+literal(id))
		gone := openTab(t, address+"0", l)
		gone.waitFor("the page says that it has no such journey", `document.querySelector('#lost').textContent.includes(`+literal(id)+`)`)
	}
}

// With something in every part, axe-core finds nothing, and a user without a mouse reaches and
// uses everything.
func TestAccessibility(t *testing.T) {
	s := newSite(t, "access")
	s.create("ready", "failing")
	s.failEdit("failing", "10.0.1.200")
	for _, l := range []look{ // each pair of width, theme and language is there
		{width: 390}, {width: 390, dark: true, language: "zh-CN"},
		{width: 820, dark: true}, {width: 820, language: "zh-CN"},
		{width: 1440, dark: true, language: "zh-CN"}, {width: 1440},
	} {
		t.Run(l.String(), func(t *testing.T) {
			p := s.open(t, l)
			p.follow(s.namespace + "/failing")
			p.waitFor("the page shows the journeys", `document.querySelectorAll('#journeys details').length > 0`)
			if got := evaluate[string](p, `document.documentElement.lang`); got == "" || !strings.HasPrefix(l.String(), got[:2]) {
				t.Errorf("the language of the page is %q", got)
			}
			for _, violation := range p.violations() {
				t.Error(violation)
			}
		})
	}
	t.Run("keyboard", func(t *testing.T) { useKeyboard(s.open(t, look{width: 1440}), s.namespace+"/failing") })
}

// useKeyboard reaches each control with the Tab key, and uses it.
func useKeyboard(p *tab, key string) {
	uses := map[string]struct {
		keys    []string
		changes string // an expression whose value the keys change
	}{
		"pause":    {[]string{kb.Enter}, `document.querySelector('#pause').ariaPressed`},
		"theme":    {[]string{kb.Enter}, `getComputedStyle(document.body).backgroundColor`},
		"language": {[]string{kb.Enter}, `document.documentElement.lang`},
		"slow":     {[]string{kb.ArrowDown}, `document.querySelector('#slow').value`},
		"follow":   {[]string{key, kb.Enter}, `String(document.querySelectorAll('#journeys details').length > 0)`},
	}
	p.do(chromedp.Evaluate[chromedp.Void](`document.activeElement.blur()`))
	for range 60 { // more than the page has stops
		p.press(kb.Tab)
		id := evaluate[string](p, `document.activeElement.id`)
		use, ok := uses[id]
		if !ok {
			continue
		}
		delete(uses, id)
		if !evaluate[bool](p, `(() => { const s = getComputedStyle(document.activeElement); return parseFloat(s.outlineWidth) > 0 && s.outlineStyle !== 'none' || s.boxShadow !== 'none' })()`) {
			p.Errorf("#%s does not show that it has the focus", id)
		}
		before := evaluate[string](p, use.changes)
		p.press(use.keys...)
		p.waitFor("#"+id+" has an effect", use.changes+" !== "+literal(before))
		if id == "pause" {
			p.press(kb.Enter) // and go on
		}
		p.do(chromedp.Focus("#" + id)) // if a choice moved it
	}
	for id := range uses {
		p.Errorf("#%s cannot be reached with the Tab key", id)
	}
	if !evaluate[bool](p, `!!document.querySelector('[aria-live],[role=status]')`) {
		p.Error("the state is drawn, but not announced")
	}
}
