package rules_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/samplecrd/network-controller/hack/crd/rules"
)

func ExampleValidation_Compose() {
	composed := rules.Validation{
		At:            "spec",
		OnlyIfChanged: true,
		Fallback:      "the fields do not fit together",
		Scopes: []rules.Scope{
			{Name: "range", If: "isCIDR(self.net)", Let: "c = cidr(self.net)"},
			{Name: "dns", In: "range", If: "has(self.dns)", Each: "s in self.dns"},
		},
		Rules: []rules.Rule{
			{Name: "size", In: "range", Condition: "c.prefixLength() < 30", Message: "cidr {self.net} is too small"},
			{Name: "dns", In: "dns", Condition: "c.containsIP(s)", Message: "{s} isn't in cidr"},
			{Name: "mtu", Condition: "!has(self.mtu) || self.mtu > 67", Message: "mtu must be at least 68"},
		},
	}.Compose()
	fmt.Println(composed.Rule)
	fmt.Println()
	fmt.Println(composed.MessageExpression)
	// Output:
	// oldSelf.hasValue() && self == oldSelf.value() ||
	// (!isCIDR(self.net) || [cidr(self.net)].all(c,
	//   // size
	//   c.prefixLength() < 30 &&
	//   (!has(self.dns) || self.dns.all(s,
	//     // dns
	//     c.containsIP(s))))) &&
	// // mtu
	// (!has(self.mtu) || self.mtu > 67)
	//
	// // size
	// isCIDR(self.net) && [cidr(self.net)].exists(c, !(c.prefixLength() < 30)) ?
	//   'cidr ' + self.net + ' is too small' :
	// // dns
	// isCIDR(self.net) && [cidr(self.net)].exists(c, has(self.dns) && self.dns.exists(s, !(c.containsIP(s)))) ?
	//   [cidr(self.net)].map(c,
	//     self.dns.map(s, !(c.containsIP(s)),
	//       s + ' isn\'t in cidr')[0])[0] :
	// // mtu
	// 'mtu must be at least 68'
}

func TestRead(t *testing.T) {
	for name, test := range map[string]struct{ validations, want string }{
		"no rule":       {`[{at: spec}]`, `the rules for "spec": there are none`},
		"unknown key":   {`[{at: spec, rule: []}]`, `unknown field "rule"`},
		"unknown scope": {`[{at: spec, rules: [{name: a, in: b, message: c}]}]`, `rule "a" is in an unknown scope "b"`},
		"no fallback":   {`[{at: spec, rules: [{name: a, message: "{self} is c"}]}]`, "add a fallback"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "schema.yaml")
			if err := os.WriteFile(path, []byte("validations: "+test.validations), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := rules.Read(path); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one that contains %q", err, test.want)
			}
		})
	}
}
