package browser

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
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
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/samplecrd/network-controller/test/internal/process"
)

// patience limits anything that should take a second.
const patience = time.Minute

// tab is a tab, with nothing stored of other tabs.
type tab struct {
	testing.TB
	ctx  context.Context
	host string // the only one that the page may send requests to

	mu       sync.Mutex
	problems []string // errors and warnings, and requests to other hosts
}

// startBrowser starts Chromium with an empty profile. It ends with the returned
// function.
func startBrowser(profile string) (browser context.Context, stop func(), err error) {
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

// height is that of all windows.
const height = 900

// openTab opens a page. When the test ends, no problem must have occurred.
func openTab(t testing.TB, address string, l look) *tab {
	t.Helper()
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	p := &tab{TB: t, host: target.Host}
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	p.ctx = ctx
	if err := chromedp.Listen(ctx, p.observe); err != nil {
		t.Fatalf("opening a tab: %v", err)
	}
	media := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "light"}, {Name: "prefers-reduced-motion", Value: "no-preference"}}
	if l.dark {
		media[0].Value = "dark"
	}
	if l.still {
		media[1].Value = "reduce"
	}
	p.do(func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, target, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: instruments})
		_, err2 := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: media})
		agent, err3 := chromedp.Evaluate[string](`navigator.userAgent`)(ctx, target)
		_, err4 := cdp.Call(ctx, target, emulation.SetUserAgentOverride, emulation.SetUserAgentOverrideParams{UserAgent: agent, AcceptLanguage: cmp.Or(l.language, "en-US")})
		return chromedp.Void{}, errors.Join(err, err2, err3, err4)
	}, chromedp.EmulateViewport(l.width, height), chromedp.Navigate(address))
	t.Cleanup(func() {
		for _, problem := range p.problemsSoFar() {
			t.Errorf("on the page: %s", problem)
		}
	})
	return p
}

// instruments observe the page from its beginning: which stages are lit, and what the
// content security policy stops.
const instruments = `
window.observed = { lit: [], violations: [], stream: null };
window.EventSource = class extends EventSource {
	constructor(...args) { super(...args); observed.stream = this; }
};
document.addEventListener('securitypolicyviolation', e => observed.violations.push(e.violatedDirective + ' ' + e.blockedURI));
new MutationObserver(changes => {
	for (const { target, oldValue } of changes) {
		if (target.dataset.stage && target.classList.contains('lit') && !(oldValue || '').split(/\s+/).includes('lit'))
			observed.lit.push(target.dataset.stage);
	}
}).observe(document, { subtree: true, attributeFilter: ['class'], attributeOldValue: true });
`

// observe collects the problems. Chromium calls it for each event.
func (p *tab) observe(event any) {
	problem := ""
	switch event := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if event.Type == "error" || event.Type == "warning" || event.Type == "assert" {
			words := []string{"console." + string(event.Type)}
			for _, arg := range event.Args {
				words = append(words, string(arg.Value), arg.Description)
			}
			problem = strings.Join(words, " ")
		}
	case *runtime.EventExceptionThrown:
		problem = "exception: " + event.ExceptionDetails.Text
		if e := event.ExceptionDetails.Exception; e != nil {
			problem += " " + e.Description
		}
	case *log.EventEntryAdded:
		if event.Entry.Level == "error" || event.Entry.Level == "warning" {
			problem = fmt.Sprintf("%s: %s %s", event.Entry.Source, event.Entry.Text, event.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		target, err := url.Parse(event.Request.URL)
		if err != nil || target.Host != p.host && target.Scheme != "data" && target.Scheme != "blob" {
			problem = "request to " + event.Request.URL
		}
	}
	if problem != "" {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.problems = append(p.problems, problem)
	}
}

// problemsSoFar returns the problems, with violations of the content security policy.
func (p *tab) problemsSoFar() []string {
	violations := evaluate[[]string](p, `observed.violations`)
	p.mu.Lock()
	defer p.mu.Unlock()
	problems := slices.Clone(p.problems)
	for _, violation := range violations {
		problems = append(problems, "content security policy: "+violation)
	}
	return problems
}

// forgive removes the problems that a test caused on purpose.
func (p *tab) forgive(contains string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problems = slices.DeleteFunc(p.problems, func(problem string) bool { return strings.Contains(problem, contains) })
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
	p.do(chromedp.Evaluate[chromedp.Void](`document.body.append(document.createElement('textarea'))`), chromedp.Focus("textarea"))
	p.do(func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, target, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: "keyDown", Commands: []string{"paste"}})
		return chromedp.Void{}, err
	})
	return evaluate[string](p, `document.querySelector('textarea').value`)
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
	eventually(p, what, func() error {
		if !evaluate[bool](p, "!!("+expression+")") {
			return errors.New("the page:\n" + evaluate[string](p, `document.body.innerText`))
		}
		return nil
	})
}

// follow follows a key as a user does, and waits until the page receives what happens
// to it.
func (p *tab) follow(key string) {
	p.Helper()
	p.do(chromedp.Click("#follow"), chromedp.Evaluate[chromedp.Void](`document.querySelector('#follow').select()`), chromedp.KeyEvent(key+kb.Enter))
	p.waitFor("the stream of the key is open", `observed.stream.url.endsWith(encodeURIComponent(`+literal(key)+`)) && observed.stream.readyState === EventSource.OPEN`)
}

// eventually waits until a check passes.
func eventually(t testing.TB, what string, check func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := process.Poll(ctx, 50*time.Millisecond, func(context.Context) (bool, error) { return check() == nil, nil })
	if err != nil {
		t.Fatalf("waiting until %s: %v: %v", what, err, check())
	}
}

// literal returns a text as JavaScript.
func literal(text string) string {
	encoded, _ := json.Marshal(text) // a string
	return string(encoded)
}
