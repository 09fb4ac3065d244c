package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"

	"github.com/samplecrd/network-controller/example/aggregated/v1alpha1"
)

type network = v1alpha1.NeutronNetwork

// maxChanges is how many changes the history keeps. A watch that is further behind has
// to list again.
const maxChanges = 10_000

// change is one object that was added (there is nothing before), changed, or deleted
// (there is nothing after). Its objects are never changed.
type change struct {
	version       uint64
	before, after *network
}

// history is what etcd is to other API servers: the objects, the last changes, and a
// version that each change increases. It is lost when the process ends.
//
// A version begins as the time in microseconds. So a version of an earlier process, or of
// another replica, is none of this one, and a client that names it is told to list again
// rather than to miss changes.
type history struct {
	now func() time.Time

	mu      sync.Mutex
	objects map[cache.ObjectName]*network // nil before the first list
	changes []change
	// before is the version before the first of the changes.
	before, version uint64
	changed         chan struct{} // closed by the next change
}

func newHistory(now func() time.Time) *history {
	return &history{now: now, changed: make(chan struct{})}
}

// replace makes these the objects. Those that are the same keep their version.
func (h *history) replace(objects []*network) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.objects == nil {
		h.objects, h.version = map[cache.ObjectName]*network{}, uint64(h.now().UnixMicro())
		h.before = h.version
	}
	before := h.version
	listed := map[cache.ObjectName]bool{}
	for _, after := range objects {
		key := cache.MetaObjectToName(after)
		listed[key] = true
		if known := h.objects[key]; known == nil || !isSame(known, after) {
			h.add(key, known, after)
		}
	}
	for key, known := range h.objects {
		if !listed[key] {
			h.add(key, known, nil)
		}
	}
	if excess := len(h.changes) - maxChanges; excess > 0 {
		h.before = h.changes[excess-1].version
		h.changes = slices.Clone(h.changes[excess:])
	}
	if h.version != before {
		close(h.changed)
		h.changed = make(chan struct{})
	}
}

func isSame(a, b *network) bool {
	return a.UID == b.UID && a.CreationTimestamp.Equal(&b.CreationTimestamp) &&
		equality.Semantic.DeepEqual(a.Status, b.Status)
}

func (h *history) add(key cache.ObjectName, before, after *network) {
	h.version = max(h.version+1, uint64(h.now().UnixMicro()))
	if after == nil {
		delete(h.objects, key)
	} else {
		after.ResourceVersion = strconv.FormatUint(h.version, 10)
		h.objects[key] = after
	}
	h.changes = append(h.changes, change{h.version, before, after})
}

// list returns the objects, sorted by namespace and name, and their version. There is no
// version before the first list of Neutron.
func (h *history) list() (objects []*network, version uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, object := range h.objects {
		objects = append(objects, object)
	}
	slices.SortFunc(objects, func(a, b *network) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return objects, h.version
}

// get returns an object, or nil.
func (h *history) get(key cache.ObjectName) *network {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.objects[key]
}

// since returns the changes after a version, and a channel that is closed by the next one.
// It fails with 410 if the version is too old, or not of this process.
func (h *history) since(version uint64) (changes []change, next <-chan struct{}, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if version == h.before {
		return h.changes, h.changed, nil
	}
	i, found := slices.BinarySearchFunc(h.changes, version, func(c change, v uint64) int {
		return cmp.Compare(c.version, v)
	})
	if !found {
		return nil, nil, apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d is not one of the last %d "+
			"changes that this server has seen: list again", version, len(h.changes)))
	}
	return h.changes[i+1:], h.changed, nil
}
