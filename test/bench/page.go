package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"math"
	"os"
	"os/exec"
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

// results are what a run has measured, and where. The page has its tables from the methods.
type results struct {
	Command, CPU, System, Go, Kubernetes, ControllerRuntime string
	Cores, MemoryGB, N                                      int
	Peers                                                   []peer
	Failed                                                  []step
	all                                                     []result
}

// result is what a measurement has found.
type result struct {
	step
	F figures
}

// newResults returns empty results with a description of this machine.
func (b *bench) newResults(ctx context.Context) (r results, err error) {
	r = results{N: b.n, Peers: peers, Command: "make bench",
		Cores: runtime.NumCPU(), Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
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
	version := func(folder, module string) (string, error) {
		dir := filepath.Join(b.root, folder)
		output, err := exec.CommandContext(ctx, "go", "-C", dir, "list", "-m", "-f", "{{.Version}}", module).Output()
		return strings.TrimSpace(string(output)), err
	}
	if r.Kubernetes, err = version("hack/kubernetes", "k8s.io/kubernetes"); err != nil {
		return r, err
	}
	r.ControllerRuntime, err = version("test/bench", "sigs.k8s.io/controller-runtime")
	return r, err
}

// write writes the page in Markdown.
func (r *results) write(paths []string) error {
	functions := template.FuncMap{
		"number": number, "reached": reached,
		"ms": func(seconds float64) string { return fmt.Sprintf("%.0f ms", 1000*seconds) },
	}
	t, err := template.New("benchmarks.md").Funcs(functions).Parse(pageTemplate)
	if err != nil {
		return err
	}
	var page bytes.Buffer
	if err := t.Execute(&page, r); err != nil {
		return err
	}
	for _, path := range paths {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, page.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// number returns a whole number with commas between thousands.
func number(n any) string {
	text := fmt.Sprintf("%.0f", n)
	if n, ok := n.(int); ok {
		text = strconv.Itoa(n)
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Of returns the results of one kind of measurements.
func (r *results) Of(kind string) []result {
	return slices.DeleteFunc(slices.Clone(r.all), func(one result) bool { return one.kind != kind })
}

// spread are the values of several rounds, sorted.
type spread []float64

func (s spread) median() float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// Text returns the median, and the range if there are several values.
func (s spread) Text(format string) string {
	if len(s) == 0 {
		return "–"
	}
	median, least, most := fmt.Sprintf(format, s.median()), fmt.Sprintf(format, s[0]), fmt.Sprintf(format, s[len(s)-1])
	if least == most {
		return median
	}
	return median + " (" + least + "–" + most + ")"
}

// Life returns a figure of all rounds of a peer with a latency of Neutron in milliseconds.
func (r *results) Life(peer string, ms int, figure string) (s spread) {
	for _, one := range r.Of(life) {
		if one.Peer.Name == peer && one.latency == time.Duration(ms)*time.Millisecond {
			s = append(s, one.F[figure])
		}
	}
	slices.Sort(s)
	return s
}

// Share returns the throughput of a peer as a share of another one's, round by round.
func (r *results) Share(peer, of string, ms int) (s spread) {
	latency := time.Duration(ms) * time.Millisecond
	for _, one := range r.Of(life) {
		for _, other := range r.Of(life) {
			if one.Peer.Name == peer && other.Peer.Name == of && one.latency == latency && other.latency == latency &&
				one.round == other.round {
				s = append(s, one.F["createRate"]/other.F["createRate"])
			}
		}
	}
	slices.Sort(s)
	return s
}

// AtLeast reports whether a goal is reached.
func (s spread) AtLeast(goal float64) string { return reached(s.median() >= goal) }

func reached(is bool) string {
	if is {
		return "reached"
	}
	return "not reached"
}

// each returns the requests of a kind that a Network takes to create, edit and delete.
func (r *results) each(peer, requests string) (medians []float64) {
	for _, phase := range []string{"create", "edit", "delete"} {
		medians = append(medians, r.Life(peer, 20, phase+requests).median())
	}
	return medians
}

// Each returns them as text.
func (r *results) Each(peer, requests string) string {
	each := r.each(peer, requests)
	if math.IsNaN(each[0]) {
		return "–"
	}
	return fmt.Sprintf("%.2f / %.2f / %.2f", each[0], each[1], each[2])
}

// AtMost reports whether this controller takes so many to create, and one to edit and to delete.
func (r *results) AtMost(requests string, create float64) string {
	each := r.each(ours.Name, requests)
	return reached(each[0] < create+0.005 && each[1] < 1.005 && each[2] < 1.005)
}

// Ours returns the results of one kind of measurements for this controller.
func (r *results) Ours(kind string) []result {
	return slices.DeleteFunc(r.Of(kind), func(one result) bool { return one.Peer.Name != ours.Name })
}

// Requests is how many requests to Neutron a list of its state takes at most: N networks and
// N subnets in pages of 1,000, of which the last may be empty, router interfaces, extensions.
func (r result) Requests() float64 { return float64(2*((r.N+999)/1000) + 4) }

// Sent is what this controller sends in a part of the time at rest.
func (r result) Sent(part string) string {
	return fmt.Sprintf("%.0f requests, %.0f writes", r.F[part+"Cloud"], r.F[part+"Changes"])
}

// IsCalm reports whether that is a list of Neutron, a few more requests, and no writes.
func (r result) IsCalm(part string, more float64) string {
	return reached(r.F[part+"Cloud"] <= r.Requests()+more && r.F[part+"Changes"] == 0)
}

// Factor is how much longer a Network takes beside another tenant.
func (r result) Factor() float64 { return r.F["besideReadyP99"] / r.F["aloneReadyP99"] }
