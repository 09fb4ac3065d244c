// Command bench measures this controller beside others that do its work: how fast,
// with how many requests, and with how much CPU time and memory. `make bench` builds
// and runs it. After each measurement it writes benchmarks.md, which describes what is
// measured. With the argument "bare", it is the bare client: see bare.go.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/samplecrd/network-controller/test/controlplane"
	"github.com/samplecrd/network-controller/test/internal/process"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), process.StopSignals...)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	if len(os.Args) > 1 && os.Args[1] == "bare" {
		return bareMain(ctx, os.Args[2:])
	}
	b := &bench{}
	flag.IntVar(&b.n, "n", 1000, "`number` of Networks with which the programs are compared")
	flag.IntVar(&b.most, "most", 10_000, "`number` of Networks with which this controller is measured at rest, "+
		"and that another tenant creates")
	flag.IntVar(&b.rounds, "rounds", 2, "number of rounds, of which the median is taken")
	docs := flag.Bool("docs", false, "write docs/benchmarks.md, too")
	scale := flag.Bool("scale", false, "measure only what this controller and Kubernetes cost with many Networks: "+
		"the table of docs/scale.md")
	clouds := flag.Bool("clouds", false, "measure only what a cloud for each namespace costs: the table of docs/scale.md")
	flag.Parse()
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return err
	}
	b.root, b.pages = root, []string{filepath.Join(root, "build", "bench", "benchmarks.md")}
	if *docs {
		b.pages = append(b.pages, filepath.Join(root, "docs", "benchmarks.md"))
	}
	switch {
	case *scale:
		return measureScale(ctx, root)
	case *clouds:
		return measureClouds(ctx, root)
	}
	return b.compare(ctx)
}

// bench is a comparison of programs.
type bench struct {
	root            string
	n, most, rounds int
	pages           []string // the files to write
}

// peer is a program to measure.
type peer struct {
	Name    string // for flags and files
	Title   string // for tables
	command []string
	isBare  bool // it sends no Events, and checks nothing
}

var (
	bare = peer{"bare", "bare client", []string{"build/bin/bench", "bare"}, true}
	ours = peer{"controller", "this controller", []string{"samplecrd-controller"}, false}

	onControllerRuntime = peer{"controller-runtime", "on controller-runtime",
		[]string{"build/bin/bench-controller-runtime"}, false}

	peers = []peer{bare, ours, onControllerRuntime}
)

// The kinds of measurements.
const (
	life   = "creating, editing and deleting"
	atRest = "at rest"
	tenant = "beside another tenant"
)

// step is one measurement, in a Kubernetes and with a Neutron of its own.
type step struct {
	Peer    peer
	kind    string
	latency time.Duration
	N       int
	round   int
	AtATime int // requests of the other tenant
}

func (m step) String() string {
	return fmt.Sprintf("%s, %s, N=%d, latency %v, round %d", m.Peer.Name, m.kind, m.N, m.latency, m.round)
}

// latencies are those of Neutron. The last one is that of most measurements.
var latencies = []time.Duration{0, 20 * time.Millisecond}

// oneByOne is the number of Networks that another tenant creates one after the other.
const oneByOne = 3000

// schedule returns the measurements. In each round, the programs alternate.
func (b *bench) schedule() (all []step) {
	usual := latencies[len(latencies)-1]
	for round := range b.rounds {
		for _, latency := range latencies {
			for _, p := range peers {
				all = append(all, step{Peer: p, kind: life, latency: latency, N: b.n, round: round + 1})
			}
		}
	}
	for _, p := range []peer{ours, onControllerRuntime} {
		all = append(all, step{Peer: p, kind: atRest, latency: usual, N: b.n})
	}
	return append(all, step{Peer: ours, kind: atRest, latency: usual, N: b.most},
		step{Peer: ours, kind: tenant, latency: usual, N: b.most, AtATime: users},
		step{Peer: ours, kind: tenant, latency: usual, N: min(b.most, oneByOne), AtATime: 1})
}

// compare measures everything, and writes the page after each measurement, so that an
// interrupted run leaves the results that it has.
func (b *bench) compare(ctx context.Context) error {
	all, err := b.newResults(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	for _, m := range b.schedule() {
		fmt.Printf("%5.0fs  %v\n", time.Since(began).Seconds(), m)
		var found figures
		err := onSite(ctx, b.root, m, func(s *site) (err error) {
			found, err = s.measure(ctx, m)
			return err
		})
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted; the page has the results so far: %w", ctx.Err())
		}
		if err != nil {
			fmt.Println("failed:", err)
			all.Failed = append(all.Failed, m)
		} else {
			all.all = append(all.all, result{m, found})
		}
		if err := all.write(b.pages); err != nil {
			return err
		}
	}
	fmt.Printf("%5.0fs  the results are in build/bench/benchmarks.md\n", time.Since(began).Seconds())
	return nil
}
