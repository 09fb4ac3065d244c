package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/samplecrd/network-controller/test/bench/bare"
	"github.com/samplecrd/network-controller/test/launch"
)

// scale is what one number of Networks costs.
type scale struct {
	resting
	Create phase // of the last ones, after the restart
	// Heap is the live heap of the controller in MB; the other memory is resident.
	Heap, Memory, Peak       float64
	Standby, APIServer, Etcd float64
	APIServerPeak            float64 // after the list
	Database                 float64 // of etcd in MB
	ListSeconds, ListMB      float64 // all Networks in one response of the API server
	CheckTook                float64 // seconds that the list after the restart took
	// HandOver is the work of a standby that takes over, and Ready the seconds from
	// the signal that stops the leader until a new Network was ready.
	HandOver cost
	Ready    float64
}

// sizes are the numbers of Networks.
var sizes = []int{1_000, 10_000, 30_000, 100_000}

// created is how many Networks of each size are created after the restart.
const created = 500

// scale measures the controller at each size.
func (b *bench) scale(ctx context.Context) error {
	p, err := selectPeers(b.peers, nameOurs)
	if err != nil {
		return err
	}
	metrics, err := launch.FreeAddress(ctx, "127.0.0.1:0")
	if err != nil {
		return err
	}
	profiles, err := launch.FreeAddress(ctx, "127.0.0.1:0")
	if err != nil {
		return err
	}
	p[0].flags = []string{"-metrics-bind-address=" + metrics, "-profiling-bind-address=" + profiles}
	return step{"scale", p[0], 0, func(ctx context.Context, s *site) error {
		var all []scale
		have := 0
		for _, n := range sizes {
			if _, err := s.create(ctx, have, n-created); err != nil {
				return err
			}
			measured, err := s.atScale(ctx, n, metrics, profiles)
			if err != nil {
				return fmt.Errorf("%d Networks: %w", n, err)
			}
			have = n
			all = append(all, measured)
			fmt.Println(scaleTable(all))
		}
		return nil
	}}.run(ctx)
}

// scaleTable returns the results in Markdown, with a column for each size.
func scaleTable(all []scale) string {
	figure := func(format string, value func(s scale) float64) func(scale) string {
		return func(s scale) string { return fmt.Sprintf(format, value(s)) }
	}
	requests := func(c cost) string { return fmt.Sprintf("%d, %d", c.toNeutron(), c.writes()) }
	rows := []struct {
		name string
		cell func(s scale) string
	}{
		{"live heap of the controller", figure("%.0f MB", func(s scale) float64 { return s.Heap })},
		{"memory of the leader", figure("%.0f MB", func(s scale) float64 { return s.Memory })},
		{"its peak since the start", figure("%.0f MB", func(s scale) float64 { return s.Peak })},
		{"memory of a standby", figure("%.0f MB", func(s scale) float64 { return s.Standby })},
		{"start: until it is quiet", figure("%.1f s", func(s scale) float64 { return s.Quiet })},
		{"start: CPU time of the controller", figure("%.1f s", func(s scale) float64 { return s.Restart.Peer })},
		{"start: CPU time of the API server", figure("%.1f s", func(s scale) float64 { return s.Restart.APIServer })},
		{"start: requests to Neutron, writes", func(s scale) string { return requests(s.Restart) }},
		{"drift check: the list", figure("%.1f s", func(s scale) float64 { return s.CheckTook })},
		{"drift check: CPU time of the controller", figure("%.1f s", func(s scale) float64 { return s.Check.Peer })},
		{"drift check: requests to Neutron, writes", func(s scale) string { return requests(s.Check) }},
		{"create: Networks in a second", figure("%.0f", func(s scale) float64 { return s.Create.rate() })},
		{"create: CPU time of the controller for each", figure("%.1f ms", func(s scale) float64 {
			return 1000 * s.Create.Peer / created
		})},
		{"create: CPU time of the API server for each", figure("%.0f ms", func(s scale) float64 {
			return 1000 * s.Create.APIServer / created
		})},
		{"create: requests to Neutron for each", figure("%.1f", func(s scale) float64 {
			return float64(s.Create.Calls) / created
		})},
		{"handover after SIGTERM: until a new Network is ready", figure("%.1f s", func(s scale) float64 { return s.Ready })},
		{"handover: CPU time of the standby", figure("%.1f s", func(s scale) float64 { return s.HandOver.Peer })},
		{"memory of the API server", figure("%.0f MB", func(s scale) float64 { return s.APIServer })},
		{"its peak, after a response with all Networks", figure("%.0f MB", func(s scale) float64 { return s.APIServerPeak })},
		{"that response", func(s scale) string { return fmt.Sprintf("%.0f MB in %.1f s", s.ListMB, s.ListSeconds) }},
		{"database of etcd", figure("%.0f MB", func(s scale) float64 { return s.Database })},
		{"memory of etcd", figure("%.0f MB", func(s scale) float64 { return s.Etcd })},
	}
	header, cells := []string{""}, make([][]string, len(rows))
	for _, s := range all {
		header = append(header, number(s.N))
	}
	for i, row := range rows {
		cells[i] = []string{row.name}
		for _, s := range all {
			cells[i] = append(cells[i], row.cell(s))
		}
	}
	return table(header, cells)
}

// atScale measures one size, of which it creates the last Networks.
func (s *site) atScale(ctx context.Context, n int, metrics, profiles string) (r scale, err error) {
	if r.resting, err = s.atRest(ctx, n); err != nil {
		return r, err
	}
	took := `(?m)^samplecrd_neutron_cache_refresh_duration_seconds(?:\{[^}]*\})? (\S+)$`
	if r.CheckTook, err = valueAt(ctx, "http://"+metrics+"/metrics", took); err != nil {
		return r, err
	}
	if r.Create, err = s.create(ctx, n-created, n); err != nil {
		return r, err
	}
	r.Memory, r.Peak = memory(s.process.PID())
	heap := "http://" + profiles + "/debug/pprof/heap?gc=1&debug=1"
	if r.Heap, err = valueAt(ctx, heap, `(?m)^# HeapAlloc = (\d+)$`); err != nil {
		return r, err
	}
	r.Heap /= 1e6
	if err := s.kubernetesAt(ctx, &r); err != nil {
		return r, err
	}
	return r, s.handOver(ctx, &r)
}

// kubernetesAt measures the API server and etcd.
func (s *site) kubernetesAt(ctx context.Context, r *scale) error {
	pids := s.cluster.PIDs()
	r.APIServer, _ = memory(pids["kube-apiserver"])
	r.Etcd, _ = memory(pids["etcd"])
	metrics, err := s.kube.Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return err
	}
	if r.Database, err = valueIn(metrics, `(?m)^apiserver_storage_size_bytes\{.*\} (\S+)$`); err != nil {
		return err
	}
	r.Database /= 1e6
	began := time.Now()
	text, err := s.kube.Get().Resource(bare.Resource).Param("resourceVersion", "0").DoRaw(ctx)
	r.ListSeconds, r.ListMB = time.Since(began).Seconds(), float64(len(text))/1e6
	_, r.APIServerPeak = memory(pids["kube-apiserver"])
	return err
}

// handOver starts a second replica, and stops the leader.
func (s *site) handOver(ctx context.Context, r *scale) error {
	leader := s.process
	defer leader.Kill()
	before := s.neutron.requests().toNeutron()
	if err := s.startPeer(); err != nil { // without flags: the addresses are in use
		return err
	}
	if _, err := s.untilQuiet(ctx, before+1); err != nil {
		return err
	}
	r.Standby, _ = memory(s.process.PID())
	var err error
	r.HandOver, err = s.costOf(ctx, func() error {
		began := time.Now()
		leader.Stop(stopTime)
		if _, err := s.createOne(ctx, tenant(0), fmt.Sprintf("after-%d", r.N)); err != nil {
			return err
		}
		r.Ready = time.Since(began).Seconds()
		_, err := s.untilQuiet(ctx, 0)
		return err
	})
	return err
}

// valueAt returns a number in the text at a URL.
func valueAt(ctx context.Context, url, pattern string) (float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err
	}
	return valueIn(text, pattern)
}

// valueIn returns a number in a text.
func valueIn(text []byte, pattern string) (float64, error) {
	found := regexp.MustCompile(pattern).FindSubmatch(text)
	if found == nil {
		return 0, fmt.Errorf("nothing matches %s", pattern)
	}
	return strconv.ParseFloat(strings.TrimSpace(string(found[1])), 64)
}
