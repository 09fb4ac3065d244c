package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// goal is what a figure has to be.
type goal struct {
	figure, goal, measured string
	known, reached         bool
}

// The goals.
const (
	minShare, minShareSchemaless = 0.9, 0.75
	maxTenantFactor              = 2
	maxMemory                    = 100 // MB, at goalSize
	maxCheckCPU                  = 1   // seconds, at goalSize
	maxQuiet                     = 10  // seconds, at goalSize
	goalSize                     = 10_000
)

// callGoals are requests for creating, editing and deleting one Network.
var (
	callGoals  = [3]float64{2, 1, 1}
	writeGoals = [3]float64{2, 1, 1}
	eventGoals = [3]float64{1, 1, 1}
)

// Goals compares the figures of this controller with the goals.
func (r *results) Goals() string {
	var rows [][]string
	for _, g := range r.goals() {
		result := map[bool]string{true: "reached", false: "not reached"}[g.reached]
		if !g.known {
			g.measured, result = "not measured", "–"
		}
		rows = append(rows, []string{g.figure, g.goal, g.measured, result})
	}
	return table([]string{"figure", "goal", "measured", ""}, rows)
}

func (r *results) goals() (all []goal) {
	for _, compared := range []struct {
		name, title string
		min         float64
	}{{nameRoofline, "on our CRD", minShare}, {nameSchemaless, "on a CRD without a schema", minShareSchemaless}} {
		for _, latency := range r.latencies() {
			s := r.shares(nameOurs, compared.name, r.Compared(), latency)
			all = append(all, goal{
				fmt.Sprintf("throughput of creating, share of the bare client %s, %.0f ms", compared.title, 1000*latency),
				fmt.Sprintf("at least %.2f", compared.min), s.text("%.2f"), s.Count > 0, s.Median >= compared.min,
			})
		}
	}
	for _, counted := range []struct {
		title, prefix string
		count         func(phase) int
		goals         [3]float64
	}{
		{"requests to Neutron", "", neutronCalls, callGoals},
		{"writes to Kubernetes", "", phase.networkWrites, writeGoals},
		{"Events", "at most ", phase.events, eventGoals},
	} {
		all = append(all, r.countGoal(counted.title, counted.prefix, r.counted(nameOurs, counted.count), counted.goals))
	}
	all = append(all, r.restGoals()...)
	all = append(all, r.tenantGoals()...)
	return append(all, r.memoryGoal(), r.killGoal())
}

func (r *results) countGoal(title, prefix string, measured [3]spread, goals [3]float64) goal {
	g := goal{figure: title + " to create / edit / delete", measured: slashed(measured), known: true, reached: true}
	g.goal = fmt.Sprintf("%s%.0f / %.0f / %.0f", prefix, goals[0], goals[1], goals[2])
	for i, s := range measured {
		g.known = g.known && s.Count > 0
		g.reached = g.reached && math.Round(100*s.Median)/100 <= goals[i]
	}
	return g
}

// latestRest returns the measurement of this controller at rest with most Networks.
func (r *results) latestRest() (found rest, ok bool) {
	for _, one := range r.Rests {
		if one.Peer == nameOurs && one.N >= found.N {
			found, ok = one, true
		}
	}
	return found, ok
}

// maxLists is the number of requests that lists of n networks and n subnets take, in
// pages of 1,000. Neutron's last page may be empty.
func maxLists(n int) int { return 2*((n+999)/1000) + 2 }

// lists returns the requests that list everything, and the others.
func lists(all counts) (lists, others int) {
	for name, n := range all {
		if name == "LIST networks" || name == "LIST subnets" {
			lists += n
		} else {
			others += n
		}
	}
	return lists, others
}

func (r *results) restGoals() []goal {
	one, ok := r.latestRest()
	n := number(float64(one.N))
	if !ok {
		n = number(goalSize)
	}
	atSize := ok && one.N >= goalSize
	check, checkOthers := lists(one.Check.Neutron)
	restart, restartOthers := lists(one.Restart.Neutron)
	limit := fmt.Sprintf("at most %d requests to Neutron, no writes", maxLists(max(one.N, 1)))
	if !ok {
		limit = fmt.Sprintf("at most %d requests to Neutron, no writes", maxLists(goalSize))
	}
	return []goal{
		{"drift check of " + n + " healthy Networks", limit, fmt.Sprintf("%d requests, %d writes", check+checkOthers, one.Check.Writes.total()), ok, check+checkOthers <= maxLists(one.N) && one.Check.Writes.total() == 0},
		{"CPU time of a drift check of " + number(goalSize), fmt.Sprintf("less than %d s", maxCheckCPU), fmt.Sprintf("%.2f s", one.Check.CPU.Peer), atSize, one.Check.CPU.Peer < maxCheckCPU},
		{
			"restart with " + n + " healthy Networks", limit + "; two more try the connection",
			fmt.Sprintf("%d requests, %d writes", restart+restartOthers, one.Restart.Writes.total()), ok,
			restart <= maxLists(one.N) && restartOthers <= 2 && one.Restart.Writes.total() == 0,
		},
		{"quiet after a restart with " + number(goalSize), fmt.Sprintf("within %d s", maxQuiet), fmt.Sprintf("%.1f s", one.Restart.Seconds), atSize, one.Restart.Done && one.Restart.Seconds <= maxQuiet},
	}
}

// tenantGoals have a row for each way in which another tenant creates its Networks.
func (r *results) tenantGoals() (all []goal) {
	for _, how := range []struct {
		title      string
		atATime, n int
	}{{fmt.Sprintf("%d at a time", users), users, goalSize}, {"one after the other", 1, oneByOne}} {
		g := goal{
			figure: fmt.Sprintf("a new Network beside %s that another tenant creates, %s, p99", number(float64(how.n)), how.title),
			goal:   fmt.Sprintf("at most %d times its time alone", maxTenantFactor),
		}
		for _, one := range r.Besides {
			if one.Peer == nameOurs && one.AtATime == how.atATime && one.N >= how.n && one.Alone.Ready.P99 > 0 {
				factor := one.Together.Ready.P99 / one.Alone.Ready.P99
				g.measured, g.known, g.reached = fmt.Sprintf("%.1f times", factor), true, factor <= maxTenantFactor
			}
		}
		all = append(all, g)
	}
	return all
}

func (r *results) memoryGoal() goal {
	g := goal{figure: "memory at " + number(goalSize) + " Networks", goal: fmt.Sprintf("at most %d MB", maxMemory)}
	if one, ok := r.latestRest(); ok && one.N >= goalSize {
		g.known, g.reached = true, one.Resident <= maxMemory
		g.measured = fmt.Sprintf("%.0f MB at rest, peak %.0f MB", one.Resident, one.Peak)
	}
	return g
}

func (r *results) killGoal() goal {
	g := goal{figure: fmt.Sprintf("killed with a POST in flight for %.0f s", hold.Seconds()), goal: "one network in the end"}
	i := slices.IndexFunc(r.Kills, func(k killed) bool { return k.Peer == nameOurs })
	if i >= 0 {
		g.measured, g.known, g.reached = strconv.Itoa(r.Kills[i].Networks), true, r.Kills[i].Networks == 1
	}
	return g
}
