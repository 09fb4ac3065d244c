package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// What the other tests rely on: problems of a page are noticed, and a page without
// problems has none.
func TestProblemsAreNoticed(t *testing.T) {
	tests := map[string]struct {
		script string
		want   string // contained in a problem; empty for none
	}{
		"none":             {script: `console.log('fine')`},
		"console error":    {script: `console.error('broken')`, want: "broken"},
		"console warning":  {script: `console.warn('careful')`, want: "careful"},
		"exception":        {script: `throw new Error('thrown')`, want: "thrown"},
		"rejected promise": {script: `Promise.reject(new Error('rejected'))`, want: "rejected"},
		"another host":     {script: `fetch('http://127.0.0.2/').catch(() => 0)`, want: "request to http://127.0.0.2/"},
		"missing file":     {script: `fetch('/missing')`, want: "404"},
		"policy":           {script: `document.body.innerHTML = '<p style="color: red">'`, want: "content security policy: style-src"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Security-Policy", "default-src 'self'; connect-src *; img-src data:")
				switch r.URL.Path {
				case "/":
					_, _ = fmt.Fprint(w, `<!doctype html><link rel="icon" href="data:,"><title>Test</title><body><script src="script.js"></script>`)
				case "/script.js":
					w.Header().Set("Content-Type", "text/javascript")
					_, _ = fmt.Fprint(w, test.script+";\n")
				default:
					http.NotFound(w, r)
				}
			}))
			defer server.Close()
			p := openUnchecked(t, server.URL, look{width: 800})
			if test.want == "" {
				if problems := p.problemsSoFar(); len(problems) > 0 {
					t.Errorf("problems are %q, want none", problems)
				}
				return
			}
			p.eventually("the problem is noticed: "+test.want, func() bool {
				return slices.ContainsFunc(p.problemsSoFar(), func(problem string) bool { return strings.Contains(problem, test.want) })
			})
		})
	}
}

func TestViolationsAreNoticed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, `<!doctype html><html lang="en"><link rel="icon" href="data:,"><title>Test</title><main><h1>A</h1><button></button>`)
	}))
	defer server.Close()
	violations := openTab(t, server.URL, look{width: 800}).violations()
	if len(violations) != 1 || violations[0].ID != "button-name" {
		t.Errorf("violations are %v, want one, of the button without a name", violations)
	}
}
