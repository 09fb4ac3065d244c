package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/prometheus/procfs"
)

//go:embed benchmarks.md.tmpl
var pageTemplate string

// results are what a run has measured, and where. Its methods are the tables of the page.
type results struct {
	Command, CPU, System, Go, Kubernetes, ControllerRuntime string
	Cores, MemoryGB, N                                      int
	Runs                                                    []run
	Rests                                                   []resting
	Besides                                                 []beside
	Failed                                                  []string // measurements
}

// newResults returns empty results with a description of this machine.
func (b *bench) newResults(ctx context.Context) (r results, err error) {
	r.N, r.Cores, r.Go, r.System = b.n, runtime.NumCPU(), runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH
	r.Command = "make bench"
	if len(os.Args) > 1 {
		r.Command += " BENCH_FLAGS='" + strings.Join(os.Args[1:], " ") + "'"
	}
	if proc, err := procfs.NewDefaultFS(); err == nil {
		if all, err := proc.CPUInfo(); err == nil && len(all) > 0 {
			r.CPU = all[0].ModelName
		}
		if memory, err := proc.Meminfo(); err == nil && memory.MemTotalBytes != nil {
			r.MemoryGB = int(math.Round(float64(*memory.MemTotalBytes) / 1e9))
		}
	}
	kubernetes, own := filepath.Join(b.root, "hack", "kubernetes"), filepath.Join(b.root, "test", "bench")
	if r.Kubernetes, err = moduleVersion(ctx, kubernetes, "k8s.io/kubernetes"); err != nil {
		return r, err
	}
	r.ControllerRuntime, err = moduleVersion(ctx, own, "sigs.k8s.io/controller-runtime")
	return r, err
}

// page returns the page in Markdown.
func (r *results) page() ([]byte, error) {
	t, err := template.New("benchmarks.md").Parse(pageTemplate)
	if err != nil {
		return nil, err
	}
	var page bytes.Buffer
	err = t.Execute(&page, r)
	return page.Bytes(), err
}

// number returns a number with commas between thousands.
func number(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// table returns a Markdown table.
func table(header []string, rows [][]string) string {
	var text strings.Builder
	line := func(cells []string) { text.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(header)
	text.WriteString(strings.Repeat("|---", len(header)) + "|\n")
	for _, row := range rows {
		line(row)
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// perPeer returns a table with a row for each peer.
func perPeer(header []string, cells func(p peer) []string) string {
	var rows [][]string
	for _, p := range allPeers("") {
		rows = append(rows, append([]string{p.Title}, cells(p)...))
	}
	return table(append([]string{""}, header...), rows)
}

// spread are the values of several rounds, sorted.
type spread []float64

func (s spread) median() float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// text returns the median, and the range if there are several values.
func (s spread) text(format string) string {
	if len(s) == 0 {
		return "–"
	}
	median, least, most := fmt.Sprintf(format, s.median()), fmt.Sprintf(format, s[0]), fmt.Sprintf(format, s[len(s)-1])
	if least == most {
		return median
	}
	return median + " (" + least + "–" + most + ")"
}

// spread returns a value of all rounds of a peer.
func (r *results) spread(peer string, latency time.Duration, value func(run) float64) (s spread) {
	for _, one := range r.Runs {
		if one.Peer == peer && one.Latency == latency {
			s = append(s, value(one))
		}
	}
	slices.Sort(s)
	return s
}

// shares returns the throughput of a peer as a share of another one's, round by round.
func (r *results) shares(peer, of string, latency time.Duration) (s spread) {
	for _, other := range r.Runs {
		if other.Peer == of && other.Latency == latency {
			s = append(s, r.spread(peer, latency, func(one run) float64 {
				if one.Round != other.Round {
					return math.NaN()
				}
				return one.Create.rate() / other.Create.rate()
			})...)
		}
	}
	s = slices.DeleteFunc(s, math.IsNaN)
	slices.Sort(s)
	return s
}

// Throughput compares the peers with each other.
func (r *results) Throughput() string {
	var header []string
	for _, latency := range latencies {
		ms := latency.Milliseconds()
		header = append(header, fmt.Sprintf("%d ms: Networks/s", ms), "share of the bare client", "without a schema")
	}
	return perPeer(header, func(p peer) (cells []string) {
		for _, latency := range latencies {
			rates := r.spread(p.Name, latency, func(one run) float64 { return one.Create.rate() })
			cells = append(cells, rates.text("%.0f"),
				r.shares(p.Name, nameRoofline, latency).text("%.2f"), r.shares(p.Name, nameSchemaless, latency).text("%.2f"))
		}
		return cells
	})
}

// Costs are what creating a Network takes.
func (r *results) Costs() string {
	header := []string{
		"median (s)", "p99 (s)", "CPU: program (ms)", "API server (ms)", "etcd (ms)", "memory (MB)", "its peak (MB)",
	}
	each := func(seconds func(cpuTime) float64) func(run) float64 {
		return func(one run) float64 { return 1000 * seconds(one.Create.cpuTime) / float64(one.Create.N) }
	}
	figures := []struct {
		format string
		value  func(run) float64
	}{
		{"%.2f", func(one run) float64 { return one.Create.P50 }},
		{"%.2f", func(one run) float64 { return one.Create.P99 }},
		{"%.1f", each(func(c cpuTime) float64 { return c.Peer })},
		{"%.1f", each(func(c cpuTime) float64 { return c.APIServer })},
		{"%.1f", each(func(c cpuTime) float64 { return c.Etcd })},
		{"%.0f", func(one run) float64 { return one.Resident }},
		{"%.0f", func(one run) float64 { return one.Peak }},
	}
	return perPeer(header, func(p peer) (cells []string) {
		for _, figure := range figures {
			cells = append(cells, r.spread(p.Name, mainLatency(), figure.value).text(figure.format))
		}
		return cells
	})
}

// counted returns the requests per Network to create, edit and delete, or nothing.
func (r *results) counted(name string, count func(requests) int) (medians []float64) {
	for _, part := range []func(run) phase{
		func(one run) phase { return one.Create },
		func(one run) phase { return one.Edit },
		func(one run) phase { return one.Delete },
	} {
		s := r.spread(name, mainLatency(), func(one run) float64 {
			return float64(count(part(one).requests)) / float64(part(one).N)
		})
		if len(s) > 0 {
			medians = append(medians, s.median())
		}
	}
	return medians
}

func slashed(format string, values []float64) string {
	if len(values) == 0 {
		return "–"
	}
	texts := make([]string, len(values))
	for i, value := range values {
		texts[i] = fmt.Sprintf(format, value)
	}
	return strings.Join(texts, " / ")
}

func calls(r requests) int    { return r.Calls }
func networks(r requests) int { return r.Networks }
func events(r requests) int   { return r.Events }

// Requests are the requests per Network.
func (r *results) Requests() string {
	return perPeer([]string{"Neutron", "Kubernetes, without Events", "Events"}, func(p peer) (cells []string) {
		for _, count := range []func(requests) int{calls, networks, events} {
			cells = append(cells, slashed("%.2f", r.counted(p.Name, count)))
		}
		return cells
	})
}

// AtRest has the drift checks and restarts.
func (r *results) AtRest() string {
	var rows [][]string
	for _, one := range r.Rests {
		p, _ := selectPeers(allPeers(""), one.Peer) // it was measured
		row := []string{p[0].Title, number(one.N)}
		for _, c := range []cost{one.Check, one.Restart} {
			row = append(row, number(c.toNeutron()), number(c.writes()), fmt.Sprintf("%.2f s", c.Peer))
		}
		rows = append(rows, append(row, fmt.Sprintf("%.1f s", one.Quiet),
			fmt.Sprintf("%.0f MB", one.Resident), fmt.Sprintf("%.0f MB", one.Peak)))
	}
	return table([]string{
		"", "N", "check: Neutron", "writes", "CPU", "restart: Neutron", "writes", "CPU", "quiet after", "memory", "its peak",
	}, rows)
}

// Tenants has the times of a Network beside many others.
func (r *results) Tenants() string {
	var rows [][]string
	add := func(when string, p pace) {
		row := []string{when, strconv.Itoa(p.Count)}
		for _, seconds := range []float64{p.Ready.P50, p.Ready.P99, p.Accepted.P50, p.Accepted.P99} {
			row = append(row, fmt.Sprintf("%.0f ms", 1000*seconds))
		}
		rows = append(rows, row)
	}
	for _, one := range r.Besides {
		add("alone", one.Alone)
		add(fmt.Sprintf("beside %s, %d at a time", number(one.N), one.AtATime), one.Together)
	}
	return table([]string{"", "repetitions", "Ready: median", "p99", "the user's request: median", "p99"}, rows)
}
