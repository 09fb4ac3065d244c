// Command bench measures this controller beside others that do its work: how fast,
// with how many requests, and with how much CPU time and memory. `make bench` builds
// and runs it. It writes benchmarks.md, which describes what is measured, and keeps
// the results in results.json after each measurement.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
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
	root    string
	peers   []peer
	sizes   []int
	latency []time.Duration
	rounds  int
	workers int
	giveUp  time.Duration
	limit   time.Duration
	short   bool
	docs    bool
	from    string
	atScale bool
	output  string // folder of the results

	results results
	mu      sync.Mutex // guards site.made
}

func parseFlags() (b *bench, err error) {
	b = &bench{}
	var sizes, latency, only string
	if b.root, err = controlplane.ModuleRoot(); err != nil {
		return nil, err
	}
	flag.StringVar(&sizes, "n", "100,1000,10000", "comma-separated `numbers` of Networks")
	flag.StringVar(&latency, "latency", "0s,20ms", "comma-separated `times` that Neutron takes for a request; the last one is that of most measurements")
	flag.IntVar(&b.rounds, "rounds", 3, "number of rounds, of which the median is taken; 5,000 Networks or more get one round")
	flag.IntVar(&b.workers, "workers", 32, "number of workers of each program")
	flag.StringVar(&only, "only", "", "comma-separated `names` of the programs to measure; defaults to all")
	flag.DurationVar(&b.giveUp, "give-up", 2*time.Minute, "time after which a measurement is not finished")
	flag.DurationVar(&b.limit, "limit", 22*time.Minute, "time after which no measurement begins any more")
	flag.BoolVar(&b.short, "short", false, "measure only 100 Networks, in one round, and only this controller at rest")
	flag.BoolVar(&b.docs, "docs", false, "write docs/benchmarks.md and its images, too")
	flag.StringVar(&b.from, "from", "", "`path` of results.json: write the page from it, and measure nothing")
	flag.BoolVar(&b.atScale, "scale", false, "measure only what this controller and Kubernetes cost at each number of Networks, of which 500 are created and the others copied")
	flag.StringVar(&b.output, "output", filepath.Join(b.root, "build", "bench"), "`folder` for results.json, benchmarks.md and its images")
	flag.Parse()
	if flag.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	if b.short {
		sizes, b.rounds, b.giveUp = "100", 1, 40*time.Second
	}
	if b.peers, err = selectPeers(allPeers(b.root), only); err != nil {
		return nil, err
	}
	if b.sizes, err = parseList(sizes, strconv.Atoi); err != nil {
		return nil, fmt.Errorf("-n: %w", err)
	}
	if b.latency, err = parseList(latency, time.ParseDuration); err != nil {
		return nil, fmt.Errorf("-latency: %w", err)
	}
	slices.Sort(b.sizes)
	b.output, err = filepath.Abs(b.output)
	return b, err
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

// run measures everything, and writes the page after each measurement, so that an
// interrupted run leaves the results that it has.
func (b *bench) run(ctx context.Context) error {
	if b.from != "" {
		if err := b.results.read(b.from); err != nil {
			return err
		}
		return b.write()
	}
	if b.atScale {
		return b.scale(ctx)
	}
	b.results = newResults(ctx, b)
	began := time.Now()
	var s *site
	defer func() {
		if s != nil {
			_ = s.stop()
		}
	}()
	for _, step := range b.schedule() {
		if since := time.Since(began); since > b.limit {
			fmt.Printf("%5.0fs  the limit of %v is over: the rest is not measured\n", since.Seconds(), b.limit)
			break
		}
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted; the page has the results so far: %w", ctx.Err())
		}
		if s == nil {
			var err error
			if s, err = startSite(ctx); err != nil {
				return err
			}
		}
		fmt.Printf("%5.0fs  %-52s", time.Since(began).Seconds(), step.name)
		clean, err := step.measure(ctx, s)
		if err != nil {
			fmt.Println("failed:", err)
			b.results.Failed = append(b.results.Failed, step.name)
		}
		s.stopPeer()
		if !clean || err != nil {
			if err := s.stop(); err != nil {
				return err
			}
			s = nil
		}
		if err := b.write(); err != nil {
			return err
		}
	}
	fmt.Printf("%5.0fs  the results are in %s\n", time.Since(began).Seconds(), b.output)
	return nil
}
