package browser

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// recording is the page of docs/watch, which plays recording.js without a controller.
func recording() string { return filepath.Join(root, "docs", "watch") }

// serve serves a folder until the test ends.
func serve(t *testing.T, folder string) (address string) {
	server := httptest.NewServer(http.FileServer(http.Dir(folder)))
	t.Cleanup(server.Close)
	return server.URL
}

// The recording plays to its end from a file. TestRecordingSteps has a server of files.
func TestRecordingPlays(t *testing.T) {
	p := openTab(t, "file://"+filepath.Join(recording(), "index.html"), look{width: 1440})
	p.waitFor("it plays", `position.value > 0 && document.querySelector('#connection').dataset.state === 'open'`)
	p.run(`speed.value = 4; speed.dispatchEvent(new Event('change'))`)
	p.waitFor("the last step plays", `document.querySelector('#steps li:last-child [aria-current]')`)
	p.waitFor("it has ended", `position.value === position.max`)
	p.checkLit(append(path, "backoff", "worker")...)
	p.waitFor("the deletion has its journey", `document.querySelector('#journeys .outcome').textContent === 'Deleted'`)
}

// A recording that is paused stands still. A step of the tour leads to what the page showed
// then, forward and back, with the words of that step; all of it fits and is accessible.
func TestRecordingSteps(t *testing.T) {
	for _, l := range []look{{width: 1440, dark: true}, {width: 390, language: "zh-CN"}} {
		t.Run(l.String(), func(t *testing.T) {
			p := openTab(t, serve(t, recording()), l)
			p.waitFor("a key is on its way", `observed.lit.includes('fifo')`)
			p.do(chromedp.Click("#pause"))
			for _, step := range []struct {
				number int
				want   string // what the page shows then
			}{
				{6, `document.querySelector('#backoff [data-key="default/example-network"] .countdown').textContent &&
					document.querySelector('#journeys .failed')`},
				{1, `!document.querySelector('#backoff li') && !document.querySelector('#journeys details')`},
				{5, `!document.querySelector('#backoff li') &&
					document.querySelectorAll('#journeys details:not(.failed)').length >= 4`},
			} {
				before := evaluate[string](p, `lesson.textContent`)
				p.do(chromedp.Click(fmt.Sprintf("#steps li:nth-child(%d) button", step.number)))
				p.waitFor("the page is at the step", fmt.Sprintf(
					`%s && document.querySelector('#steps li:nth-child(%d) [aria-current]') && ![%s, ''].includes(lesson.textContent)`,
					step.want, step.number, literal(before)))
			}
			// A hundred frames are longer than what a page needs for anything.
			const shows = `Array.from(document.querySelectorAll('#time, #headline, [data-stage], #lanes'),
				part => part.innerText).join()`
			before := evaluate[string](p, shows)
			after := evaluate[string](p, `(async () => {
				for (let frame = 0; frame < 100; frame++) await new Promise(requestAnimationFrame);
				return `+shows+`;
			})()`)
			if after != before {
				t.Errorf("the page changes during a pause, from\n%s\nto\n%s", before, after)
			}
			p.checkAccess()
			p.checkFit(l, 200)
			at := evaluate[string](p, `position.value`)
			p.do(chromedp.Click("#pause"))
			p.waitFor("it plays on", `position.value !== `+literal(at))
		})
	}
}

// If the recording is broken or of another version, the page says so.
func TestRecordingIsBroken(t *testing.T) {
	for name, script := range map[string]string{
		"no script": "{", "other format": `globalThis.recording = {"format": 0}`,
		"other states": `globalThis.recording = {"format": 4, "began": "2026-01-01T00:00:00Z", "steps": [],
			"frames": [{"at": 0, "state": {}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			err := os.CopyFS(folder, os.DirFS(recording()))
			broken := os.WriteFile(filepath.Join(folder, "recording.js"), []byte(script), 0o600)
			if err := errors.Join(err, broken); err != nil {
				t.Fatal(err)
			}
			p := openTab(t, serve(t, folder), look{width: 820})
			p.waitFor("the page says that it has no recording",
				`document.querySelector('#connection').dataset.state === 'broken' && headline.textContent.includes('make recording')`)
			p.expect("SyntaxError", "cannot be played")
		})
	}
}
