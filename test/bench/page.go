package main

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/template"
)

//go:embed benchmarks.md.tmpl
var pageTemplate string

// writePage writes the page, and its images into a folder beside it.
func (r *results) writePage(path, images string) error {
	t, err := template.New("benchmarks.md").Funcs(template.FuncMap{"join": strings.Join}).Parse(pageTemplate)
	if err != nil {
		return err
	}
	var page bytes.Buffer
	if err := t.Execute(&page, r); err != nil {
		return err
	}
	errs := []error{os.WriteFile(path, page.Bytes(), 0o644)}
	for name, svg := range r.plots() {
		errs = append(errs, os.WriteFile(filepath.Join(images, "benchmark-"+name+".svg"), []byte(svg), 0o644))
	}
	return errors.Join(errs...)
}

// sizes returns the numbers of Networks that were measured.
func (r *results) sizes() (all []int) {
	for _, one := range r.Runs {
		all = append(all, one.N)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Compared is the size with which the peers are compared: the largest that has
// several rounds.
func (r *results) Compared() (n int) {
	for _, one := range r.sizes() {
		if n == 0 || one < large {
			n = one
		}
	}
	return n
}

// latencies returns the latencies that were measured, in seconds.
func (r *results) latencies() (all []float64) {
	for _, one := range r.Runs {
		all = append(all, one.Latency.Seconds())
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// mainLatency is the latency of the measurements at all sizes.
func (r *results) mainLatency() float64 {
	all := r.latencies()
	if len(all) == 0 {
		return 0
	}
	return all[len(all)-1]
}

// MainLatency returns it as a text.
func (r *results) MainLatency() string { return fmt.Sprintf("%.0f ms", 1000*r.mainLatency()) }

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

// perSize returns a table with a row for each peer and a column for each size.
func (r *results) perSize(format string, value func(run) float64) string {
	var header []string
	for _, n := range r.sizes() {
		header = append(header, "N = "+number(float64(n)))
	}
	return perPeer(header, func(p peer) (cells []string) {
		for _, n := range r.sizes() {
			cells = append(cells, spreadOf(r.of(p.Name, n, r.mainLatency()), value).text(format))
		}
		return cells
	})
}

// finished returns a value of creating, or NaN if that did not finish.
func finished(value func(phase) float64) func(run) float64 {
	return func(one run) float64 {
		if !one.Create.finished() {
			return math.NaN()
		}
		return value(one.Create)
	}
}

func rate(one run) float64 { return one.Create.rate() }

// each returns a number of milliseconds for each Network.
func each(seconds func(usage) float64) func(run) float64 {
	return func(one run) float64 { return 1000 * seconds(one.Create.CPU) / float64(max(1, one.Create.Done)) }
}

// The tables of the page.

// Throughput compares the peers with each other.
func (r *results) Throughput() string {
	var header []string
	for _, latency := range r.latencies() {
		header = append(header, fmt.Sprintf("%.0f ms: Networks/s", 1000*latency), "share of the bare client", "without a schema")
	}
	n := r.Compared()
	return perPeer(header, func(p peer) (cells []string) {
		for _, latency := range r.latencies() {
			cells = append(cells, spreadOf(r.of(p.Name, n, latency), rate).text("%.0f"),
				r.shares(p.Name, nameRoofline, n, latency).text("%.2f"), r.shares(p.Name, nameSchemaless, n, latency).text("%.2f"))
		}
		return cells
	})
}

// Rates is the throughput against the size.
func (r *results) Rates() string { return r.perSize("%.0f", rate) }

// Unfinished returns the measurements that were given up.
func (r *results) Unfinished() (all []string) {
	for _, one := range r.Runs {
		for what, p := range map[string]phase{"created": one.Create, "edited": one.Edit, "deleted": one.Delete} {
			if p.N > 0 && !p.finished() {
				all = append(all, fmt.Sprintf("%s: %s of %s Networks %s in %.0f s", titleOf(one.Peer), number(float64(p.Done)), number(float64(p.N)), what, p.Seconds))
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func titleOf(name string) string {
	for _, p := range allPeers("") {
		if p.Name == name {
			return p.Title
		}
	}
	return name
}

// Median and Slowest are the times from the user's request to Ready.
func (r *results) Median() string {
	return r.perSize("%.2f", finished(func(p phase) float64 { return p.P50 }))
}

// Slowest is the 99th percentile.
func (r *results) Slowest() string {
	return r.perSize("%.2f", finished(func(p phase) float64 { return p.P99 }))
}

// perNetwork returns how many requests there were for each Network, or NaN.
func perNetwork(p phase, requests int) float64 {
	if !p.finished() || p.N == 0 {
		return math.NaN()
	}
	return float64(requests) / float64(p.N)
}

// neutronCalls are the requests to Neutron without lists of everything, which do not
// depend on the number of changes.
func neutronCalls(p phase) int {
	sum := 0
	for name, n := range p.Neutron {
		if !strings.HasPrefix(name, "LIST") {
			sum += n
		}
	}
	return sum
}

var phases = []func(run) phase{
	func(one run) phase { return one.Create },
	func(one run) phase { return one.Edit },
	func(one run) phase { return one.Delete },
}

// counted returns the requests per Network of each phase, at the compared size.
func (r *results) counted(name string, count func(phase) int) [3]spread {
	var spreads [3]spread
	for i, part := range phases {
		spreads[i] = spreadOf(r.of(name, r.Compared(), r.mainLatency()), func(one run) float64 { return perNetwork(part(one), count(part(one))) })
	}
	return spreads
}

func slashed(spreads [3]spread) string {
	var texts []string
	for _, s := range spreads {
		text := "–"
		if s.Count > 0 {
			text = fmt.Sprintf("%.2f", s.Median)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, " / ")
}

// Requests are the requests per Network.
func (r *results) Requests() string {
	return perPeer([]string{"Neutron", "Kubernetes, without Events", "Events"}, func(p peer) []string {
		return []string{
			slashed(r.counted(p.Name, neutronCalls)),
			slashed(r.counted(p.Name, phase.networkWrites)),
			slashed(r.counted(p.Name, phase.events)),
		}
	})
}

// Events is the time until all Events were sent.
func (r *results) Events() string {
	return r.perSize("%.1f", finished(func(p phase) float64 { return p.EventsSent }))
}

// CPUTable is the CPU time for each Network.
func (r *results) CPUTable() string {
	n := r.Compared()
	return perPeer([]string{"program", "API server", "etcd", "Neutron"}, func(p peer) (cells []string) {
		for _, of := range []func(usage) float64{
			func(u usage) float64 { return u.Peer }, func(u usage) float64 { return u.APIServer },
			func(u usage) float64 { return u.Etcd }, func(u usage) float64 { return u.Neutron },
		} {
			cells = append(cells, spreadOf(r.of(p.Name, n, r.mainLatency()), each(of)).text("%.1f"))
		}
		return cells
	})
}

// CPUSizes is the CPU time of the program against the size.
func (r *results) CPUSizes() string {
	return r.perSize("%.1f", each(func(u usage) float64 { return u.Peer }))
}

// Memory is the memory against the size.
func (r *results) Memory() string {
	return r.perSize("%.0f", func(one run) float64 { return one.Resident })
}

// Peaks is the peak of the memory.
func (r *results) Peaks() string {
	return r.perSize("%.0f", func(one run) float64 { return one.Peak })
}

// AtRest has the drift checks and restarts.
func (r *results) AtRest() string {
	var rows [][]string
	for _, one := range r.Rests {
		quiet := fmt.Sprintf("%.1f s", one.Restart.Seconds)
		if !one.Restart.Done {
			quiet = "never, within " + fmt.Sprintf("%.0f s", one.Restart.Seconds)
		}
		rows = append(rows, []string{
			titleOf(one.Peer), number(float64(one.N)),
			number(float64(one.Check.Neutron.total())), number(float64(one.Check.Writes.total())), fmt.Sprintf("%.2f s", one.Check.CPU.Peer),
			number(float64(one.Restart.Neutron.total())), number(float64(one.Restart.Writes.total())), fmt.Sprintf("%.2f s", one.Restart.CPU.Peer), quiet,
			fmt.Sprintf("%.0f MB", one.Resident),
		})
	}
	return table([]string{"", "N", "check: Neutron", "writes", "CPU", "restart: Neutron", "writes", "CPU", "quiet after", "memory"}, rows)
}

// Tenants has the times of a Network beside many others.
func (r *results) Tenants() string {
	var rows [][]string
	for _, one := range r.Besides {
		ms := func(seconds float64) string { return fmt.Sprintf("%.0f ms", 1000*seconds) }
		row := func(when string, p pace) []string {
			return []string{when, strconv.Itoa(p.Ready.Count), ms(p.Ready.P50), ms(p.Ready.P99), ms(p.Accepted.P50), ms(p.Accepted.P99)}
		}
		rows = append(rows, row("alone", one.Alone), row(fmt.Sprintf("beside %s, %d at a time", number(float64(one.N)), one.AtATime), one.Together))
	}
	return table([]string{"", "repetitions", "Ready: median", "p99", "the user's request: median", "p99"}, rows)
}

// plots returns the images by their names.
func (r *results) plots() map[string]string {
	lines := func(value func(run) float64) (all []line) {
		for _, p := range allPeers("") {
			l := line{name: p.Title}
			for _, n := range r.sizes() {
				if s := spreadOf(r.of(p.Name, n, r.mainLatency()), value); s.Count > 0 {
					l.points = append(l.points, [2]float64{float64(n), s.Median})
				}
			}
			all = append(all, l)
		}
		return all
	}
	return map[string]string{
		"throughput": plot("Networks ready per second, until all are ready", "1/s", lines(rate)),
		"latency":    plot("Seconds from creation to Ready, 99th percentile", "s", lines(finished(func(p phase) float64 { return p.P99 }))),
		"cpu":        plot("CPU time of the program for each Network", "ms", lines(each(func(u usage) float64 { return u.Peer }))),
		"memory":     plot("Memory of the program after creating", "MB", lines(func(one run) float64 { return one.Resident })),
	}
}
