package reconcile

import (
	"flag"
	"fmt"
	"io"
	"testing"
)

// TestNamespaces: the flag alone means all namespaces, and with a value these.
func TestNamespaces(t *testing.T) {
	for argument, want := range map[string]string{
		"":            "a: false, b: false",
		"-adopt":      "a: true, b: true",
		"-adopt=true": "a: true, b: true",
		"-adopt=b":    "a: false, b: true",
		"-adopt=a,b":  "a: true, b: true",
		"-adopt=a b":  `invalid boolean value "a b" for -adopt: "a b" is not a valid namespace name: `,
		"-adopt=":     `invalid boolean value "" for -adopt: "" is not a valid namespace name: `,
	} {
		var namespaces Namespaces
		flags := flag.NewFlagSet("", flag.ContinueOnError)
		flags.SetOutput(io.Discard)
		flags.Var(&namespaces, "adopt", "")
		var arguments []string
		if argument != "" {
			arguments = []string{argument}
		}
		err := flags.Parse(arguments)
		got := fmt.Sprintf("a: %v, b: %v", namespaces.Has("a"), namespaces.Has("b"))
		if err != nil {
			got = err.Error()[:min(len(want), len(err.Error()))]
		}
		if got != want {
			t.Errorf("%q: %s, want %s", argument, got, want)
		}
	}
}
