package stories

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/pkg/neutron/faults"
	"github.com/samplecrd/network-controller/test/neutronapi"
)

// neutronServer is the Neutron of a story: controllers reach it through faults
// and a gate, and the story itself directly.
type neutronServer struct {
	*faults.Front
	gate   *gate
	server *httptest.Server
	heal   []func()
}

func newNeutronServer(endpoint string) (*neutronServer, error) {
	var target http.Handler = embedded.New(embedded.Options{With: []string{neutron.ExtensionDNS}})
	if endpoint != "" {
		proxy, err := faults.Proxy(endpoint)
		if err != nil {
			return nil, fmt.Errorf("NEUTRON_ENDPOINT: %w", err)
		}
		target = proxy
	}
	g := &gate{next: target}
	front := faults.New(g)
	return &neutronServer{Front: front, gate: g, server: httptest.NewServer(front)}, nil
}

// gate holds requests before Neutron executes them. Neutron executes a held
// request when it is released, even if the client has closed the connection.
type gate struct {
	next  http.Handler
	mu    sync.Mutex
	rules []*holdRule
	held  []*heldRequest
}

type holdRule struct {
	method, path string
	times        int // 0 for all
}

type heldRequest struct{ released, done chan struct{} }

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if held := g.hold(r); held != nil {
		defer close(held.done)
		<-held.released
	}
	g.next.ServeHTTP(w, r)
}

// hold returns nil if no rule matches a request.
func (g *gate) hold(r *http.Request) *heldRequest {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.IndexFunc(g.rules, func(rule *holdRule) bool {
		return rule.method == r.Method && strings.HasPrefix(r.URL.Path, rule.path)
	})
	if i < 0 {
		return nil
	}
	if g.rules[i].times--; g.rules[i].times == 0 {
		g.rules = slices.Delete(g.rules, i, i+1)
	}
	held := &heldRequest{released: make(chan struct{}), done: make(chan struct{})}
	g.held = append(g.held, held)
	return held
}

// open releases the held requests one by one, in the order in which they arrived.
func (g *gate) open() {
	g.mu.Lock()
	held := g.held
	g.rules, g.held = nil, nil
	g.mu.Unlock()
	for _, one := range held {
		close(one.released)
		<-one.done
	}
}

// hold METHOD KIND [times=N] holds requests until release.
func (s *story) hold(args []string) (string, error) {
	rule := &holdRule{}
	if len(args) == 3 {
		_, _ = fmt.Sscanf(args[2], "times=%d", &rule.times)
	}
	if len(args) < 2 || len(args) == 3 && rule.times == 0 {
		return "", errors.New("usage: hold METHOD KIND [times=N]")
	}
	rule.method, rule.path = args[0], "/v2.0/"+args[1]
	s.neutron.gate.mu.Lock()
	defer s.neutron.gate.mu.Unlock()
	s.neutron.gate.rules = append(s.neutron.gate.rules, rule)
	return "", nil
}

// heldRequests prints how many requests are held.
func (s *story) heldRequests([]string) (string, error) {
	s.neutron.gate.mu.Lock()
	defer s.neutron.gate.mu.Unlock()
	return strconv.Itoa(len(s.neutron.gate.held)), nil
}

// release returns when Neutron has executed every held request.
func (s *story) release([]string) (string, error) {
	s.neutron.gate.open()
	return "", nil
}

// fault makes requests of the controllers fail. Its arguments are the fields of
// faults.Fault.
func (s *story) fault(args []string) (string, error) {
	if len(args) == 1 && args[0] == "off" {
		for _, heal := range s.neutron.heal {
			heal()
		}
		s.neutron.heal = nil
		return "", nil
	}
	fields, err := parseFields(args)
	if err != nil {
		return "", err
	}
	text, _ := json.Marshal(fields) // which came out of JSON
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var fault faults.Fault
	if err := decoder.Decode(&fault); err != nil {
		return "", err
	}
	s.neutron.heal = append(s.neutron.heal, s.neutron.Inject(fault))
	return "", nil
}

// requests prints the requests of the controllers. With a PATTERN, it prints the
// number of matches; with a second one, the number of matches before the first
// match of the second one.
func (s *story) requests(args []string) (string, error) {
	if len(args) == 1 && args[0] == "reset" {
		s.neutron.ResetRequests()
		return "", nil
	}
	var all []string
	for _, r := range slices.Concat(s.neutron.Requests(), s.neutron.UnderWay()) {
		all = append(all, fmt.Sprintf("%s %s?%s %d\n", r.Method, strings.TrimPrefix(r.Path, "/v2.0/"), r.Query, r.Status))
	}
	switch {
	case len(args) == 0:
		return s.readable(strings.Join(all, "")), nil
	case len(args) == 3 && args[1] == "before":
		end := slices.IndexFunc(all, regexp.MustCompile(args[2]).MatchString)
		if end < 0 {
			return "", fmt.Errorf("no request matches %s", args[2])
		}
		all = all[:end]
	case len(args) != 1:
		return "", errors.New("usage: requests [reset | PATTERN [before PATTERN]]")
	}
	others := slices.DeleteFunc(all, func(r string) bool { return !regexp.MustCompile(args[0]).MatchString(r) })
	return strconv.Itoa(len(others)), nil
}

// neutronRequest METHOD PATH [FIELD=VALUE…] is a request of another client than
// the controller; neutron without EXTENSION… replaces the embedded Neutron.
func (s *story) neutronRequest(args []string) (string, error) {
	if len(args) < 2 {
		return "", errors.New("usage: neutron METHOD PATH [FIELD=VALUE…] | neutron without EXTENSION…")
	}
	if args[0] == "without" {
		return "", s.loseExtensions(args[1:])
	}
	kind, _, _ := strings.Cut(args[1], "/")
	kind, _, _ = strings.Cut(kind, "?")
	one := strings.TrimSuffix(kind, "s")
	var body any
	if len(args) > 2 {
		fields, err := parseFields(args[2:])
		if err != nil {
			return "", err
		}
		body = map[string]any{one: fields}
		if strings.HasSuffix(args[1], "_router_interface") {
			body = fields
		}
	}
	var answer map[string]json.RawMessage
	if err := s.neutron.api().Do(args[0], args[1], body, &answer); err != nil {
		return "", err
	}
	var objects []map[string]any
	if json.Unmarshal(answer[kind], &objects) != nil {
		objects = make([]map[string]any, 1)
		_ = json.Unmarshal(answer[one], &objects[0])
	}
	if args[0] == http.MethodPost {
		id, _ := objects[0]["id"].(string)
		s.names.add(map[string]string{"network": "net", "subnet": "subnet", "port": "port", "subnetpool": "pool", "router": "router"}[one], id)
	}
	var text strings.Builder
	for _, fields := range objects {
		for _, field := range slices.Sorted(maps.Keys(fields)) {
			value, _ := json.Marshal(fields[field])
			fmt.Fprintf(&text, "%s %s\n", field, value)
		}
	}
	return s.readable(text.String()), nil
}

// loseExtensions replaces the embedded Neutron by an empty one without some
// extensions.
func (s *story) loseExtensions(extensions []string) error {
	if realNeutron != "" {
		return errors.New("only the embedded Neutron can lose extensions")
	}
	options := embedded.Options{With: []string{neutron.ExtensionDNS}}
	for _, extension := range extensions {
		if extension == neutron.ExtensionDNS {
			options.With = nil
		} else {
			options.Without = append(options.Without, extension)
		}
	}
	s.neutron.gate.next = embedded.New(options)
	return nil
}

// api is Neutron without the faults, the gate and the list of requests.
func (n *neutronServer) api() neutronapi.API { return neutronapi.API{Neutron: n.gate.next} }

// network is a network with what is on it.
type network struct {
	neutronapi.Network
	subnets []neutronapi.Subnet
	ports   []neutronapi.Port
}

// others returns the fields that a state shows only if they are set.
func (n network) others() string {
	var others []string
	if !n.AdminStateUp {
		others = append(others, "down")
	}
	if len(n.Tags) > 0 {
		others = append(others, "tags "+strings.Join(slices.Sorted(slices.Values(n.Tags)), " "))
	}
	return strings.Join(others, ", ")
}

func subnetCell(s neutronapi.Subnet) string { return s.CIDR + ", gateway " + cmp.Or(s.Gateway, "none") }

// objects returns the networks that the story is about, in an order that does
// not depend on IDs.
func (s *story) objects() (networks []network, err error) {
	all, err := s.neutron.api().State()
	if err != nil {
		return nil, err
	}
	for _, n := range all.Networks {
		if realNeutron != "" && s.names[n.ID] == "" && !strings.Contains(n.Description, s.clusterName) {
			continue
		}
		networks = append(networks, network{
			Network: n,
			subnets: slices.DeleteFunc(slices.Clone(all.Subnets), func(s neutronapi.Subnet) bool { return s.NetworkID != n.ID }),
			ports: slices.DeleteFunc(slices.Clone(all.Ports), func(p neutronapi.Port) bool {
				return p.NetworkID != n.ID || p.Owner == "network:dhcp"
			}),
		})
	}
	for _, n := range networks {
		slices.SortFunc(n.subnets, func(a, b neutronapi.Subnet) int { return cmp.Compare(a.CIDR, b.CIDR) })
		slices.SortFunc(n.ports, func(a, b neutronapi.Port) int { return cmp.Compare(a.Name, b.Name) })
	}
	slices.SortFunc(networks, func(a, b network) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Description, b.Description))
	})
	return networks, nil
}

// endNeutron ends the story's Neutron. In a real one, it deletes the objects of
// the story.
func (s *story) endNeutron() error {
	_, _ = s.fault([]string{"off"})
	s.neutron.gate.open()
	err := wait.PollUntilContextTimeout(context.Background(), pollInterval, patience, true,
		func(context.Context) (bool, error) { return len(s.neutron.UnderWay()) == 0, nil })
	s.neutron.server.Close()
	if err != nil || realNeutron == "" {
		return err
	}
	objects, err := s.objects()
	for _, network := range objects {
		err = errors.Join(err, s.neutron.api().Remove(network.ID))
	}
	for id, name := range s.names {
		if strings.HasPrefix(name, "pool") {
			err = errors.Join(err, s.neutron.api().Do(http.MethodDelete, "subnetpools/"+id, nil, nil))
		}
		if strings.HasPrefix(name, "router") {
			err = errors.Join(err, s.neutron.api().Do(http.MethodDelete, "routers/"+id, nil, nil))
		}
	}
	return err
}

// cloud returns the identity of the Neutron that controllers use.
func (s *story) cloud() string {
	return "noauth/" + strings.TrimPrefix(s.neutron.server.URL, "http://")
}
