package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/component-base/metrics/legacyregistry"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/metrics"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/observe"
)

// metric is a metric of the controller.
type metric struct{ Name, Type, Text string }

// readMetrics records one value of each metric, since the registry returns no
// metric without values, and returns those of the controller.
func readMetrics() (all []metric, err error) {
	metrics.SetVersion("")
	metrics.ObserveReady(time.Second)
	_, endRequest := metrics.Observer{}.Begin(context.Background(),
		observe.Work{Kind: observe.Request, Server: metrics.Neutron})
	endRequest(observe.Result{})
	listing := neutron.Listing{Cloud: "RegionOne/project", Quotas: map[string]neutron.Quota{"network": {}}}
	new(metrics.Cloud).ObserveListing(listing, time.Second, nil)
	metrics.CountRequests(func() (inFlight, waiting int) { return 0, 0 })
	metrics.CountNetworks(func() []*samplecrdv1.Network { return []*samplecrdv1.Network{{}} })

	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		return nil, fmt.Errorf("gathering the metrics: %w", err)
	}
	for _, family := range families {
		if !strings.HasPrefix(family.GetName(), "samplecrd_") {
			continue
		}
		var labels []string
		for _, label := range family.GetMetric()[0].GetLabel() {
			labels = append(labels, label.GetName())
		}
		name := family.GetName()
		if labels != nil {
			slices.Sort(labels)
			name += "{" + strings.Join(labels, ",") + "}"
		}
		text := strings.TrimPrefix(family.GetHelp(), "[ALPHA] ")
		all = append(all, metric{name, strings.ToLower(family.GetType().String()), text})
	}
	if len(all) == 0 {
		return nil, errors.New("the registry has no metric of the controller")
	}
	return all, nil
}
