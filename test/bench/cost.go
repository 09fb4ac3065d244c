package main

import (
	"context"
	"regexp"
	"strconv"

	"github.com/prometheus/procfs"
)

// figures are what a measurement has found, by name.
type figures map[string]float64

// add adds other figures, with a prefix before their names.
func (f figures) add(prefix string, others figures) {
	for name, value := range others {
		f[prefix+name] = value
	}
}

// costOf returns what a piece of work takes: CPU time in seconds and numbers of requests.
// To count requests takes CPU time, too, which is not in it.
func (s *site) costOf(ctx context.Context, work func() error) (figures, error) {
	cost := figures{}
	requests, err := s.requests(ctx)
	if err != nil {
		return nil, err
	}
	cpu := s.cpuTime()
	if err := work(); err != nil {
		return nil, err
	}
	cost.add("", s.cpuTime())
	after, err := s.requests(ctx)
	cost.add("", after)
	for _, before := range []figures{cpu, requests} {
		for name, value := range before {
			cost[name] -= value
		}
	}
	return cost, err
}

// cpuTime returns the CPU time that each process has used, in seconds.
func (s *site) cpuTime() figures {
	pids := s.cluster.PIDs()
	f := figures{"Program": 0, "APIServer": cpuSeconds(pids["kube-apiserver"]), "Etcd": cpuSeconds(pids["etcd"])}
	if s.process != nil {
		f["Program"] = cpuSeconds(s.process.PID())
	}
	return f
}

// counter matches a counter of the API server for requests.
var counter = regexp.MustCompile(
	`(?m)^apiserver_request_total\{.*resource="(networks|events|secrets)".*verb="([A-Z]+)".*\} (\S+)$`)

// requests returns how many requests the cloud has received (all of them, and Calls: without
// complete lists), how many writes the API server, and how many Secrets it has returned.
func (s *site) requests(ctx context.Context) (figures, error) {
	all, complete := s.cloud.requests()
	f := figures{"Cloud": float64(all), "Calls": float64(all - complete), "Writes": 0, "Events": 0, "Secrets": 0}
	names := map[string]string{"networks": "Writes", "events": "Events"}
	metrics, err := s.kube.Get().AbsPath("/metrics").DoRaw(ctx)
	for _, match := range counter.FindAllSubmatch(metrics, -1) {
		value, _ := strconv.ParseFloat(string(match[3]), 64)
		switch kind, verb := string(match[1]), string(match[2]); {
		case kind == "secrets" && verb == "GET":
			f["Secrets"] += value
		case verb != "GET" && verb != "LIST" && verb != "WATCH" && kind != "secrets":
			f[names[kind]] += value
		}
	}
	f["Changes"] = f["Writes"] + f["Events"]
	return f, err
}

// cpuSeconds returns the CPU time that a process has used, in user and kernel mode.
func cpuSeconds(pid int) float64 {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return 0
	}
	stat, _ := process.Stat() // it fails if the process has ended
	return stat.CPUTime()
}

// memory returns the resident memory of a process and its peak, in MB (10⁶ bytes).
func memory(pid int) figures {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return nil
	}
	status, _ := process.NewStatus()
	return figures{"Memory": float64(status.VmRSS) / 1e6, "Peak": float64(status.VmHWM) / 1e6}
}
