package main

import (
	"fmt"
	"math"
)

// The goals.
const (
	minShare, minShareSchemaless = 0.9, 0.75
	maxTenantFactor              = 2
	maxMemory                    = 100 // MB, at goalSize
	maxCheckCPU                  = 1   // seconds, at goalSize
	maxQuiet                     = 10  // seconds, at goalSize
	goalSize                     = 10_000
)

// goals are the rows of the table that compares the figures of this controller with the
// goals. What was not measured is not in it.
type goals struct{ rows [][]string }

func (g *goals) add(figure, goal, measured string, reached bool) {
	result := "not reached"
	if reached {
		result = "reached"
	}
	g.rows = append(g.rows, []string{figure, goal, measured, result})
}

// Goals compares the figures of this controller with the goals.
func (r *results) Goals() string {
	g := &goals{}
	r.addShares(g, nameRoofline, "on our CRD", minShare)
	r.addShares(g, nameSchemaless, "on a CRD without a schema", minShareSchemaless)
	r.addRequests(g, "requests to Neutron", calls, []float64{2, 1, 1})
	r.addRequests(g, "writes to Kubernetes", networks, []float64{2, 1, 1})
	r.addRequests(g, "Events", events, []float64{1, 1, 1})
	for _, one := range r.Rests {
		if one.Peer == nameOurs {
			g.addRest(one)
		}
	}
	for _, one := range r.Besides {
		factor := one.Together.Ready.P99 / one.Alone.Ready.P99
		figure := fmt.Sprintf("a new Network beside %s that another tenant creates, %d at a time, p99", number(one.N),
			one.AtATime)
		g.add(figure, fmt.Sprintf("at most %d times its time alone", maxTenantFactor), fmt.Sprintf("%.1f times", factor),
			factor <= maxTenantFactor)
	}
	return table([]string{"figure", "goal", "measured", ""}, g.rows)
}

func (r *results) addShares(g *goals, of, title string, least float64) {
	for _, latency := range latencies {
		if s := r.shares(nameOurs, of, latency); len(s) > 0 {
			figure := fmt.Sprintf("throughput of creating, share of the bare client %s, %d ms", title, latency.Milliseconds())
			g.add(figure, fmt.Sprintf("at least %.2f", least), s.text("%.2f"), s.median() >= least)
		}
	}
}

// addRequests compares how many requests a Network takes to create, edit and delete.
func (r *results) addRequests(g *goals, title string, count func(requests) int, most []float64) {
	measured := r.counted(nameOurs, count)
	if len(measured) == 0 {
		return
	}
	reached := true
	for i, median := range measured {
		reached = reached && math.Round(100*median)/100 <= most[i]
	}
	g.add(title+" to create / edit / delete", "at most "+slashed("%.0f", most), slashed("%.2f", measured), reached)
}

// addRest compares this controller at rest. A list of n networks and n subnets comes in
// pages of 1,000, of which Neutron's last may be empty.
func (g *goals) addRest(one resting) {
	size, most := number(one.N), 2*((one.N+999)/1000)+2
	limit := fmt.Sprintf("at most %d requests to Neutron, no writes", most)
	add := func(figure, goal string, c cost, most int) {
		g.add(fmt.Sprintf(figure, size), goal, fmt.Sprintf("%d requests, %d writes", c.toNeutron(), c.writes()),
			c.toNeutron() <= most && c.writes() == 0)
	}
	add("drift check of %s healthy Networks", limit, one.Check, most)
	add("restart with %s healthy Networks", limit+"; two more try the connection", one.Restart, most+2)
	if one.N < goalSize {
		return
	}
	g.add("CPU time of a drift check of "+size, fmt.Sprintf("less than %d s", maxCheckCPU),
		fmt.Sprintf("%.2f s", one.Check.Peer), one.Check.Peer < maxCheckCPU)
	g.add("quiet after a restart with "+size, fmt.Sprintf("within %d s", maxQuiet),
		fmt.Sprintf("%.1f s", one.Quiet), one.Quiet <= maxQuiet)
	g.add("memory at "+size+" Networks", fmt.Sprintf("at most %d MB", maxMemory),
		fmt.Sprintf("%.0f MB at rest, peak %.0f MB", one.Resident, one.Peak), one.Resident <= maxMemory)
}
