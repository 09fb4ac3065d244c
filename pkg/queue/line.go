package queue

import (
	"container/list"
	"slices"
)

// backgroundTurn is how often the first turn is that of an item that is not urgent, if
// both wait. So a stream of urgent items does not starve the others.
const backgroundTurn = 8

// line is a line of waiting items. Urgent items precede the others, with one exception: of
// eight turns, one is that of another item. Within the urgent ones and within the others,
// namespaces alternate, and the items of a namespace are first in, first out. A line is
// not safe for concurrent use.
type line[T comparable] struct {
	urgent, background *ring[T]
	// passed counts the urgent items since an item that is not urgent had its turn.
	passed, len int
}

func newLine[T comparable]() *line[T] {
	return &line[T]{urgent: newRing[T](), background: newRing[T]()}
}

// push adds an item of a namespace.
func (l *line[T]) push(namespace string, item T, urgent bool) {
	l.len++
	if urgent {
		l.urgent.push(namespace, item)
	} else {
		l.background.push(namespace, item)
	}
}

// raise makes a waiting item urgent, if it is not. It takes the time to find it among
// the items of its namespace.
func (l *line[T]) raise(namespace string, item T) {
	if l.background.remove(namespace, item) {
		l.urgent.push(namespace, item)
	}
}

// remove removes an item. It reports whether it waited.
func (l *line[T]) remove(namespace string, item T) bool {
	if !l.urgent.remove(namespace, item) && !l.background.remove(namespace, item) {
		return false
	}
	l.len--
	return true
}

// pop removes the next item, and reports whether it is urgent. The line must not be
// empty.
func (l *line[T]) pop() (item T, urgent bool) {
	from := l.urgent
	switch {
	case l.background.isEmpty():
		l.passed = 0
	case l.urgent.isEmpty() || l.passed == backgroundTurn-1:
		from, l.passed = l.background, 0
	default:
		l.passed++
	}
	l.len--
	return from.pop(), from == l.urgent
}

// front returns the next items, at most a number of them, as if the others never had a
// turn before the urgent ones.
func (l *line[T]) front(most int) (items []T) {
	for _, ring := range []*ring[T]{l.urgent, l.background} {
		for round, found := 0, true; found && len(items) < most; round++ {
			found = false
			for element := ring.turns.Front(); element != nil && len(items) < most; element = element.Next() {
				if queued := element.Value.(*waiting[T]); round < len(queued.items) {
					items, found = append(items, queued.items[round]), true
				}
			}
		}
	}
	return items
}

// ring is a first-in, first-out list for each namespace that has an item, and a ring of
// these namespaces. A namespace without an item takes no memory.
type ring[T comparable] struct {
	turns *list.List // of *waiting; the front one is next
	of    map[string]*list.Element
}

// waiting are the items of a namespace, the oldest one first.
type waiting[T comparable] struct {
	namespace string
	items     []T
}

func newRing[T comparable]() *ring[T] {
	return &ring[T]{turns: list.New(), of: map[string]*list.Element{}}
}

func (r *ring[T]) isEmpty() bool { return len(r.of) == 0 }

// push adds an item. The last turn of all is that of a namespace that had no item yet.
func (r *ring[T]) push(namespace string, item T) {
	if element := r.of[namespace]; element != nil {
		queued := element.Value.(*waiting[T])
		queued.items = append(queued.items, item)
		return
	}
	r.of[namespace] = r.turns.PushBack(&waiting[T]{namespace, []T{item}})
}

// pop removes the next item. Its namespace goes to the end of the ring.
func (r *ring[T]) pop() (item T) {
	element := r.turns.Front()
	queued := element.Value.(*waiting[T])
	item = queued.items[0]
	queued.items[0] = *new(T) // for the garbage collector
	queued.items = queued.items[1:]
	r.turns.MoveToBack(element)
	r.drop(element)
	return item
}

func (r *ring[T]) remove(namespace string, item T) bool {
	element := r.of[namespace]
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

// drop removes a namespace that has no item.
func (r *ring[T]) drop(element *list.Element) {
	if queued := element.Value.(*waiting[T]); len(queued.items) == 0 {
		r.turns.Remove(element)
		delete(r.of, queued.namespace)
	}
}
