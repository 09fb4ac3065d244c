package turns

import (
	"maps"
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
			line, got := New[string](), []string{}
			pop := func() {
				item, _ := line.Pop()
				got = append(got, item)
			}
			for action := range strings.FieldsSeq(test.actions) {
				item := strings.TrimLeft(action, "!+-")
				tenant, _, _ := strings.Cut(item, "/")
				switch {
				case action == "pop":
					pop()
				case action[0] == '+':
					line.Raise(tenant, item)
				case action[0] == '-':
					line.Remove(tenant, item)
				default:
					line.Push(tenant, item, action[0] == '!')
				}
			}
			for line.Len() > 0 {
				pop()
			}
			if diff := cmp.Diff(strings.Fields(test.want), got); diff != "" {
				t.Errorf("order (-want +got):\n%s", diff)
			}
		})
	}
}

// model is what a Line should hold: for each class (true is urgent) and tenant, the
// items in their order. It counts what waits too long.
type model struct {
	*testing.T
	classes map[bool]map[string][]string
	// waited are the turns of others since the last turn of a tenant in a class.
	waited map[bool]map[string]int
	passed int // the urgent turns since the others waited
}

// popped checks an item that the line has returned.
func (m *model) popped(item string, urgent bool) {
	tenant, _, _ := strings.Cut(item, "/")
	class := m.classes[urgent]
	if queued := class[tenant]; len(queued) == 0 || queued[0] != item {
		m.Fatalf("Pop() = %s, want the first of %v", item, queued)
	}
	m.drop(tenant, item, urgent)
	delete(m.waited[urgent], tenant)
	for other := range class {
		if other != tenant {
			m.waited[urgent][other]++
		}
		if m.waited[urgent][other] > 6 {
			m.Fatalf("%s waited for %d turns of 6 other tenants", other, m.waited[urgent][other])
		}
	}
	switch {
	case urgent && len(m.classes[false]) > 0:
		if m.passed++; m.passed > 7 {
			m.Fatalf("%d urgent items had their turn while others waited", m.passed)
		}
	case !urgent && len(m.classes[true]) > 0 && m.passed < 7:
		m.Fatalf("%s had its turn after %d urgent items although more of them wait", item, m.passed)
	default:
		m.passed = 0
	}
}

// drop removes an item from a class, and reports whether it was there.
func (m *model) drop(tenant, item string, urgent bool) bool {
	class := m.classes[urgent]
	i := slices.Index(class[tenant], item)
	if i < 0 {
		return false
	}
	if class[tenant] = slices.Delete(class[tenant], i, i+1); len(class[tenant]) == 0 {
		delete(class, tenant)
		delete(m.waited[urgent], tenant)
	}
	return true
}

// TestProperties: with random items, nothing is lost or invented, and the items of a
// tenant stay in order. Between two turns of a tenant, each other one has at most one
// turn in its class. Urgent items go first, but for one turn in eight. An empty line
// holds no memory.
func TestProperties(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		line := New[string]()
		m := model{t, map[bool]map[string][]string{true: {}, false: {}}, map[bool]map[string]int{true: {}, false: {}}, 0}
		var pushed []string
		for i := range 600 {
			switch action := random.IntN(10); {
			case action < 4 && line.Len() > 0:
				m.popped(line.Pop())
			case action == 4 && len(pushed) > 0:
				item := pushed[random.IntN(len(pushed))]
				tenant, _, _ := strings.Cut(item, "/")
				line.Raise(tenant, item)
				if m.drop(tenant, item, false) {
					m.classes[true][tenant] = append(m.classes[true][tenant], item)
				}
			case action == 5 && len(pushed) > 0:
				item := pushed[random.IntN(len(pushed))]
				tenant, _, _ := strings.Cut(item, "/")
				if got, want := line.Remove(tenant, item), m.drop(tenant, item, true) || m.drop(tenant, item, false); got != want {
					t.Fatalf("seed %d: Remove(%s) = %v, want %v", seed, item, got, want)
				}
			default:
				tenant, urgent := strconv.Itoa(min(random.IntN(20), 6)), random.IntN(2) == 0 // most are of one tenant
				item := tenant + "/" + strconv.Itoa(i)
				pushed = append(pushed, item)
				line.Push(tenant, item, urgent)
				m.classes[urgent][tenant] = append(m.classes[urgent][tenant], item)
			}
			tenants := maps.Clone(m.classes[true])
			maps.Copy(tenants, m.classes[false])
			if line.Tenants() != len(tenants) || len(line.urgent.of) != len(m.classes[true]) || line.other.turns.Len() != len(m.classes[false]) {
				t.Fatalf("seed %d: Tenants() = %d, want %d", seed, line.Tenants(), len(tenants))
			}
		}
		for line.Len() > 0 {
			m.popped(line.Pop())
		}
		if len(m.classes[true])+len(m.classes[false])+line.Tenants() > 0 {
			t.Fatalf("seed %d: lost items: %v", seed, m.classes)
		}
	}
}
