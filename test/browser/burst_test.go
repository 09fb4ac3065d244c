package browser

import (
	"context"
	"fmt"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	fcache "k8s.io/client-go/tools/cache/testing"
	"k8s.io/client-go/util/workqueue"

	"github.com/samplecrd/network-controller/pkg/glass"
	"github.com/samplecrd/network-controller/pkg/observe"
)

const (
	manyObjects = 10_000
	burst       = 1_000
	bursts      = 5
	// The most that a burst may cost: the page answers a click, and nothing grows without end.
	// On two idle cores, it is a tenth of that.
	longestTask = 500 // milliseconds
	mostHeap    = 30  // MiB of the page
)

// many is a controller with many objects, without servers.
type many struct {
	source *fcache.FakeControllerSource
	queue  workqueue.TypedRateLimitingInterface[cache.ObjectName]
	synced chan struct{} // receives the end of each sync
}

func newMany(ctx context.Context, page *glass.Page) *many {
	things := page.Controller(glass.Config{Name: "networks", Workers: 8})
	limiter := workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]()
	m := &many{source: fcache.NewFakeControllerSource(), synced: make(chan struct{}, manyObjects)}
	m.queue = glass.Queue(things, workqueue.NewTypedRateLimitingQueue(limiter), limiter)
	context.AfterFunc(ctx, m.queue.ShutDown)
	for i := range manyObjects {
		m.source.Add(object(i, 1))
	}
	informer := page.Informer("networks", cache.NewSharedIndexInformer(m.source, &metav1.PartialObjectMetadata{}, 0, nil))
	add := func(object any) { m.queue.Add(cache.MetaObjectToName(object.(*metav1.PartialObjectMetadata))) }
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, after any) { add(after) }})
	go informer.RunWithContext(ctx)
	for range 8 {
		go func() {
			for key, shutdown := m.queue.Get(); !shutdown; key, shutdown = m.queue.Get() {
				ctx, end := things.Sync(ctx, key)
				_, endStep := observe.BeginStep(ctx, "Step", step("update subnet"))
				<-time.After(5 * time.Millisecond) // a request
				endStep(nil)
				end(nil)
				m.queue.Forget(key)
				m.queue.Done(key)
				m.synced <- struct{}{}
			}
		}()
	}
	return m
}

type step string

func (s step) String() string { return string(s) }

func object(i int, generation int64) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "samplecrd.k8s.io/v1", Kind: "Network"},
		ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprint("team-", i%100), Name: fmt.Sprint("network-", i), Generation: generation},
	}
}

// change edits objects, and waits until each is synced. Edits of one object may be one sync.
func (m *many) change(t *testing.T, count int, generation int64) {
	for i := range count {
		m.source.Modify(object(i, generation))
	}
	m.wait(t, count)
}

func (m *many) wait(t *testing.T, count int) {
	for range count {
		select {
		case <-m.synced:
		case <-time.After(patience):
			t.Fatal("a key was not synced")
		}
	}
}

// TestBurst: with 10,000 objects, bursts of 1,000 neither block the page nor let it or the
// process grow. It logs the figures that docs/operate/observe.md has.
func TestBurst(t *testing.T) {
	page := glass.New(t.Context(), glass.Process{Name: "many"})
	m := newMany(t.Context(), page)
	m.wait(t, manyObjects)
	before := memory()
	server := httptest.NewServer(page.Handler())
	t.Cleanup(server.Close) // after the tab
	p := openTab(t, server.URL+"/#team-1/network-1", look{width: 1440})
	p.waitFor("the page has all objects", `document.querySelector('[data-stage=indexer]').dataset.count === '10000'`)
	p.do(chromedp.Evaluate[chromedp.Void](measure))
	heap := []float64{evaluate[float64](p, `heap()`)}
	for i := range bursts {
		m.change(t, burst, int64(i+2))
		p.waitFor("the page is at rest", `!document.querySelector('#lanes .busy') && !document.querySelector('.dot')`)
		heap = append(heap, evaluate[float64](p, `heap()`))
	}
	cost := evaluate[struct{ Task, Frame, Median float64 }](p, `cost()`)
	t.Logf("longest task %.0f ms, longest frame %.0f ms, median %.1f ms; JS heap in MiB %.1f; process %.1f MiB, %.1f before",
		cost.Task, cost.Frame, cost.Median, heap, memory(), before)
	if cost.Task > longestTask {
		t.Errorf("the longest task of the page takes %.0f ms, more than %d", cost.Task, longestTask)
	}
	if last := heap[len(heap)-1]; last > mostHeap || last > 1.5*heap[1]+2 {
		t.Errorf("the heap of the page has %.1f MiB after the bursts: more than %d, or growing", heap, mostHeap)
	}
	if after := memory(); after > before+16 {
		t.Errorf("the process has %.1f MiB, and had %.1f before the bursts", after, before)
	}
}

// memory returns what the process uses, in MiB.
func memory() float64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc) / (1 << 20)
}

// measure notes tasks that block the page, and the time between frames.
const measure = `
window.tasks = [0]; window.frames = []; let last = performance.now();
new PerformanceObserver(list => tasks.push(...list.getEntries().map(e => e.duration))).observe({ type: 'longtask' });
requestAnimationFrame(function note(now) { frames.push(now - last); last = now; requestAnimationFrame(note); });
window.heap = () => { globalThis.gc?.(); return performance.memory.usedJSHeapSize / 2 ** 20; };
window.cost = () => ({ Task: Math.max(...tasks), Frame: frames.reduce((a, b) => Math.max(a, b)), Median: frames.sort((a, b) => a - b)[frames.length >> 1] });
`
