package queue

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
					line.remove(tenant, item)
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
		})
	}
}

// model is what a line should hold: for each class (true is urgent) and tenant, the
// items in their order.
type model map[bool]map[string][]string

func tenantOf(item string) string {
	tenant, _, _ := strings.Cut(item, "/")
	return tenant
}

func (m model) push(item string, urgent bool) {
	m[urgent][tenantOf(item)] = append(m[urgent][tenantOf(item)], item)
}

// drop removes an item from a class, and reports whether it was there.
func (m model) drop(item string, urgent bool) bool {
	class, tenant := m[urgent], tenantOf(item)
	i := slices.Index(class[tenant], item)
	if i < 0 {
		return false
	}
	if class[tenant] = slices.Delete(class[tenant], i, i+1); len(class[tenant]) == 0 {
		delete(class, tenant)
	}
	return true
}

// TestProperties: with random items, nothing is lost or invented, and the items of a
// tenant stay in order. An empty line holds no memory.
func TestProperties(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		line, m, pushed := newLine[string](), model{true: {}, false: {}}, []string{"0/absent"}
		pop := func() {
			item, urgent := line.pop()
			if queued := m[urgent][tenantOf(item)]; len(queued) == 0 || queued[0] != item {
				t.Fatalf("seed %d: pop() = %s, want the first of %v", seed, item, queued)
			}
			m.drop(item, urgent)
		}
		for i := range 600 {
			item := pushed[random.IntN(len(pushed))]
			switch action := random.IntN(10); {
			case action < 4 && line.len > 0:
				pop()
			case action == 4:
				line.raise(tenantOf(item), item)
				if m.drop(item, false) {
					m.push(item, true)
				}
			case action == 5:
				if got, want := line.remove(tenantOf(item), item), m.drop(item, true) || m.drop(item, false); got != want {
					t.Fatalf("seed %d: remove(%s) = %v, want %v", seed, item, got, want)
				}
			default:
				item, urgent := strconv.Itoa(min(random.IntN(20), 6))+"/"+strconv.Itoa(i), random.IntN(2) == 0
				pushed = append(pushed, item)
				line.push(tenantOf(item), item, urgent)
				m.push(item, urgent)
			}
			if len(line.urgent.of) != len(m[true]) || line.background.turns.Len() != len(m[false]) {
				t.Fatalf("seed %d: %d and %d namespaces have items, want %v", seed, len(line.urgent.of), line.background.turns.Len(), m)
			}
		}
		for line.len > 0 {
			pop()
		}
		if len(m[true])+len(m[false]) > 0 {
			t.Fatalf("seed %d: lost items: %v", seed, m)
		}
	}
}
