package queue

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOrder: namespaces alternate, urgent items go first, and an empty line holds no memory.
func TestOrder(t *testing.T) {
	for name, test := range map[string]struct {
		// actions are items to push, of the tenant before the slash; "pop" pops one. A
		// "!" makes an item urgent, a "+" raises it, and a "-" removes it.
		actions string
		want    string // the items in the order in which they are popped
	}{
		"one tenant is first in, first out":      {"a/1 a/2 a/3", "a/1 a/2 a/3"},
		"two tenants alternate":                  {"a/1 a/2 a/3 b/1 b/2", "a/1 b/1 a/2 b/2 a/3"},
		"a late tenant waits for one item":       {"a/1 a/2 a/3 pop b/1", "a/1 a/2 b/1 a/3"},
		"every tenant has one turn":              {"a/1 a/2 b/1 b/2 c/1", "a/1 b/1 c/1 a/2 b/2"},
		"a tenant that was empty is last":        {"a/1 b/1 b/2 pop a/2", "a/1 b/1 a/2 b/2"},
		"a tenant does not gain by adding later": {"a/1 a/2 b/1 pop pop a/3 b/2", "a/1 b/1 a/2 b/2 a/3"},
		"urgent items precede the others":        {"a/1 b/1 !a/2 !c/1", "a/2 c/1 a/1 b/1"},
		"urgent items of tenants alternate":      {"b/1 !a/1 !a/2 !c/1", "a/1 c/1 a/2 b/1"},
		"a raised item precedes the others":      {"a/1 a/2 b/1 +a/2", "a/2 a/1 b/1"},
		"a raised item is behind urgent ones":    {"a/1 !b/1 !b/2 +a/1 !b/3", "b/1 a/1 b/2 b/3"},
		"an urgent item is not raised again":     {"!a/1 !a/2 +a/2 +a/1", "a/1 a/2"},
		"an item that does not wait":             {"a/1 pop +a/1 -a/1 a/2", "a/1 a/2"},
		"removed items":                          {"a/1 !a/2 b/1 -a/2 -b/1", "a/1"},
		"every eighth turn is for the others":    {"a/1 a/2 !b/1 !b/2 !b/3 !b/4 !b/5 !b/6 !b/7 !b/8 !b/9", "b/1 b/2 b/3 b/4 b/5 b/6 b/7 a/1 b/8 b/9 a/2"},
		"turns are counted while others wait":    {"!b/1 !b/2 !b/3 pop pop a/1 !b/4 !b/5 !b/6 !b/7 !b/8 !b/9 !b/10", "b/1 b/2 b/3 b/4 b/5 b/6 b/7 b/8 b/9 a/1 b/10"},
	} {
		t.Run(name, func(t *testing.T) {
			line, got := newLine[string](), []string{}
			pop := func() {
				item, _ := line.pop()
				got = append(got, item)
			}
			for action := range strings.FieldsSeq(test.actions) {
				item := strings.TrimLeft(action, "!+-")
				tenant := tenantOf(item)
				switch {
				case action == "pop":
					pop()
				case action[0] == '+':
					line.raise(tenant, item)
				case action[0] == '-':
					before := line.len
					if removed := line.remove(tenant, item); removed != (line.len < before) {
						t.Errorf("remove(%s) = %v, and %d of %d items are left", item, removed, line.len, before)
					}
				default:
					line.push(tenant, item, action[0] == '!')
				}
			}
			for line.len > 0 {
				pop()
			}
			if diff := cmp.Diff(strings.Fields(test.want), got); diff != "" {
				t.Errorf("order (-want +got):\n%s", diff)
			}
			for _, ring := range []*ring[string]{line.urgent, line.background} {
				if len(ring.of)+ring.turns.Len() > 0 {
					t.Errorf("the empty line has the namespaces %v", ring.of)
				}
			}
		})
	}
}

func tenantOf(item string) string {
	tenant, _, _ := strings.Cut(item, "/")
	return tenant
}
