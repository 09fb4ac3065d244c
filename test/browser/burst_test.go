package browser

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

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

	failing = "network-1"
	retry   = 3 * time.Second
	atRest  = `!document.querySelector('#lanes .busy') && !document.querySelector('.dot')`
)

type step string

func (s step) String() string { return string(s) }

// startMany starts a controller with many objects, which have no namespace. It has no servers,
// and names no stages. Each first sync of the failing object fails. The function that it returns
// makes or edits the first objects, and waits until as many keys are synced.
func startMany(ctx context.Context, page *glass.Page) (change func(count, generation int)) {
	things := page.Controller(glass.Config{Name: "networks", Workers: 8})
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](retry, retry)
	queue := glass.Queue(things, workqueue.NewTypedRateLimitingQueue(limiter), limiter)
	context.AfterFunc(ctx, queue.ShutDown)
	source, synced := fcache.NewFakeControllerSource(), make(chan struct{}, manyObjects)
	informer := page.Informer("networks", cache.NewSharedIndexInformer(source, &metav1.PartialObjectMetadata{}, 0, nil))
	add := func(object any) { queue.Add(cache.MetaObjectToName(object.(*metav1.PartialObjectMetadata))) }
	update := func(_, after any) { add(after) }
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: update})
	go informer.RunWithContext(ctx)
	for range 8 {
		go func() {
			for key, shutdown := queue.Get(); !shutdown; key, shutdown = queue.Get() {
				ctx, end := things.Sync(ctx, key)
				_, endStep := observe.BeginStep(ctx, "Step", step("update subnet"))
				<-time.After(5 * time.Millisecond) // a request
				endStep(nil)
				if key.Name == failing && queue.NumRequeues(key) == 0 {
					end(errors.New("unavailable"))
					queue.AddRateLimited(key)
				} else {
					end(nil)
					queue.Forget(key)
					synced <- struct{}{}
				}
				queue.Done(key)
			}
		}()
	}
	return func(count, generation int) {
		for i := range count {
			source.Modify(&metav1.PartialObjectMetadata{
				TypeMeta:   metav1.TypeMeta{APIVersion: "samplecrd.k8s.io/v1", Kind: "Network"},
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("network-", i), Generation: int64(generation)},
			})
		}
		for range count { // the test has a timeout
			<-synced
		}
	}
}

// TestBurst: with 10,000 objects, bursts of 1,000 neither block the page nor let it or the
// process grow. The page shows a controller that has little in common with that of Networks: a
// failure with its retry, the journeys, and neither more stages nor servers than it has.
func TestBurst(t *testing.T) {
	page := glass.New(glass.Process{Name: "many"})
	change := startMany(t.Context(), page)
	change(manyObjects, 1)
	before := memory()
	server := httptest.NewServer(page.Handler())
	t.Cleanup(server.Close) // after the tab
	p := openTab(t, server.URL+"/#/"+failing, look{width: 1440})
	p.waitFor("the page has all objects", `document.querySelector('[data-stage=indexer]').dataset.count === '10000'`)
	p.run(measure)
	heap := []float64{evaluate[float64](p, `heap()`)}
	for i := range bursts {
		change(burst, i+2)
		p.waitFor("the page is at rest", atRest)
		heap = append(heap, evaluate[float64](p, `heap()`))
	}
	cost := evaluate[struct{ Task, Frame, Median float64 }](p, `cost()`)
	after, last := memory(), heap[bursts]
	go change(2, bursts+2)
	p.waitFor("the key waits for its retry",
		`document.querySelector('#backoff [data-key="`+failing+`"] .countdown')?.textContent`)
	p.waitFor("its journeys are listed", `document.querySelector('#journeys .failed') &&
		document.querySelector('#journeys details:not(.failed, .running)')`)
	p.waitFor("the retry has succeeded", `!document.querySelector('#backoff li') && `+atRest)
	const stages = `Array.from(document.querySelectorAll('.words [data-stage]'), e => e.dataset.stage).join()`
	if shown := evaluate[string](p, stages); shown != "worker,sync" {
		t.Errorf("the page shows the stages %q, want only sync", shown)
	}
	if evaluate[bool](p, `document.querySelector('.servers').checkVisibility() ||
		document.body.innerText.includes('Neutron')`) {
		t.Error("the page shows a server")
	}
	p.checkFit(look{}, 440)
	t.Logf("longest task %.0f ms, longest frame %.0f ms, median %.1f ms; JS heap in MiB %.1f; process %.1f MiB, %.1f before",
		cost.Task, cost.Frame, cost.Median, heap, after, before)
	if cost.Task > longestTask || last > mostHeap || last > 1.5*heap[1]+2 || after > before+16 {
		t.Errorf("want no task longer than %d ms, heaps of at most %d MiB and not growing, and 16 MiB more for the process",
			longestTask, mostHeap)
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
window.cost = () => ({
	Task: Math.max(...tasks), Frame: frames.reduce((a, b) => Math.max(a, b)), Median: frames.sort((a, b) => a - b)[frames.length >> 1],
});
`
