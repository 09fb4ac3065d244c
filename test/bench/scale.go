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

	"github.com/samplecrd/network-controller/test/internal/process"
)

// sizes are the numbers of Networks.
var sizes = []int{1_000, 10_000, 30_000, 100_000}

// lastOnes is how many Networks of each size are created after the restart.
const lastOnes = 500

// row is a row of a table, whose cells show figures.
type row struct{ title, format, figures string }

var scaleRows = []row{
	{"live heap of the controller", "%.0f MB", "Heap"},
	{"memory of the leader", "%.0f MB", "leaderMemory"},
	{"its peak since the start", "%.0f MB", "leaderPeak"},
	{"memory of a standby", "%.0f MB", "standbyMemory"},
	{"start: until it is quiet", "%.1f s", "Quiet"},
	{"start: CPU time of the controller", "%.1f s", "restartProgram"},
	{"start: CPU time of the API server", "%.1f s", "restartAPIServer"},
	{"start: requests to Neutron, writes", "%.0f, %.0f", "restartCloud restartChanges"},
	{"drift check: the list", "%.1f s", "List"},
	{"drift check: CPU time of the controller", "%.1f s", "checkProgram"},
	{"drift check: requests to Neutron, writes", "%.0f, %.0f", "checkCloud checkChanges"},
	{"create: Networks in a second", "%.0f", "createRate"},
	{"create: CPU time of the controller for each", "%.1f ms", "createProgram"},
	{"create: CPU time of the API server for each", "%.0f ms", "createAPIServer"},
	{"create: requests to Neutron for each", "%.1f", "createCalls"},
	{"handover after SIGTERM: until a new Network is ready", "%.1f s", "Ready"},
	{"handover: CPU time of the standby", "%.1f s", "handoverProgram"},
	{"memory of the API server", "%.0f MB", "serverMemory"},
	{"its peak, after a response with all Networks", "%.0f MB", "responsePeak"},
	{"that response", "%.0f MB in %.1f s", "responseMB responseSeconds"},
	{"database of etcd", "%.0f MB", "Database"},
	{"memory of etcd", "%.0f MB", "etcdMemory"},
}

// columns returns a table in Markdown with a column of figures for each header.
func columns(rows []row, headers []string, all []figures) string {
	var text strings.Builder
	text.WriteString("|  | " + strings.Join(headers, " | ") + " |\n" + strings.Repeat("|---", len(headers)+1) + "|\n")
	for _, row := range rows {
		text.WriteString("| " + row.title)
		for _, f := range all {
			var values []any
			for _, name := range strings.Fields(row.figures) {
				values = append(values, f[name])
			}
			text.WriteString(" | " + fmt.Sprintf(row.format, values...))
		}
		text.WriteString(" |\n")
	}
	return text.String()
}

// measureScale measures the controller at each size, and prints the table so far.
func measureScale(ctx context.Context, root string) error {
	ports, err := process.FreePorts(ctx, 2)
	if err != nil {
		return err
	}
	metrics, profiles := fmt.Sprintf("127.0.0.1:%d", ports[0]), fmt.Sprintf("127.0.0.1:%d", ports[1])
	return onSite(ctx, root, step{Peer: ours}, func(s *site) error {
		s.flags = []string{"-metrics-bind-address=" + metrics, "-profiling-bind-address=" + profiles} // from the restart on
		var headers []string
		var all []figures
		have := 0
		for _, n := range sizes {
			if _, err := s.create(ctx, have, n-lastOnes); err != nil {
				return err
			}
			found, err := s.atScale(ctx, n, metrics, profiles)
			if err != nil {
				return fmt.Errorf("%d Networks: %w", n, err)
			}
			have, headers, all = n, append(headers, number(n)), append(all, found)
			fmt.Println(columns(scaleRows, headers, all))
		}
		return nil
	})
}

// atScale measures one size, of which it creates the last Networks.
func (s *site) atScale(ctx context.Context, n int, metrics, profiles string) (found figures, err error) {
	if found, err = s.atRest(ctx); err != nil {
		return nil, err
	}
	took := `(?m)^samplecrd_neutron_cache_refresh_duration_seconds(?:\{[^}]*\})? (\S+)$`
	if found["List"], err = valueAt("http://"+metrics+"/metrics", took); err != nil {
		return nil, err
	}
	create, err := s.create(ctx, n-lastOnes, n)
	if err != nil {
		return nil, err
	}
	found.add("create", create)
	found.add("leader", memory(s.process.PID()))
	heap, err := valueAt("http://"+profiles+"/debug/pprof/heap?gc=1&debug=1", `(?m)^# HeapAlloc = (\d+)$`)
	if err != nil {
		return nil, err
	}
	found["Heap"] = heap / 1e6
	if err := s.kubernetesAt(ctx, found); err != nil {
		return nil, err
	}
	return found, s.handOver(ctx, fmt.Sprintf("after-%d", n), found)
}

// kubernetesAt measures the API server and etcd.
func (s *site) kubernetesAt(ctx context.Context, found figures) error {
	pids := s.cluster.PIDs()
	found.add("server", memory(pids["kube-apiserver"]))
	found.add("etcd", memory(pids["etcd"]))
	metrics, err := s.kube.Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return err
	}
	bytes, err := valueIn(metrics, `(?m)^apiserver_storage_size_bytes\{.*\} (\S+)$`)
	if err != nil {
		return err
	}
	began := time.Now()
	text, err := s.kube.Get().Resource(resource).Param("resourceVersion", "0").DoRaw(ctx)
	found.add("response", figures{"Seconds": time.Since(began).Seconds(), "MB": float64(len(text)) / 1e6})
	found.add("response", memory(pids["kube-apiserver"]))
	found["Database"] = bytes / 1e6
	return err
}

// handOver starts a second replica, and stops the leader.
func (s *site) handOver(ctx context.Context, name string, found figures) error {
	leader := s.process
	defer leader.Kill()
	before, _ := s.cloud.requests()
	if err := s.startPeer(); err != nil { // without flags: the addresses are in use
		return err
	}
	if _, err := s.untilQuiet(ctx, before+1); err != nil {
		return err
	}
	found.add("standby", memory(s.process.PID()))
	cost, err := s.costOf(ctx, func() error {
		began := time.Now()
		leader.Stop(stopTime)
		if _, _, err := s.createOne(ctx, tenantOf(0), name); err != nil {
			return err
		}
		found["Ready"] = time.Since(began).Seconds()
		_, err := s.untilQuiet(ctx, 0)
		return err
	})
	found.add("handover", cost)
	return err
}

// valueAt returns a number in the text at a URL.
func valueAt(url, pattern string) (float64, error) {
	response, err := http.Get(url) //nolint:noctx // of a program that this one has started
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
	return strconv.ParseFloat(string(found[1]), 64)
}
