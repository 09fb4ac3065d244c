package metrics

import (
	"context"
	"sync"

	"k8s.io/klog/v2"
)

// Skipped returns a function that counts the objects that a list of Neutron's state
// has skipped. It logs them if their number or the reason has changed since the last
// list of this kind: a controller lists every few minutes, for months.
func Skipped() func(ctx context.Context, kind string, count int, reason string) {
	type skipped struct {
		count  int
		reason string
	}
	var mu sync.Mutex
	last := map[string]skipped{} // by kind
	return func(ctx context.Context, kind string, count int, reason string) {
		skippedObjects.WithLabelValues(kind).Add(float64(count))
		mu.Lock()
		defer mu.Unlock()
		if now := (skipped{count, reason}); last[kind] != now {
			last[kind] = now
			klog.FromContext(ctx).Info("Skipped unusable objects of others in Neutron",
				"kind", kind, "count", count, "firstReason", reason)
		}
	}
}
