package browser

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// path are the stages that a key passes in a sync with a request.
var path = []string{
	"watch", "fifo", "indexer", "handler", "queue", "worker", "desired", "actual", "plan", "apply", "server", "report",
}

// The walkthrough: each of its acts lights the stages in their order, and shows its journey.
// A user who prefers less motion gets none.
func TestWalkthrough(t *testing.T) {
	s := newSite(t)
	p := s.open(t, look{width: 1440, still: true}, "example")
	p.checkAct("reate network", func() { s.create("example") })
	p.checkAct("pdate subnet", func() { s.setGateway("example", "10.0.0.200") })
	p.checkAct("elete network", func() { s.Do("delete", "network", "-n", s.namespace, "example") })
}

// checkAct checks what the page shows of a change that leads to a step.
func (p *tab) checkAct(step string, do func()) {
	p.Helper()
	p.run(`observed.lit.length = 0`)
	do()
	p.waitFor("the page shows: "+step, `document.querySelector('#journeys').textContent.includes(`+literal(step)+`)`)
	p.waitFor("no stage is lit any more", `observed.lit.includes('report') && !document.querySelector('[data-stage].lit')`)
	p.checkLit(path...)
	if moving := evaluate[int](p, `document.getAnimations().filter(a =>
		a.playState === 'running' && a.effect.getComputedTiming().duration > 50).length`); moving > 0 {
		p.Errorf("with prefers-reduced-motion, %d animations run", moving)
	}
}

// checkLit checks that stages were lit in this order.
func (p *tab) checkLit(want ...string) {
	p.Helper()
	lit := evaluate[[]string](p, `observed.lit`)
	for rest := lit; len(want) > 0; want = want[1:] {
		i := slices.Index(rest, want[0])
		if i < 0 {
			p.Errorf("of %v, after the earlier stages, %s is missing", lit, want[0])
			return
		}
		rest = rest[i+1:]
	}
}

// Neutron fails, and the page counts down to the next attempt; Neutron heals, and the
// entry leaves the page. The page survives a restart of the controller.
func TestBackoffAndReconnect(t *testing.T) {
	s := newSite(t)
	p := s.open(t, look{width: 1440}, "example")
	s.create("example")
	heal := s.failEdit("example", "10.0.0.200", "")
	entry := `document.querySelector('#backoff [data-key="` + s.namespace + `/example"]')`
	p.waitFor("the key waits", entry)
	p.waitFor("the page shows the error", `/503|unavailable/i.test(document.querySelector('#journeys').textContent)`)
	// A wait that begins later is longer: eventually one lasts long enough for three looks.
	p.waitFor("the time counts down", `(() => {
		const shown = `+entry+`?.querySelector('.countdown').textContent ?? '', seen = (observed.left ??= []);
		const left = Number(/[\d.]+(?= ?s\b)/.exec(shown)?.[0] ?? NaN);
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
	p.expect("net::ERR_CONNECTION_REFUSED", "net::ERR_INCOMPLETE_CHUNKED_ENCODING")
	p.run(`observed.lit.length = 0`)
	s.create("after")
	p.waitFor("the stages are lit again", `observed.lit.includes("server")`)
}

// A failed journey is copied as text; a full page is accessible, and fits any window.
func TestFailure(t *testing.T) {
	const secret = "a-word-of-the-body"
	s := newSite(t)
	s.create("ready", "failing")
	s.failEdit("failing", "10.0.1.200", secret)
	for _, l := range []look{ // each pair of width, theme and language is there
		{width: 390}, {width: 390, dark: true, language: "zh-CN"},
		{width: 820, dark: true}, {width: 820, language: "zh-CN"},
		{width: 1440, dark: true, language: "zh-CN"}, {width: 1440},
	} {
		t.Run(l.String(), func(t *testing.T) {
			p := s.open(t, l, "failing")
			p.waitFor("the page shows the journeys", `document.querySelectorAll('#journeys details').length > 0`)
			if got := evaluate[string](p, `document.documentElement.lang`); got == "" || !strings.HasPrefix(l.String(), got[:2]) {
				t.Errorf("the language of the page is %q", got)
			}
			p.checkAccess()
			if l.dark == (l.language == "") { // in both languages
				return
			}
			text := p.copyFailure(l)
			if strings.Contains(text, secret) || strings.Contains(text, s.server.URL) {
				t.Errorf("%v: the text has a body or an address:\n%s", l, text)
			}
		})
	}
	t.Run("keyboard", func(t *testing.T) { s.open(t, look{width: 1440}, "ready").useKeyboard(s.namespace + "/failing") })
	p := s.open(t, look{width: 1440, still: true}, "failing")
	p.run(`fetch('api/state').then(response => response.json()).then(busy)`)
	for _, l := range []look{{}, {dark: true}, {dark: true, language: "zh-CN"}, {language: "zh-CN"}} {
		p.run(fmt.Sprintf(`choose(%t, %q)`, l.dark, l.language))
		p.checkFit(l, 40)
	}
}

// copyFailure copies a journey as text, in the language of the page, and opens it by its
// address. The text has what the page shows.
func (p *tab) copyFailure(l look) (text string) {
	p.Helper()
	p.waitFor("a journey has failed", `document.querySelector('#journeys > .failed:not(:first-child)')`)
	p.do(chromedp.Click("#pause"))
	// Another journey can arrive until the page is paused: from here on, it is this one.
	id := evaluate[string](p, `document.querySelector('#journeys > .failed:not(:first-child)').dataset.id`)
	journey := `#journeys [data-id="` + id + `"]`
	p.do(chromedp.Click(journey+" summary"), chromedp.Click(journey+" .copy"))
	p.waitFor("the page says that it is copied",
		`/^(Copied|已复制)$/.test(document.querySelector('`+journey+` .copy').textContent)`)
	text, address := p.paste(), evaluate[string](p, `location.href`)
	queued := evaluate[string](p, `document.querySelector('#journeys details[open] .queued strong').textContent`)
	for _, want := range []string{"/failing", id, "local", "update subnet", "503", "10.0.1.200", queued} {
		if !strings.Contains(text, want) {
			p.Errorf("%v: the text does not have %q:\n%s", l, want, text)
		}
	}
	openTab(p, address, l).waitFor("only the journey is open",
		`Array.from(document.querySelectorAll('#journeys details[open]'), d => d.dataset.id).join() === `+literal(id))
	openTab(p, address+"0", l).waitFor("the page says that it has no such journey",
		`document.querySelector('#lost').textContent.includes(`+literal(id)+`)`)
	return text
}

// useKeyboard reaches each control with the Tab key, and uses it.
func (p *tab) useKeyboard(key string) {
	type use struct {
		keys    []string
		changes string // an expression whose value the keys change
	}
	uses := map[string]use{
		"pause":    {[]string{kb.Enter}, `document.querySelector('#pause').ariaPressed`},
		"theme":    {[]string{kb.Enter}, `getComputedStyle(document.body).backgroundColor`},
		"language": {[]string{kb.Enter}, `document.documentElement.lang`},
		"follow":   {[]string{key, kb.Enter}, `location.hash`},
	}
	p.run(`document.querySelector('#follow').value = ''; document.activeElement.blur()`)
	for range 60 { // more than the page has stops
		p.press(kb.Tab)
		id := evaluate[string](p, `document.activeElement.id`)
		use, ok := uses[id]
		if !ok {
			continue
		}
		delete(uses, id)
		if !evaluate[bool](p, `(() => { const s = getComputedStyle(document.activeElement);
			return parseFloat(s.outlineWidth) > 0 && s.outlineStyle !== 'none' || s.boxShadow !== 'none' })()`) {
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
