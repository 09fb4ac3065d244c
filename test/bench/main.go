// Command bench measures this controller beside others that do its work: how fast,
// with how many requests, and with how much CPU time and memory. `make bench` builds
// and runs it. It writes docs/benchmarks.md, which describes what is measured.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/samplecrd/network-controller/test/controlplane"
	"github.com/samplecrd/network-controller/test/internal/process"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == neutronCommand {
		exit(serveNeutron())
		return
	}
	b, err := parseFlags()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), process.StopSignals...)
	defer stop()
	exit(b.run(ctx))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench is a run of this program.
type bench struct {
	peers     []peer
	sizes     []int
	latencies []time.Duration
	rounds    int
	workers   int
	giveUp    time.Duration
	limit     time.Duration
	short     bool
	output    string // folder of the page and its images
	results   *results

	mu sync.Mutex // guards site.made
}

func parseFlags() (*bench, error) {
	b := &bench{}
	var sizes, latencies, only string
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return nil, err
	}
	flag.StringVar(&sizes, "n", "100,1000,10000", "comma-separated `numbers` of Networks")
	flag.StringVar(&latencies, "latency", "0s,20ms", "comma-separated `times` that Neutron takes for a request")
	flag.IntVar(&b.rounds, "rounds", 3, "number of rounds, of which the median is taken; 10,000 Networks get one")
	flag.IntVar(&b.workers, "workers", 32, "workers of each peer")
	flag.StringVar(&only, "only", "", "comma-separated `names` of the peers to measure; defaults to all")
	flag.DurationVar(&b.giveUp, "give-up", 90*time.Second, "time after which a phase is not finished")
	flag.DurationVar(&b.limit, "limit", 25*time.Minute, "time after which no measurement begins any more")
	flag.BoolVar(&b.short, "short", false, "measure only 100 Networks, in one round and in about a minute")
	flag.StringVar(&b.output, "output", filepath.Join(root, "build", "bench"), "`folder` for benchmarks.md and images/")
	flag.Parse()
	if flag.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	if b.short {
		sizes, b.rounds, b.giveUp = "100", 1, 20*time.Second
	}
	if b.peers, err = selectPeers(allPeers(root), only); err != nil {
		return nil, err
	}
	if b.sizes, err = parseList(sizes, strconv.Atoi); err != nil {
		return nil, fmt.Errorf("-n: %w", err)
	}
	if b.latencies, err = parseList(latencies, time.ParseDuration); err != nil {
		return nil, fmt.Errorf("-latency: %w", err)
	}
	if b.output, err = filepath.Abs(b.output); err != nil {
		return nil, err
	}
	return b, nil
}

func parseList[T any](text string, parse func(string) (T, error)) (all []T, err error) {
	for one := range strings.SplitSeq(text, ",") {
		value, err := parse(strings.TrimSpace(one))
		if err != nil {
			return nil, err
		}
		all = append(all, value)
	}
	return all, nil
}

// large is the size from which each measurement gets a Kubernetes of its own, one
// round, and no edits and deletions, which would take as long as creating.
const large = 5000

func (b *bench) run(ctx context.Context) error {
	if err := os.MkdirAll(b.output, 0o755); err != nil {
		return err
	}
	began := time.Now()
	var shared *site
	defer func() {
		if shared != nil {
			_ = shared.stop()
		}
	}()
	for _, step := range b.schedule() {
		if time.Since(began) > b.limit {
			fmt.Printf("%v are over: the rest is not measured\n", b.limit)
			break
		}
		if shared == nil {
			var err error
			if shared, err = startSite(ctx); err != nil {
				return err
			}
		}
		fmt.Printf("%5.0fs  %-20s N=%-6d latency %-5v round %d: ", time.Since(began).Seconds(), step.peer.Name, step.n, step.latency, step.round)
		r, err := b.measure(ctx, shared, step.peer, step.n, step.latency, step.n >= large)
		r.Round = step.round
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		if err != nil {
			fmt.Println("failed:", err)
			if err := shared.stop(); err != nil {
				return err
			}
			shared = nil
			continue
		}
		c := r.Create
		fmt.Printf("%d of %d ready in %.1fs (%.0f/s), p99 %.2fs, Neutron %d, writes %d, events %d, CPU ms/object %.1f API server %.1f, %.0f MB\n",
			c.Done, c.N, c.Seconds, c.rate(), c.P99, c.Neutron.total(), c.networkWrites(), c.events(), 1000*c.CPU.Peer/float64(c.Done), 1000*c.CPU.APIServer/float64(c.Done), r.Resident)
		if !r.Delete.finished() || step.n >= large || r.Delete.N == 0 {
			if err := shared.stop(); err != nil {
				return err
			}
			shared = nil
		}
	}
	return nil
}

// step is one measurement to do.
type step struct {
	peer     peer
	n, round int
	latency  time.Duration
}

// schedule returns the measurements: the peers alternate in each round.
func (b *bench) schedule() (all []step) {
	for _, n := range b.sizes {
		rounds := b.rounds
		if n >= large {
			rounds = 1
		}
		for round := range rounds {
			for _, latency := range b.latencies {
				for _, p := range b.peers {
					all = append(all, step{p, n, round + 1, latency})
				}
			}
		}
	}
	return all
}

type results struct{}
