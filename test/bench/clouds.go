package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/samplecrd/network-controller/pkg/clouds"
	"github.com/samplecrd/network-controller/test/keystone"
)

// cloudCounts are the numbers of clouds, one for each namespace.
var cloudCounts = []int{1, 10, 100}

const networksOfCloud = 100

var cloudRows = []row{
	{"memory", "%.0f MB", "Memory"},
	{"its peak since the start", "%.0f MB", "Peak"},
	{"start: CPU time", "%.1f s", "startProgram"},
	{"start: requests to Neutron and Keystone", "%.0f", "startCloud"},
	{"start: logins", "%.0f", "Logins"},
	{"a minute at rest: requests to Neutron", "%.0f", "restCloud"},
	{"a minute at rest: Secrets read", "%.0f", "restSecrets"},
	{"a minute at rest: CPU time", "%.2f s", "restProgram"},
}

// openStack is a cloud with a project for each namespace.
type openStack struct{ *keystone.Cloud }

func (o openStack) flag() string { return "-allowed-auth-urls=" + o.URL }

func (o openStack) requests() (all, complete int) { return int(o.Requests.Load()), 0 }

// measureClouds prints what each number of clouds costs, as a table in Markdown.
func measureClouds(ctx context.Context, root string) error {
	cloud := openStack{keystone.Start()}
	s := &site{
		root: root, peer: ours, cloud: cloud,
		namespace: func(i int) string { return "cloud-" + strconv.Itoa(i/networksOfCloud) },
		flags:     []string{"-leader-elect=false", "-deployment-networks=none", "-workers=8"},
	}
	return s.use(ctx, func() error {
		var headers []string
		var all []figures
		have := 0
		for _, n := range cloudCounts {
			found, err := s.withClouds(ctx, cloud, have, n)
			if err != nil {
				return fmt.Errorf("%d clouds: %w", n, err)
			}
			have, headers, all = n, append(headers, fmt.Sprintf("%d clouds", n)), append(all, found)
		}
		fmt.Println(columns(cloudRows, headers, all))
		return nil
	})
}

// withClouds adds clouds, and measures a restart and a minute at rest.
func (s *site) withClouds(ctx context.Context, cloud openStack, have, n int) (figures, error) {
	s.stopPeer()
	if err := s.startPeer(s.flags...); err != nil {
		return nil, err
	}
	for i := have; i < n; i++ {
		if err := s.addCloud(ctx, cloud, s.namespace(i*networksOfCloud)); err != nil {
			return nil, err
		}
		if _, err := s.create(ctx, i*networksOfCloud, (i+1)*networksOfCloud); err != nil {
			return nil, err
		}
	}
	s.stopPeer()
	found, logins := figures{}, cloud.Logins.Load()
	start, err := s.costOf(ctx, func() error {
		if err := s.startPeer(s.flags...); err != nil {
			return err
		}
		return pause(ctx, resyncPeriod-5*time.Second) // the next list is no part of it
	})
	if err != nil {
		return nil, err
	}
	found.add("start", start)
	found["Logins"] = float64(cloud.Logins.Load() - logins)
	rest, err := s.costOf(ctx, func() error { return pause(ctx, time.Minute) })
	found.add("rest", rest)
	found.add("", memory(s.process.PID()))
	return found, err
}

// addCloud adds a project, and a namespace with its Secret.
func (s *site) addCloud(ctx context.Context, cloud openStack, namespace string) error {
	if err := s.createNamespace(ctx, namespace); err != nil {
		return err
	}
	secret, err := json.Marshal(object{
		"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": clouds.SecretName},
		"stringData": object{"clouds.yaml": cloud.AddProject(namespace).CloudsYAML()},
	})
	if err != nil {
		return err
	}
	return s.kube.Post().AbsPath("/api/v1/namespaces", namespace, "secrets").Body(secret).Do(ctx).Error()
}
