package browser

import (
	_ "embed"
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
)

// fit.js defines busy, which shows a full page, and misfits, which returns what does not fit.
//
//go:embed testdata/fit.js
var fitScript string

// At any width of a window, in both languages and themes, nothing of a full page is beyond
// what contains it, no line runs through a control or a text, and no text is over another.
func TestFits(t *testing.T) {
	s := newSite(t, "fits")
	s.create("ready", "failing")
	s.failEdit("failing", "10.0.1.200")
	p := s.open(t, look{width: 1440, still: true})
	p.follow(s.namespace + "/failing")
	p.waitFor("the page shows the journeys", `document.querySelectorAll('#journeys details').length > 0`)
	p.do(chromedp.Evaluate[chromedp.Void](fitScript))
	evaluate[bool](p, `fetch('api/state').then(response => response.json()).then(busy)`)
	for _, l := range []look{{}, {dark: true}, {dark: true, language: "zh-CN"}, {language: "zh-CN"}} {
		evaluate[bool](p, fmt.Sprintf(`choose(%t, %q)`, l.dark, l.language))
		for l.width = 360; l.width <= 2560; l.width += 40 {
			p.do(chromedp.EmulateViewport(l.width, height))
			for _, misfit := range evaluate[[]string](p, `misfits()`) {
				t.Errorf("%v: %s", l, misfit)
			}
		}
	}
}
