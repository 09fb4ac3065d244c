package browser

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/samplecrd/network-controller/test/internal/process"
)

const (
	// patience limits anything that should take a second.
	patience = time.Minute
	// height is that of all windows.
	height = 900
)

// tab is a tab, with nothing stored of other tabs.
type tab struct {
	testing.TB
	ctx context.Context

	mu       sync.Mutex
	problems []string // errors and warnings, but for those that contain
	expected []string
}

// startBrowser starts Chromium with an empty profile. It finds no other host than this one,
// and ends with the returned function.
func startBrowser(chromium, profile string) (browser context.Context, stop func(), err error) {
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium),
		chromedp.UserDataDir(profile),
		chromedp.WindowSize(1440, height),
		chromedp.Flag("js-flags", "--expose-gc"),
		chromedp.Flag("enable-precise-memory-info", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
	)
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // root has none
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	browser, _ = chromedp.NewContext(allocator)
	if err := chromedp.Do(browser); err != nil {
		stop()
		return nil, nil, fmt.Errorf("starting Chromium: %w", err)
	}
	return browser, stop, nil
}

// look is what a user has set in the browser.
type look struct {
	width    int64
	dark     bool
	language string // such as zh-CN; defaults to en-US
	still    bool   // the user prefers less motion
}

func (l look) String() string {
	theme := "light"
	if l.dark {
		theme = "dark"
	}
	return fmt.Sprintf("%s %s %d", cmp.Or(l.language, "en-US"), theme, l.width)
}

// openTab opens a page. When the test ends, no problem must have occurred.
func openTab(t testing.TB, address string, l look) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	p := &tab{TB: t, ctx: ctx}
	if err := chromedp.Listen(ctx, p.observe); err != nil {
		t.Fatalf("opening a tab: %v", err)
	}
	media := []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: "light"}, {Name: "prefers-reduced-motion", Value: "no-preference"},
	}
	if l.dark {
		media[0].Value = "dark"
	}
	if l.still {
		media[1].Value = "reduce"
	}
	p.do(func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, target, page.AddScriptToEvaluateOnNewDocument,
			page.AddScriptToEvaluateOnNewDocumentParams{Source: instruments + fitScript})
		_, err2 := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: media})
		agent, err3 := chromedp.Evaluate[string](`navigator.userAgent`)(ctx, target)
		_, err4 := cdp.Call(ctx, target, emulation.SetUserAgentOverride,
			emulation.SetUserAgentOverrideParams{UserAgent: agent, AcceptLanguage: cmp.Or(l.language, "en-US")})
		return chromedp.Void{}, errors.Join(err, err2, err3, err4)
	}, chromedp.EmulateViewport(l.width, height), chromedp.Navigate(address))
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, problem := range p.problems {
			if !slices.ContainsFunc(p.expected, func(text string) bool { return strings.Contains(problem, text) }) {
				t.Errorf("on the page: %s", problem)
			}
		}
	})
	return p
}

// instruments observe the page from its beginning: which stages are lit.
const instruments = `
window.observed = { lit: [], stream: null };
window.EventSource = class extends EventSource {
	constructor(...args) { super(...args); observed.stream = this; }
};
new MutationObserver(changes => {
	for (const { target, oldValue } of changes) {
		if (target.dataset.stage && target.classList.contains('lit') && !(oldValue || '').split(/\s+/).includes('lit'))
			observed.lit.push(target.dataset.stage);
	}
}).observe(document, { subtree: true, attributeFilter: ['class'], attributeOldValue: true });
`

// observe collects the problems. Chromium calls it for each event. It logs what a content
// security policy stops, and requests to other hosts fail.
func (p *tab) observe(event any) {
	var problem any
	switch event := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if slices.Contains([]string{"error", "warning", "assert"}, string(event.Type)) {
			problem = event.Args
		}
	case *runtime.EventExceptionThrown:
		problem = event.ExceptionDetails
	case *log.EventEntryAdded:
		if event.Entry.Level == "error" || event.Entry.Level == "warning" {
			problem = event.Entry
		}
	}
	if problem != nil {
		text, _ := json.Marshal(problem) // which came as JSON
		p.mu.Lock()
		defer p.mu.Unlock()
		p.problems = append(p.problems, string(text))
	}
}

// expect ignores problems that a test causes on purpose.
func (p *tab) expect(problems ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expected = problems
}

func (p *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		p.Fatal(err)
	}
}

// press presses keys, such as kb.Tab, or types a text.
func (p *tab) press(keys ...string) {
	p.Helper()
	for _, key := range keys {
		p.do(chromedp.KeyEvent(key))
	}
}

// paste returns the text in the clipboard.
func (p *tab) paste() string {
	p.Helper()
	p.run(`document.body.append(document.createElement('textarea'))`)
	p.do(chromedp.Focus("textarea"), func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, target, input.DispatchKeyEvent,
			input.DispatchKeyEventParams{Type: "keyDown", Commands: []string{"paste"}})
		return chromedp.Void{}, err
	})
	return evaluate[string](p, `document.querySelector('textarea').value`)
}

// run runs JavaScript.
func (p *tab) run(script string) {
	p.Helper()
	p.do(chromedp.Evaluate[chromedp.Void](script, chromedp.EvalAwaitPromise))
}

// evaluate returns the value of a JavaScript expression, or of its promise.
func evaluate[T any](p *tab, expression string) T {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.Fatalf("evaluating %s: %v", strings.TrimSpace(expression[:min(len(expression), 200)]), err)
	}
	return value
}

// waitFor waits until a JavaScript expression is true.
func (p *tab) waitFor(what, expression string) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	is := func(context.Context) (bool, error) { return evaluate[bool](p, "!!("+expression+")"), nil }
	if err := process.Poll(ctx, 50*time.Millisecond, is); err != nil {
		p.Fatalf("waiting until %s: %v; the page:\n%s", what, err, evaluate[string](p, `document.body.innerText`))
	}
}

// follow follows a key as a user does, and waits until the page receives what happens
// to it.
func (p *tab) follow(key string) {
	p.Helper()
	p.do(chromedp.Click("#follow"))
	p.run(`document.querySelector('#follow').select()`)
	p.press(key + kb.Enter)
	p.waitFor("the stream of the key is open", `observed.stream.url.endsWith(encodeURIComponent(`+literal(key)+`)) &&
		observed.stream.readyState === EventSource.OPEN`)
}

// checkAccess checks that axe-core finds nothing.
func (p *tab) checkAccess() {
	p.Helper()
	script, err := axe()
	if err != nil {
		p.Fatal(err)
	}
	p.run(script)
	for _, violation := range evaluate[[]string](p, `axe.run().then(result => result.violations.map(violation =>
		[violation.help, ...violation.nodes.flatMap(node => [node.html, node.failureSummary])].join('\n')))`) {
		p.Error(violation)
	}
}

// fit.js defines busy, which shows a full page, and misfits, which returns what does not fit.
//
//go:embed testdata/fit.js
var fitScript string

// checkFit checks that everything fits, in windows of some widths.
func (p *tab) checkFit(l look, step int64) {
	p.Helper()
	for l.width = 360; l.width <= 2560; l.width += step {
		p.do(chromedp.EmulateViewport(l.width, height))
		for _, misfit := range evaluate[[]string](p, `misfits()`) {
			p.Errorf("%v: %s", l, misfit)
		}
	}
}

// literal returns a text as JavaScript.
func literal(text string) string {
	encoded, _ := json.Marshal(text) // a string
	return string(encoded)
}
