package browser

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// The recording of docs/watch plays to its end without a controller, from a server of files
// and from a file, in both languages.
func TestRecordingPlays(t *testing.T) {
	for address, l := range map[string]look{
		serveFiles(t): {width: 1440, language: "zh-CN", dark: true},
		"file://" + filepath.Join(root, "docs", "watch", "index.html"): {width: 1440},
	} {
		t.Run(l.String(), func(t *testing.T) {
			t.Parallel()
			p := openTab(t, address, l)
			p.waitFor("it plays", `position.value > 0 && document.querySelector('#connection').dataset.state === 'open'`)
			evaluate[bool](p, `(speed.value = 4, speed.dispatchEvent(new Event('change')))`)
			p.waitFor("the last step plays", `document.querySelector('#steps li:last-child [aria-current]')`)
			p.waitFor("it has ended", `position.value === position.max`)
			if missing := missingInOrder(evaluate[[]string](p, `observed.lit`), append(path, "backoff", "queue", "worker", "report")); missing != "" {
				t.Errorf("after the earlier stages, %s was not lit", missing)
			}
			p.waitFor("the deletion has its journey", `document.querySelector('#journeys .outcome').textContent === 'Deleted'`)
		})
	}
}

// serveFiles serves docs/watch until the test ends.
func serveFiles(t *testing.T) (address string) {
	server := httptest.NewServer(http.FileServer(http.Dir(filepath.Join(root, "docs", "watch"))))
	t.Cleanup(server.Close)
	return server.URL
}

// A recording that is paused stands still. A step of the tour leads to what the page showed
// then, forward and back, with the words of that step; all of it fits and is accessible.
func TestRecordingSteps(t *testing.T) {
	for _, l := range []look{{width: 1440, dark: true}, {width: 390, language: "zh-CN"}} {
		t.Run(l.String(), func(t *testing.T) {
			p := openTab(t, serveFiles(t), l)
			p.waitFor("a key is on its way", `observed.lit.includes('fifo')`)
			p.do(chromedp.Click("#pause"))
			for _, step := range []struct {
				number int
				want   string // what the page shows then
			}{
				{6, `document.querySelector('#backoff [data-key="default/example-network"] .countdown').textContent && document.querySelector('#journeys .failed')`},
				{1, `!document.querySelector('#backoff li') && !document.querySelector('#journeys details')`},
				{5, `!document.querySelector('#backoff li') && document.querySelectorAll('#journeys details:not(.failed)').length >= 4`},
			} {
				before := evaluate[string](p, `lesson.textContent`)
				p.do(chromedp.Click("#steps li:nth-child(" + string(rune('0'+step.number)) + ") button"))
				p.waitFor("the page is at the step", step.want)
				shown := evaluate[string](p, `Array.from(document.querySelectorAll('#steps li')).findIndex(li => li.querySelector('[aria-current]')) + 1 + lesson.textContent`)
				if shown[0] != byte('0'+step.number) || shown[1:] == before || shown[1:] == "" {
					t.Errorf("step %d shows the words %q", step.number, shown)
				}
			}
			// A hundred frames are longer than what a page needs for anything.
			const shows = `Array.from(document.querySelectorAll('#time, #headline, [data-stage], #lanes'), part => part.innerText).join()`
			before := evaluate[string](p, shows)
			after := evaluate[string](p, `(async () => {
				for (let frame = 0; frame < 100; frame++) await new Promise(requestAnimationFrame);
				return `+shows+`;
			})()`)
			if after != before {
				t.Errorf("the page changes during a pause, from\n%s\nto\n%s", before, after)
			}
			for _, violation := range p.violations() {
				t.Error(violation)
			}
			p.do(chromedp.Evaluate[chromedp.Void](fitScript))
			for l.width = 360; l.width <= 2560; l.width += 200 {
				p.do(chromedp.EmulateViewport(l.width, height))
				for _, misfit := range evaluate[[]string](p, `misfits()`) {
					t.Errorf("%v: %s", l, misfit)
				}
			}
			at := evaluate[string](p, `position.value`)
			p.do(chromedp.Click("#pause"))
			p.waitFor("it plays on", `position.value !== `+literal(at))
		})
	}
}

// If the recording is missing, broken or of another version, the page says so.
func TestRecordingIsBroken(t *testing.T) {
	files := http.FileServer(http.Dir(filepath.Join(root, "docs", "watch")))
	for name, script := range map[string]string{
		"missing": "", "no script": "{", "other format": `globalThis.recording = {"format": 0}`,
		"other states": `globalThis.recording = {"format": 4, "began": "2026-01-01T00:00:00Z", "steps": [], "frames": [{"at": 0, "state": {}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			served := http.NewServeMux()
			served.Handle("/", files)
			served.HandleFunc("/recording.js", func(w http.ResponseWriter, request *http.Request) {
				if script == "" {
					http.NotFound(w, request)
					return
				}
				w.Header().Set("Content-Type", "text/javascript")
				_, _ = w.Write([]byte(script))
			})
			server := httptest.NewServer(served)
			t.Cleanup(server.Close)
			p := openTab(t, server.URL, look{width: 820})
			p.waitFor("the page says that it has no recording", `document.querySelector('#connection').dataset.state === 'broken' && headline.textContent.includes('make recording')`)
			for _, expected := range []string{"404", "Refused to execute", "SyntaxError", "cannot be played"} {
				p.forgive(expected)
			}
		})
	}
}
