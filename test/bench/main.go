// Command bench measures this controller beside others that do its work: how fast,
// with how many requests, and with how much CPU time and memory. `make bench` builds
// and runs it. After each measurement it writes benchmarks.md, which describes what is
// measured.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/samplecrd/network-controller/test/controlplane"
	"github.com/samplecrd/network-controller/test/internal/process"
)

func main() {
	b, err := parseFlags()
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), process.StopSignals...)
		err = b.run(ctx)
		stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench is a run of this program.
type bench struct {
	root            string
	peers           []peer
	n, most, rounds int
	docs, atScale   bool
	ofClouds        bool
	results         results
}

// latencies are those of Neutron. The last one is that of most measurements.
var latencies = []time.Duration{0, 20 * time.Millisecond}

// oneByOne is the number of Networks that another tenant creates one after the other.
const oneByOne = 3000

func parseFlags() (b *bench, err error) {
	b = &bench{}
	if b.root, err = controlplane.ModuleRoot(); err != nil {
		return nil, err
	}
	flag.IntVar(&b.n, "n", 1000, "`number` of Networks with which the programs are compared")
	flag.IntVar(&b.most, "most", 10_000, "`number` of Networks with which this controller is measured at rest, "+
		"and that another tenant creates")
	flag.IntVar(&b.rounds, "rounds", 2, "number of rounds, of which the median is taken")
	only := flag.String("only", "", "comma-separated `names` of the programs to measure; defaults to all")
	flag.BoolVar(&b.docs, "docs", false, "write docs/benchmarks.md, too")
	flag.BoolVar(&b.atScale, "scale", false, "measure only what this controller and Kubernetes cost with many Networks: "+
		"the table of docs/scale.md")
	flag.BoolVar(&b.ofClouds, "clouds", false, "measure only what a cloud for each namespace costs: "+
		"the table of docs/scale.md")
	flag.Parse()
	b.peers, err = selectPeers(allPeers(b.root), *only)
	return b, err
}

// step is one measurement.
type step struct {
	name    string
	peer    peer
	latency time.Duration
	measure func(context.Context, *site) error
}

// schedule returns the measurements. In each round, the peers alternate.
func (b *bench) schedule() (all []step) {
	for round := 1; round <= b.rounds; round++ {
		for _, latency := range latencies {
			for _, p := range b.peers {
				all = append(all, b.lifeStep(p, latency, round))
			}
		}
	}
	for _, p := range b.peers {
		if !p.isBare {
			all = append(all, b.restStep(p, b.n))
		}
		if p.Name == nameOurs {
			all = append(all, b.restStep(p, b.most), b.tenantStep(p, b.most, users), b.tenantStep(p, min(b.most, oneByOne), 1))
		}
	}
	return all
}

func mainLatency() time.Duration { return latencies[len(latencies)-1] }

// lifeStep creates, edits and deletes Networks.
func (b *bench) lifeStep(p peer, latency time.Duration, round int) step {
	name := fmt.Sprintf("%s, N=%d, latency %v, round %d", p.Name, b.n, latency, round)
	return step{name, p, latency, func(ctx context.Context, s *site) error {
		r, err := s.lifeOf(ctx, b.n)
		if err == nil {
			r.Peer, r.Latency, r.Round = p.Name, latency, round
			b.results.Runs = append(b.results.Runs, r)
		}
		return err
	}}
}

// restStep creates n Networks, and measures the peer at rest.
func (b *bench) restStep(p peer, n int) step {
	name := fmt.Sprintf("%s, at rest with N=%d", p.Name, n)
	return step{name, p, mainLatency(), func(ctx context.Context, s *site) error {
		if _, err := s.create(ctx, 0, n); err != nil {
			return err
		}
		r, err := s.atRest(ctx, n)
		if err == nil {
			b.results.Rests = append(b.results.Rests, r)
		}
		return err
	}}
}

func (b *bench) tenantStep(p peer, n, atATime int) step {
	name := fmt.Sprintf("%s, beside N=%d of another tenant, %d at a time", p.Name, n, atATime)
	return step{name, p, mainLatency(), func(ctx context.Context, s *site) error {
		r, err := s.secondTenant(ctx, n, atATime)
		if err == nil {
			b.results.Besides = append(b.results.Besides, r)
		}
		return err
	}}
}

// run measures everything, and writes the page after each measurement, so that an
// interrupted run leaves the results that it has.
func (b *bench) run(ctx context.Context) (err error) {
	if b.atScale {
		return b.scale(ctx)
	}
	if b.ofClouds {
		return b.clouds(ctx)
	}
	if b.results, err = b.newResults(ctx); err != nil {
		return err
	}
	began := time.Now()
	for _, step := range b.schedule() {
		fmt.Printf("%5.0fs  %s\n", time.Since(began).Seconds(), step.name)
		err := step.run(ctx)
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted; the page has the results so far: %w", ctx.Err())
		}
		if err != nil {
			fmt.Println("failed:", err)
			b.results.Failed = append(b.results.Failed, step.name)
		}
		if err := b.write(); err != nil {
			return err
		}
	}
	fmt.Printf("%5.0fs  the results are in build/bench/benchmarks.md\n", time.Since(began).Seconds())
	return nil
}

// run measures in a Kubernetes and a Neutron of its own.
func (m step) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := startSite(ctx, m.peer, m.latency)
	if err != nil {
		return err
	}
	if err := m.measure(ctx, s); err != nil {
		_ = s.stop()
		return err
	}
	return s.stop()
}

// write writes the page.
func (b *bench) write() error {
	page, err := b.results.page()
	if err != nil {
		return err
	}
	paths := []string{filepath.Join(b.root, "build", "bench", "benchmarks.md")}
	if b.docs {
		paths = append(paths, filepath.Join(b.root, "docs", "benchmarks.md"))
	}
	for _, path := range paths {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, page, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// moduleVersion returns the version of a module that another module requires.
func moduleVersion(ctx context.Context, dir, module string) (string, error) {
	output, err := exec.CommandContext(ctx, "go", "-C", dir, "list", "-m", "-f", "{{.Version}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("finding the version of %s: %w", module, err)
	}
	return strings.TrimSpace(string(output)), nil
}
