package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/samplecrd/network-controller/test/bench/bare"
)

// scale is what one size costs. Of the Networks, all but the created ones were copied
// into etcd and Neutron, as the controller had left the first one.
type scale struct {
	N       int
	Restart work  // of the controller
	Create  phase // the last ones
	// Heap is the live heap of the controller in MB; the other memory is resident.
	Heap, Memory, Peak             float64
	Standby, APIServer, Etcd       float64
	APIServerPeak                  float64 // after the list
	Database, DatabaseInUse        float64 // of etcd in MB
	ListSeconds, ListMB, ListedCPU float64 // all Networks in one response of the API server
	Check                          work
	CheckTook                      float64 // seconds that the check waited for Neutron and computed
	// HandOver is the work of a standby that takes over, and Ready the seconds from
	// the signal that stops the leader until a new Network was ready.
	HandOver work
	Ready    float64
}

// firstList is how many requests the start of a controller sends at least: one that
// tries the connection, and the lists of networks and subnets.
const firstList = 3

// created is how many Networks of each size users create.
const created = 500

// scale measures the controller at each size, in the order of the sizes.
func (b *bench) scale(ctx context.Context) error {
	s, err := startSite(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = s.stop() }()
	p, err := selectPeers(b.peers, nameOurs)
	if err != nil {
		return err
	}
	metrics, profiles, err := freeAddresses()
	if err != nil {
		return err
	}
	ours := p[0]
	ours.flags = append(ours.flags, "-metrics-bind-address="+metrics, "-profiling-bind-address="+profiles)
	m, err := b.begin(ctx, s, ours, b.mainLatency())
	if err != nil {
		return err
	}
	copies, err := m.prepareCopies(ctx)
	if err != nil {
		return err
	}
	var all []scale
	have := 1 // the one that is copied
	for _, n := range b.sizes {
		s.stopPeer()
		if err := copies.add(ctx, have, n-created-have); err != nil {
			return err
		}
		if err := s.waitForCalm(ctx); err != nil {
			return err
		}
		m.first = n - created
		measured, err := m.atScale(ctx, n, metrics, profiles)
		if err != nil {
			return fmt.Errorf("%d Networks: %w", n, err)
		}
		have = n + 1 // and that of the handover
		all = append(all, measured)
		if err := b.writeScale(all); err != nil {
			return err
		}
	}
	fmt.Print(scaleTable(all))
	return nil
}

// writeScale writes the results so far.
func (b *bench) writeScale(all []scale) error {
	text, err := json.MarshalIndent(all, "", "\t")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(b.output, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(b.output, "scale.json"), text, 0o600)
}

// scaleTable returns the results in Markdown, with a column for each size.
func scaleTable(all []scale) string {
	var text strings.Builder
	row := func(name string, cell func(s scale) string) {
		fmt.Fprintf(&text, "| %s |", name)
		for _, s := range all {
			fmt.Fprintf(&text, " %s |", cell(s))
		}
		text.WriteString("\n")
	}
	figure := func(format string, value func(s scale) float64) func(scale) string {
		return func(s scale) string { return fmt.Sprintf(format, value(s)) }
	}
	requests := func(w work) string { return fmt.Sprintf("%d, %d", w.Neutron.total(), w.Writes.total()) }
	row("Networks", func(s scale) string { return strconv.Itoa(s.N) })
	row("---", func(scale) string { return "---" })
	row("controller: live heap", figure("%.0f MB", func(s scale) float64 { return s.Heap }))
	row("controller: resident, the leader", figure("%.0f MB", func(s scale) float64 { return s.Memory }))
	row("controller: peak since its start", figure("%.0f MB", func(s scale) float64 { return s.Peak }))
	row("controller: resident, a standby", figure("%.0f MB", func(s scale) float64 { return s.Standby }))
	row("start: until quiet", figure("%.1f s", func(s scale) float64 { return s.Restart.Seconds }))
	row("start: CPU of the controller", figure("%.1f s", func(s scale) float64 { return s.Restart.CPU.Peer }))
	row("start: CPU of the API server", figure("%.1f s", func(s scale) float64 { return s.Restart.CPU.APIServer }))
	row("start: requests to Neutron, writes", func(s scale) string { return requests(s.Restart) })
	row("drift check: the list", figure("%.1f s", func(s scale) float64 { return s.CheckTook }))
	row("drift check: CPU of the controller", figure("%.1f s", func(s scale) float64 { return s.Check.CPU.Peer }))
	row("drift check: requests to Neutron, writes", func(s scale) string { return requests(s.Check) })
	row("create: Networks in a second", figure("%.0f", func(s scale) float64 { return s.Create.rate() }))
	row("create: CPU of the controller, each", figure("%.1f ms", func(s scale) float64 { return 1000 * s.Create.CPU.Peer / created }))
	row("create: CPU of the API server, each", figure("%.1f ms", func(s scale) float64 { return 1000 * s.Create.CPU.APIServer / created }))
	row("create: requests to Neutron, each", figure("%.1f", func(s scale) float64 {
		return float64(s.Create.Neutron.total()-s.Create.Neutron["LIST networks"]-s.Create.Neutron["LIST subnets"]) / created
	}))
	row("handover: a new Network is ready", figure("%.1f s", func(s scale) float64 { return s.Ready }))
	row("handover: CPU of the standby", figure("%.1f s", func(s scale) float64 { return s.HandOver.CPU.Peer }))
	row("API server: resident", figure("%.0f MB", func(s scale) float64 { return s.APIServer }))
	row("API server: peak, after a list of all", figure("%.0f MB", func(s scale) float64 { return s.APIServerPeak }))
	row("all Networks in one response", func(s scale) string { return fmt.Sprintf("%.0f MB in %.1f s", s.ListMB, s.ListSeconds) })
	row("etcd: database", figure("%.0f MB", func(s scale) float64 { return s.Database }))
	row("etcd: resident", figure("%.0f MB", func(s scale) float64 { return s.Etcd }))
	return text.String()
}

// freeAddresses returns two addresses that nothing listens on.
func freeAddresses() (metrics, profiles string, err error) {
	var addresses [2]string
	for i := range addresses {
		listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
		if err != nil {
			return "", "", err
		}
		defer func() { _ = listener.Close() }()
		addresses[i] = listener.Addr().String()
	}
	return addresses[0], addresses[1], nil
}

// waitForCalm waits until the API server has processed what was written into etcd.
func (s *site) waitForCalm(ctx context.Context) error {
	for {
		before := s.usage().APIServer
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
		if s.usage().APIServer-before < calmCPU {
			return nil
		}
	}
}

// atScale measures one size, except for the last Networks, which it creates.
func (m measurement) atScale(ctx context.Context, n int, metrics, profiles string) (r scale, err error) {
	r.N = n
	before, err := m.snapshot(ctx)
	if err != nil {
		return r, err
	}
	if err := m.site.startPeer(m.peer, m.workers); err != nil {
		return r, err
	}
	if r.Restart, err = m.workSince(ctx, before, time.Now(), firstList); err != nil {
		return r, err
	}
	if r.Check, err = m.driftCheck(ctx); err != nil {
		return r, err
	}
	if r.CheckTook, err = gauge(ctx, metrics, "samplecrd_neutron_cache_refresh_duration_seconds"); err != nil {
		return r, err
	}
	if r.Create, err = m.create(ctx, created); err != nil {
		return r, err
	}
	r.Memory, r.Peak = memory(m.site.peer.PID())
	if r.Heap, err = liveHeap(ctx, profiles); err != nil {
		return r, err
	}
	if err := m.kubernetesAt(ctx, &r); err != nil {
		return r, err
	}
	return r, m.handOver(ctx, &r)
}

// kubernetesAt measures the API server and etcd.
func (m measurement) kubernetesAt(ctx context.Context, r *scale) error {
	pids := m.site.cluster.PIDs()
	r.APIServer, _ = memory(pids["kube-apiserver"])
	r.Etcd, _ = memory(pids["etcd"])
	var status struct{ DBSize, DBSizeInUse string }
	if err := m.site.etcd(ctx, "/v3/maintenance/status", struct{}{}, &status); err != nil {
		return err
	}
	r.Database, r.DatabaseInUse = megabytes(status.DBSize), megabytes(status.DBSizeInUse)
	began, before := time.Now(), m.site.usage()
	text, err := m.site.kube.Text(ctx, "/apis/"+m.peer.group+"/v1/networks?resourceVersion=0")
	if err != nil {
		return err
	}
	r.ListSeconds, r.ListMB, r.ListedCPU = time.Since(began).Seconds(), float64(len(text))/1e6, m.site.usage().minus(before).APIServer
	_, r.APIServerPeak = memory(pids["kube-apiserver"])
	return nil
}

func megabytes(bytes string) float64 {
	n, _ := strconv.ParseFloat(bytes, 64)
	return n / 1e6
}

// handOver starts a second replica, and stops the leader.
func (m measurement) handOver(ctx context.Context, r *scale) error {
	leader := m.site.peer
	plain := m.peer
	plain.flags = nil // the addresses are in use
	before, err := m.snapshot(ctx)
	if err != nil {
		return err
	}
	if err := m.site.startPeer(plain, m.workers); err != nil {
		leader.Kill()
		return err
	}
	if _, err = m.workSince(ctx, before, time.Now(), firstList); err == nil {
		r.Standby, _ = memory(m.site.peer.PID())
		before, err = m.snapshot(ctx)
	}
	done := m.watch.expect(1)
	m.watch.begin(tenant(0)+"/"+networkName(r.N), 1)
	began := time.Now()
	leader.Stop(30 * time.Second)
	if err != nil {
		return err
	}
	if err := m.post(ctx, tenant(0), networkName(r.N), r.N); err != nil {
		return err
	}
	select {
	case <-done:
		r.Ready = time.Since(began).Seconds()
	case <-time.After(m.giveUp):
		return errors.New("the standby did not take over")
	case <-ctx.Done():
		return ctx.Err()
	}
	r.HandOver, err = m.workSince(ctx, before, began, 1)
	return err
}

// gauge returns the value of a metric of the controller.
func gauge(ctx context.Context, address, name string) (float64, error) {
	text, err := fetch(ctx, "http://"+address+"/metrics")
	if err != nil {
		return 0, err
	}
	found := regexp.MustCompile(`(?m)^` + name + `(?:\{[^}]*\})? (\S+)$`).FindSubmatch(text)
	if found == nil {
		return 0, fmt.Errorf("there is no metric %s", name)
	}
	return strconv.ParseFloat(string(found[1]), 64)
}

// liveHeap returns what the heap of the controller holds after a garbage
// collection, in MB.
func liveHeap(ctx context.Context, address string) (float64, error) {
	text, err := fetch(ctx, "http://"+address+"/debug/pprof/heap?gc=1&debug=1")
	if err != nil {
		return 0, err
	}
	found := regexp.MustCompile(`(?m)^# HeapAlloc = (\d+)$`).FindSubmatch(text)
	if found == nil {
		return 0, errors.New("the profile has no HeapAlloc")
	}
	return megabytes(string(found[1])), nil
}

func fetch(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	return exchange(http.DefaultClient, request)
}

func exchange(client *http.Client, request *http.Request) ([]byte, error) {
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	var text bytes.Buffer
	_, err = text.ReadFrom(response.Body)
	if err == nil && response.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s: status %d: %.300s", request.URL, response.StatusCode, text.Bytes())
	}
	return text.Bytes(), err
}

// etcd sends a request to etcd's JSON gateway.
func (s *site) etcd(ctx context.Context, path string, body, into any) error {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(s.cluster.Dir(), "etcd.sock"))
	}}}
	return postJSON(ctx, &client, "http://etcd"+path, body, into)
}

func postJSON(ctx context.Context, client *http.Client, url string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(text))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", bare.JSON)
	if text, err = exchange(client, request); err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// copies makes copies of a healthy Network, without the API server and the controller.
type copies struct {
	site    *site
	object  string // the Network as it is in etcd
	uid     string
	network map[string]any // in Neutron, as it is created
	subnet  map[string]any
	ids     [2]string // of both
}

const original = "original"

// prepareCopies creates the Network to copy.
func (m measurement) prepareCopies(ctx context.Context) (*copies, error) {
	c := &copies{site: m.site}
	done := m.watch.expect(1)
	m.watch.begin(tenant(0)+"/"+original, 1)
	if err := m.post(ctx, tenant(0), original, 0); err != nil {
		return nil, err
	}
	select {
	case <-done:
	case <-time.After(m.giveUp):
		return nil, errors.New("the Network to copy did not get ready")
	}
	var found struct {
		KVs []struct{ Value []byte }
	}
	key := encoded("/registry/" + m.peer.group + "/networks/" + tenant(0) + "/" + original)
	if err := m.site.etcd(ctx, "/v3/kv/range", map[string]string{"key": key}, &found); err != nil {
		return nil, err
	}
	if len(found.KVs) != 1 {
		return nil, errors.New("etcd does not have the Network to copy")
	}
	c.object = string(found.KVs[0].Value)
	var network struct {
		Metadata struct{ UID string }
		Status   struct{ NetworkID, SubnetID string }
	}
	if err := json.Unmarshal([]byte(c.object), &network); err != nil {
		return nil, err
	}
	c.uid, c.ids = network.Metadata.UID, [2]string{network.Status.NetworkID, network.Status.SubnetID}
	var inNeutron struct{ Network, Subnet map[string]any }
	err := errors.Join(m.site.neutron.get(ctx, "/v2.0/networks/"+c.ids[0], &inNeutron), m.site.neutron.get(ctx, "/v2.0/subnets/"+c.ids[1], &inNeutron))
	c.network = only(inNeutron.Network, "name", "description", "project_id")
	c.subnet = only(inNeutron.Subnet, "name", "description", "project_id", "ip_version", "cidr", "gateway_ip", "enable_dhcp")
	return c, err
}

// only returns some values of an object.
func only(object map[string]any, keys ...string) map[string]any {
	some := map[string]any{}
	for _, key := range keys {
		if value, ok := object[key]; ok {
			some[key] = value
		}
	}
	return some
}

func encoded(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// add makes n copies, with numbers from first on.
func (c *copies) add(ctx context.Context, first, n int) error {
	const batch = 100 // etcd accepts 128 operations at a time
	for end := first + n; first < end; first += batch {
		if err := c.addBatch(ctx, first, min(batch, end-first)); err != nil {
			return fmt.Errorf("copying a Network: %w", err)
		}
	}
	return nil
}

func (c *copies) addBatch(ctx context.Context, first, n int) error {
	renames, networks, subnets := make([][]string, n), make([]any, n), make([]any, n)
	for i := range n {
		renames[i] = []string{original, fmt.Sprintf("copy-%06d", first+i), tenant(0), tenant(first + i), c.uid, string(uuid.NewUUID())}
		networks[i] = renamed(c.network, renames[i])
	}
	type created struct {
		Networks, Subnets []struct{ ID string }
	}
	var networksCreated, subnetsCreated created
	if err := postJSON(ctx, http.DefaultClient, c.site.neutron.url+"/v2.0/networks", map[string]any{"networks": networks}, &networksCreated); err != nil {
		return err
	}
	for i := range n {
		subnets[i] = renamed(c.subnet, renames[i])
		subnets[i].(map[string]any)["network_id"] = networksCreated.Networks[i].ID
	}
	if err := postJSON(ctx, http.DefaultClient, c.site.neutron.url+"/v2.0/subnets", map[string]any{"subnets": subnets}, &subnetsCreated); err != nil {
		return err
	}
	puts := make([]any, n)
	for i, rename := range renames {
		key := "/registry/" + group + "/networks/" + rename[3] + "/" + rename[1]
		value := strings.NewReplacer(append(rename, c.ids[0], networksCreated.Networks[i].ID, c.ids[1], subnetsCreated.Subnets[i].ID)...).Replace(c.object)
		puts[i] = map[string]any{"requestPut": map[string]string{"key": encoded(key), "value": encoded(value)}}
	}
	var done struct{ Succeeded bool }
	return c.site.etcd(ctx, "/v3/kv/txn", map[string]any{"success": puts}, &done)
}

// renamed returns a copy of an object with other names in it.
func renamed(object map[string]any, names []string) map[string]any {
	replacer, all := strings.NewReplacer(names...), map[string]any{}
	for key, value := range object {
		if text, ok := value.(string); ok {
			value = replacer.Replace(text)
		}
		all[key] = value
	}
	return all
}
