// Package turns decides who is next, if many tenants wait for few places. Urgent
// items precede the others, and each tenant has its turn.
package turns

import (
	"container/list"
	"slices"
)

// every is how often the first turn is that of an item that is not urgent, if both
// wait. So a stream of urgent items does not starve the others.
const every = 8

// Line is a line of waiting items. Urgent items precede the others, with one
// exception: of eight turns, one is that of another item. Within the urgent ones
// and within the others, tenants alternate, and the items of a tenant are first in,
// first out. The zero value is not usable; a Line is not safe for concurrent use.
type Line[T comparable] struct {
	urgent, other *ring[T]
	// passed counts the urgent items since an item that is not urgent had its turn.
	passed, len, tenants int
}

// New returns an empty Line.
func New[T comparable]() *Line[T] { return &Line[T]{urgent: newRing[T](), other: newRing[T]()} }

// has reports whether a tenant has an item.
func (l *Line[T]) has(tenant string) bool {
	return l.urgent.of[tenant] != nil || l.other.of[tenant] != nil
}

// removed is called after an item of a tenant was removed.
func (l *Line[T]) removed(tenant string) {
	l.len--
	if !l.has(tenant) {
		l.tenants--
	}
}

// Push adds an item of a tenant.
func (l *Line[T]) Push(tenant string, item T, urgent bool) {
	l.len++
	if !l.has(tenant) {
		l.tenants++
	}
	if urgent {
		l.urgent.push(tenant, item)
	} else {
		l.other.push(tenant, item)
	}
}

// Raise makes a waiting item urgent, if it is not. It takes the time to find it
// among the items of its tenant.
func (l *Line[T]) Raise(tenant string, item T) {
	if l.other.remove(tenant, item) {
		l.urgent.push(tenant, item)
	}
}

// Remove removes an item. It reports whether it waited.
func (l *Line[T]) Remove(tenant string, item T) bool {
	if !l.urgent.remove(tenant, item) && !l.other.remove(tenant, item) {
		return false
	}
	l.removed(tenant)
	return true
}

// Pop removes the next item, and reports whether it is urgent. The line must not be
// empty.
func (l *Line[T]) Pop() (item T, urgent bool) {
	from := l.urgent
	switch {
	case len(l.other.of) == 0:
		l.passed = 0
	case len(l.urgent.of) == 0 || l.passed == every-1:
		from, l.passed = l.other, 0
	default:
		l.passed++
	}
	tenant, item := from.pop()
	l.removed(tenant)
	return item, from == l.urgent
}

// Len returns the number of items.
func (l *Line[T]) Len() int { return l.len }

// Tenants returns the number of tenants that have an item.
func (l *Line[T]) Tenants() int { return l.tenants }

// ring is a first-in, first-out list for each tenant that has an item, and a ring of
// these tenants. A tenant without an item takes no memory.
type ring[T comparable] struct {
	turns *list.List // of *waiting; the front one is next
	of    map[string]*list.Element
}

// waiting are the items of a tenant, the oldest one first.
type waiting[T comparable] struct {
	tenant string
	items  []T
}

func newRing[T comparable]() *ring[T] {
	return &ring[T]{turns: list.New(), of: map[string]*list.Element{}}
}

// push adds an item. The last turn of all is that of a tenant that had no item yet.
func (r *ring[T]) push(tenant string, item T) {
	if element := r.of[tenant]; element != nil {
		queued := element.Value.(*waiting[T])
		queued.items = append(queued.items, item)
		return
	}
	r.of[tenant] = r.turns.PushBack(&waiting[T]{tenant, []T{item}})
}

// pop removes the next item. Its tenant goes to the end of the ring.
func (r *ring[T]) pop() (tenant string, item T) {
	element := r.turns.Front()
	queued := element.Value.(*waiting[T])
	item = queued.items[0]
	queued.items[0] = *new(T) // for the garbage collector
	queued.items = queued.items[1:]
	r.turns.MoveToBack(element)
	r.drop(element)
	return queued.tenant, item
}

func (r *ring[T]) remove(tenant string, item T) bool {
	element := r.of[tenant]
	if element == nil {
		return false
	}
	queued := element.Value.(*waiting[T])
	i := slices.Index(queued.items, item)
	if i < 0 {
		return false
	}
	queued.items = slices.Delete(queued.items, i, i+1)
	r.drop(element)
	return true
}

// drop removes a tenant that has no item.
func (r *ring[T]) drop(element *list.Element) {
	if queued := element.Value.(*waiting[T]); len(queued.items) == 0 {
		r.turns.Remove(element)
		delete(r.of, queued.tenant)
	}
}
