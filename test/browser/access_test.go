package browser

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/samplecrd/network-controller/pkg/neutron/faults"
)

// The widths of a phone, a tablet and a laptop.
var widths = []int64{390, 820, 1440}

// newBusySite returns a site whose page has something in every part: a Network that is
// ready, and one whose edit fails.
func newBusySite(t testing.TB, namespace string) *site {
	t.Helper()
	s := newSite(t, namespace)
	s.create("ready", "10.0.0.0/24")
	s.create("failing", "10.0.1.0/24")
	s.waitForReady("", 2)
	s.failEdit("failing", 3)
	return s
}

// failEdit lets edits of a Network fail in Neutron, edits it, and waits for some
// failures.
func (s *site) failEdit(name string, failures int) (heal func()) {
	s.Helper()
	network, err := s.networks.Get(s.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	heal = s.neutron.Inject(faults.Fault{Method: http.MethodPut, Path: network.Status.SubnetID, Status: http.StatusServiceUnavailable})
	s.patch(name, `{"spec":{"gateway":"10.0.1.200"}}`)
	s.eventually("the edit has failed", func() error {
		if journeys := s.journeys(name); len(journeys) > 0 && journeys[0].Retry != nil && journeys[0].Retry.Failures >= failures {
			return nil
		}
		return errNotYet
	})
	return heal
}

// At each width, in both themes and both languages, axe-core finds nothing, and nothing
// is wider than the window.
func TestAccessibility(t *testing.T) {
	s := newBusySite(t, "access")
	for _, language := range []string{"en-US", "zh-CN"} {
		for _, dark := range []bool{false, true} {
			for _, width := range widths {
				l := look{width: width, dark: dark, language: language}
				t.Run(l.String(), func(t *testing.T) {
					p := s.open(t, l)
					p.follow(s.namespace + "/failing")
					p.waitFor("the page shows the journeys", `document.querySelectorAll('#journeys details').length > 0`)
					if got, want := evaluate[string](p, `document.documentElement.lang`), language[:2]; !strings.HasPrefix(got, want) {
						t.Errorf("the language of the page is %q, want %s", got, want)
					}
					for _, violation := range p.violations() {
						t.Error(violation)
					}
					if over := evaluate[float64](p, `document.scrollingElement.scrollWidth - innerWidth`); over > 0 {
						t.Errorf("the page is %.0f pixels wider than the window: %s", over, evaluate[string](p, widest))
					}
				})
			}
		}
	}
}

// widest returns the elements that reach beyond the window.
const widest = `[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1)
	.slice(0, 5).map(e => e.tagName + '#' + e.id + '.' + e.className).join(' ')`

// Without a mouse, a user reaches and uses everything.
func TestKeyboard(t *testing.T) {
	s := newBusySite(t, "keyboard")
	p := s.open(t, look{width: 1440})
	uses := map[string]struct {
		keys    []string
		changes string // an expression whose value the keys change
	}{
		"pause":    {keys: []string{kb.Enter}, changes: `document.querySelector('#pause').ariaPressed`},
		"theme":    {keys: []string{kb.Enter}, changes: `getComputedStyle(document.body).backgroundColor`},
		"language": {keys: []string{kb.Enter}, changes: `document.documentElement.lang`},
		"slow":     {keys: []string{kb.ArrowDown}, changes: `fetch('/api/state').then(response => response.json()).then(state => String(state.process.slowMilliseconds))`},
		"follow":   {keys: []string{s.namespace + "/failing", kb.Enter}, changes: `String(document.querySelectorAll('#journeys details').length > 0)`},
	}
	p.do(chromedp.Evaluate[chromedp.Void](`document.activeElement.blur()`))
	reached := map[string]bool{}
	for range 60 { // more than the page has stops
		p.press(kb.Tab)
		id := evaluate[string](p, `document.activeElement.id`)
		use, ok := uses[id]
		if !ok || reached[id] {
			continue
		}
		reached[id] = true
		if !evaluate[bool](p, `(() => { const s = getComputedStyle(document.activeElement); return parseFloat(s.outlineWidth) > 0 && s.outlineStyle !== 'none' || s.boxShadow !== 'none' })()`) {
			t.Errorf("#%s does not show that it has the focus", id)
		}
		before := evaluate[string](p, use.changes)
		p.press(use.keys...)
		p.eventually("#"+id+" has an effect", func() bool { return evaluate[string](p, use.changes) != before })
		if id == "pause" {
			p.press(kb.Enter) // and go on
		}
		p.do(chromedp.Focus("#" + id)) // if a choice moved it
	}
	for id := range uses {
		if !reached[id] {
			t.Errorf("#%s cannot be reached with the Tab key", id)
		}
	}
	// The state is announced, and not only drawn.
	live := evaluate[[]string](p, `[...document.querySelectorAll('[aria-live],[role=status],[role=log],[role=alert]')].map(e => e.id)`)
	if len(live) == 0 || !slices.ContainsFunc(live, func(id string) bool { return id != "" }) {
		t.Errorf("the live regions are %v, want some", live)
	}
}

// A user who prefers less motion gets none.
func TestReducedMotion(t *testing.T) {
	s := newSite(t, "motion")
	p := s.open(t, look{width: 1440, still: true})
	s.create("example", "10.0.0.0/24")
	s.waitForReady("example", 1)
	p.waitFor("a stage was lit", `observed.lit.includes('neutron')`)
	moving := evaluate[[]string](p, `document.getAnimations().filter(a => a.playState === 'running' && a.effect.getComputedTiming().duration > 50).map(a => a.effect.target.outerHTML)`)
	if len(moving) > 0 {
		t.Errorf("with prefers-reduced-motion, %d animations run: %.300s", len(moving), moving)
	}
}
