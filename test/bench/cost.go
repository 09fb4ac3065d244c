package main

import (
	"context"
	"regexp"
	"strconv"

	"github.com/prometheus/procfs"
)

// cost is what a piece of work took.
type cost struct {
	cpuTime
	requests
}

// cpuTime is that of the processes, in seconds.
type cpuTime struct{ Peer, APIServer, Etcd float64 }

func (c cpuTime) minus(before cpuTime) cpuTime {
	return cpuTime{c.Peer - before.Peer, c.APIServer - before.APIServer, c.Etcd - before.Etcd}
}

// requests are numbers of requests.
type requests struct {
	Calls, Lists     int // to Neutron; lists are those of everything
	Networks, Events int // writes to Kubernetes
}

func (r requests) minus(before requests) requests {
	return requests{
		r.Calls - before.Calls, r.Lists - before.Lists,
		r.Networks - before.Networks, r.Events - before.Events,
	}
}

func (r requests) toNeutron() int { return r.Calls + r.Lists }
func (r requests) writes() int    { return r.Networks + r.Events }

// costOf returns what a piece of work takes. To count requests takes CPU time, too, which
// is not in it.
func (s *site) costOf(ctx context.Context, work func() error) (c cost, err error) {
	before, err := s.requests(ctx)
	if err != nil {
		return c, err
	}
	cpu := s.cpuTime()
	if err := work(); err != nil {
		return c, err
	}
	c.cpuTime = s.cpuTime().minus(cpu)
	after, err := s.requests(ctx)
	c.requests = after.minus(before)
	return c, err
}

func (s *site) cpuTime() cpuTime {
	pids := s.cluster.PIDs()
	c := cpuTime{APIServer: cpuSeconds(pids["kube-apiserver"]), Etcd: cpuSeconds(pids["etcd"])}
	if s.process != nil {
		c.Peer = cpuSeconds(s.process.PID())
	}
	return c
}

// write matches a counter of the API server for writes of Networks or Events.
var write = regexp.MustCompile(
	`(?m)^apiserver_request_total\{.*resource="(networks|events)".*verb="(?:POST|PUT|PATCH|APPLY|DELETE)".*\} (\S+)$`)

// requests returns how many requests Neutron and the API server have received.
func (s *site) requests(ctx context.Context) (requests, error) {
	all := s.neutron.requests()
	metrics, err := s.kube.Get().AbsPath("/metrics").DoRaw(ctx)
	for _, counter := range write.FindAllSubmatch(metrics, -1) {
		value, _ := strconv.ParseFloat(string(counter[2]), 64)
		if string(counter[1]) == "events" {
			all.Events += int(value)
		} else {
			all.Networks += int(value)
		}
	}
	return all, err
}

// cpuSeconds returns the CPU time that a process has used, in user and kernel mode.
func cpuSeconds(pid int) float64 {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return 0
	}
	stat, err := process.Stat()
	if err != nil {
		return 0
	}
	return stat.CPUTime()
}

// memory returns the resident memory of a process and its peak, in MB (10⁶ bytes).
func memory(pid int) (resident, peak float64) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return 0, 0
	}
	status, err := process.NewStatus()
	if err != nil {
		return 0, 0
	}
	return float64(status.VmRSS) / 1e6, float64(status.VmHWM) / 1e6
}
