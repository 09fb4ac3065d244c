package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// results are what a run has measured, and where.
type results struct {
	Command, CPU, System, Go, Kubernetes, ControllerRuntime string
	Cores, MemoryGB                                         int
	Workers                                                 int
	Runs                                                    []run
	Rests                                                   []rest
	Besides                                                 []beside
	Kills                                                   []killed
	Failed                                                  []string // measurements
}

// newResults returns empty results with a description of this machine.
func newResults(ctx context.Context, b *bench) results {
	r := results{Cores: runtime.NumCPU(), Go: runtime.Version(), Workers: b.workers, System: runtime.GOOS + "/" + runtime.GOARCH}
	r.Command = strings.TrimSpace("make bench BENCH_FLAGS='" + strings.Join(os.Args[1:], " ") + "'")
	if len(os.Args) == 1 {
		r.Command = "make bench"
	}
	r.CPU = valueIn("/proc/cpuinfo", "model name")
	var kib int
	_, _ = fmt.Sscan(valueIn("/proc/meminfo", "MemTotal"), &kib)
	r.MemoryGB = int(math.Round(float64(kib) * 1024 / 1e9))
	r.Kubernetes = moduleVersion(ctx, filepath.Join(b.root, "hack", "kubernetes"), "k8s.io/kubernetes")
	r.ControllerRuntime = moduleVersion(ctx, filepath.Join(b.root, "test", "bench"), "sigs.k8s.io/controller-runtime")
	return r
}

// valueIn returns the first value of a name in a file of /proc.
func valueIn(path, name string) string {
	text, _ := os.ReadFile(path)
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// moduleVersion returns the version of a module that another module requires.
func moduleVersion(ctx context.Context, dir, module string) string {
	command := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", module)
	command.Dir = dir
	output, err := command.Output()
	if err != nil {
		return "of unknown version"
	}
	return strings.TrimSpace(string(output))
}

func (r *results) read(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, r); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	return nil
}

// write writes the results and the page.
func (b *bench) write() error {
	text, err := json.MarshalIndent(b.results, "", "\t")
	if err != nil {
		return err
	}
	images := filepath.Join(b.output, "images")
	if err := os.MkdirAll(images, 0o755); err != nil {
		return err
	}
	if b.from == "" {
		err = os.WriteFile(filepath.Join(b.output, "results.json"), text, 0o644)
	}
	err = errors.Join(err, b.results.writePage(filepath.Join(b.output, "benchmarks.md"), images))
	if b.docs {
		docs := filepath.Join(b.root, "docs")
		err = errors.Join(err, b.results.writePage(filepath.Join(docs, "benchmarks.md"), filepath.Join(docs, "images")))
	}
	return err
}

// spread is a median with the smallest and the largest value.
type spread struct {
	Median, Min, Max float64
	Count            int
}

func newSpread(values []float64) spread {
	if len(values) == 0 {
		return spread{Median: math.NaN()}
	}
	slices.Sort(values)
	middle := len(values) / 2
	s := spread{Median: values[middle], Min: values[0], Max: values[len(values)-1], Count: len(values)}
	if len(values)%2 == 0 {
		s.Median = (values[middle-1] + values[middle]) / 2
	}
	return s
}

// text returns the median, and the range if there are several values.
func (s spread) text(format string) string {
	switch {
	case s.Count == 0:
		return "–"
	case s.Count == 1 || fmt.Sprintf(format, s.Min) == fmt.Sprintf(format, s.Max):
		return fmt.Sprintf(format, s.Median)
	}
	return fmt.Sprintf(format+" ("+format+"–"+format+")", s.Median, s.Min, s.Max)
}

// of returns the runs of a peer that match.
func (r *results) of(peer string, n int, latency float64) (runs []run) {
	for _, one := range r.Runs {
		if one.Peer == peer && one.N == n && one.Latency.Seconds() == latency {
			runs = append(runs, one)
		}
	}
	return runs
}

func spreadOf(runs []run, value func(run) float64) spread {
	var values []float64
	for _, one := range runs {
		if v := value(one); !math.IsNaN(v) {
			values = append(values, v)
		}
	}
	return newSpread(values)
}

// shares returns the throughput of a peer as a share of another one's, round by round.
func (r *results) shares(peer, of string, n int, latency float64) spread {
	var values []float64
	for _, a := range r.of(peer, n, latency) {
		for _, b := range r.of(of, n, latency) {
			if a.Round == b.Round && b.Create.rate() > 0 {
				values = append(values, a.Create.rate()/b.Create.rate())
			}
		}
	}
	return newSpread(values)
}
