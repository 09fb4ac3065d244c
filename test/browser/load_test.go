package browser

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
)

// smoothness is what the page achieved in a period, in milliseconds.
type smoothness struct {
	Duration   float64
	Frames     int
	LongestGap float64 // between two frames
	InSlices   []int   // the frames in each tenth of the period
	LongTasks  int     // tasks of at least 50 ms
	LongTime   float64 // their duration
	Elements   int     // in the page, at its end
}

func (s smoothness) String() string {
	return fmt.Sprintf("%.1f s: %.1f frames a second, longest gap %.0f ms, %d long tasks with %.0f%% of the time, %d elements",
		s.Duration/1000, float64(s.Frames)/s.Duration*1000, s.LongestGap, s.LongTasks, s.LongTime/s.Duration*100, s.Elements)
}

// measure returns the smoothness while a function runs.
func (p *tab) measure(during func()) smoothness {
	p.Helper()
	evaluate[bool](p, `(observed.frames.length = 0, observed.longTasks.length = 0, observed.begun = performance.now(), true)`)
	during()
	return evaluate[smoothness](p, `(() => {
		const { begun, frames, longTasks } = observed, ended = performance.now(), duration = ended - begun;
		const slices = Array(10).fill(0);
		let longest = 0, last = begun;
		for (const time of [...frames, ended]) { longest = Math.max(longest, time - last); last = time; }
		for (const time of frames) slices[Math.max(0, Math.min(9, Math.floor((time - begun) / duration * 10)))]++;
		return {
			Duration: duration, Frames: frames.length, LongestGap: longest, InSlices: slices,
			LongTasks: longTasks.length, LongTime: longTasks.reduce((sum, task) => sum + task[1], 0),
			Elements: document.querySelectorAll('*').length,
		};
	})()`)
}

// 1,000 Networks arrive, and the page stays responsive: frames continue, most of the
// time is free, and the page does not grow with the number of Networks.
func TestThousandNetworks(t *testing.T) {
	const count = 1000
	s := newSite(t, "load")
	p := s.open(t, look{width: 1440})
	s.create("first", "10.0.0.0/24")
	s.waitForReady("first", 1)
	p.follow(s.namespace + "/first")
	rest := p.measure(func() {
		p.waitFor("some frames have passed", `observed.frames.length >= 100`)
	})
	load := p.measure(func() {
		s.createMany("load", count)
		s.waitForReady("load-", count)
		p.waitFor("the page shows all Networks", `document.querySelector('[data-stage=indexer]').dataset.count === '1001'`)
	})
	t.Logf("at rest:    %v", rest)
	t.Logf("under load: %v", load)
	if slices.Contains(load.InSlices, 0) {
		t.Errorf("frames in each tenth of the time are %v, want some in each", load.InSlices)
	}
	if load.LongTime > load.Duration/2 {
		t.Errorf("long tasks take more than half of the time: %v", load)
	}
	if load.Elements > 2*rest.Elements {
		t.Errorf("the page has %d elements, and %d at rest", load.Elements, rest.Elements)
	}
	// A user's input is handled while Networks are deleted.
	if err := s.networks.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	p.follow(s.namespace + "/load-0")
	p.waitFor("the page shows the journeys of the other key", `document.querySelector('#journeys').textContent.includes('load-0')`)
}

// createMany creates Networks with a prefix, 20 at a time.
func (s *site) createMany(prefix string, count int) {
	s.Helper()
	var next atomic.Int64
	var group sync.WaitGroup
	errs := make(chan error, count)
	for range 20 {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < count; i = int(next.Add(1)) - 1 {
				cidr := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(1 + i/256), byte(i), 0}), 24)
				network := &samplecrdv1.Network{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", prefix, i)}, Spec: samplecrdv1.NetworkSpec{CIDR: cidr.String()}}
				ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
				_, err := s.networks.Create(ctx, network, metav1.CreateOptions{})
				cancel()
				errs <- err
			}
		})
	}
	group.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			s.Fatal(err)
		}
	}
}
