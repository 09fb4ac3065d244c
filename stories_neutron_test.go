package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/neutron/embedded"
	"github.com/samplecrd/network-controller/pkg/neutron/faults"
	"github.com/samplecrd/network-controller/pkg/plan"
)

// neutronPhrases are what somebody sees and does in OpenStack. NETWORK is the
// network of the Network of that name, or one that the story itself has made.
var neutronPhrases = map[string]phrase{
	"neutron list":               {"", (*story).neutronList},
	"neutron has":                {"NAME CIDR GATEWAY", (*story).neutronHas},
	"neutron soon-has":           {"NAME CIDR GATEWAY", soon((*story).neutronHas)},
	"neutron has-nothing":        {"[of] [NAME]", (*story).neutronHasNothing},
	"neutron soon-has-nothing":   {"[of] [NAME]", soon((*story).neutronHasNothing)},
	"neutron matches":            {"", (*story).neutronMatches},
	"neutron soon-matches":       {"", soon((*story).neutronMatches)},
	"neutron has-networks":       {"NUMBER [of] [NAME]", (*story).neutronHasNetworks},
	"neutron soon-has-networks":  {"NUMBER [of] [NAME]", soon((*story).neutronHasNetworks)},
	"neutron create-network":     {"NETWORK [FIELD=VALUE…]", (*story).createNetwork},
	"neutron create-subnet":      {"NETWORK CIDR", (*story).createSubnet},
	"neutron create-port":        {"NETWORK PORT", (*story).createPort},
	"neutron create-subnet-pool": {"POOL PREFIX [LENGTH]", (*story).createSubnetPool},
	"neutron lacks":              {"EXTENSION [EXTENSION…]", (*story).lacks},
	"neutron shows":              {"NETWORK TEXT…", (*story).shows},
	"neutron soon-shows":         {"NETWORK TEXT…", soon((*story).shows)},
	"neutron edit-network":       {"NETWORK FIELD=VALUE [FIELD=VALUE…]", (*story).editNetwork},
	"neutron edit-subnet":        {"NETWORK FIELD=VALUE [FIELD=VALUE…]", (*story).editSubnet},
	"neutron dates-back":         {"NETWORK DURATION", (*story).dateBack},
	"neutron delete-network":     {"NETWORK", (*story).deleteNetwork},
	"neutron delete-subnet":      {"NETWORK [CIDR]", (*story).deleteSubnet},
	"neutron delete-port":        {"PORT", (*story).deletePort},
	"neutron allows":             {"NUMBER KIND", (*story).setQuota},
	"neutron requests":           {"NUMBER [METHOD] [KIND]", (*story).requests},
	"neutron forgets-requests":   {"", (*story).forgetRequests},
}

// soon makes a phrase wait for what it says.
func soon(now func(*story, io.Writer, []string) error) func(*story, io.Writer, []string) error {
	return func(s *story, out io.Writer, args []string) error {
		return s.eventually(func() error { return now(s, out, args) })
	}
}

// storyNeutron is the Neutron of a story: an embedded one, or another one whose
// other networks the story does not see.
type storyNeutron struct {
	*faults.Front
	next        *replaceable // past the faults, and past the list of requests
	server      *httptest.Server
	clusterName string
	others      bool              // whether it is not the story's alone
	made        map[string]string // IDs of networks and ports that the story has made, by what it calls them
	pools       []string          // IDs of subnet pools that it has made
	birthdays   *birthdays
	heal        []func()
}

func newStoryNeutron(endpoint, clusterName string) (*storyNeutron, error) {
	n := &storyNeutron{
		next: &replaceable{embedded.New(embedded.Options{With: []string{neutron.ExtensionDNS}})}, clusterName: clusterName,
		made: map[string]string{}, birthdays: &birthdays{},
	}
	if endpoint != "" {
		proxy, err := faults.Proxy(endpoint)
		if err != nil {
			return nil, fmt.Errorf("NEUTRON_ENDPOINT: %w", err)
		}
		n.next, n.others = &replaceable{proxy}, true
	}
	n.Front = faults.New(n.birthdays.before(n.next))
	n.server = httptest.NewServer(n.Front)
	return n, nil
}

// replaceable is a Neutron in whose place there can be another one, before
// anybody uses it.
type replaceable struct{ http.Handler }

func (n *storyNeutron) url() string { return n.server.URL }

// end takes away what the story has left in a Neutron that it shares.
func (n *storyNeutron) end() error {
	n.healAll()
	err := wait.PollUntilContextTimeout(context.Background(), 25*time.Millisecond, storyPatience, true,
		func(context.Context) (bool, error) { return len(n.UnderWay()) == 0, nil })
	n.server.Close()
	if err != nil || !n.others {
		return err
	}
	all, err := n.all()
	for _, network := range all {
		for _, port := range network.ports {
			err = errors.Join(err, n.do(http.MethodDelete, "ports/"+port.ID, nil, nil))
		}
		err = errors.Join(err, n.do(http.MethodDelete, "networks/"+network.ID, nil, nil))
	}
	for _, pool := range n.pools {
		err = errors.Join(err, n.do(http.MethodDelete, "subnetpools/"+pool, nil, nil))
	}
	return err
}

func (n *storyNeutron) healAll() {
	for _, heal := range n.heal {
		heal()
	}
	n.heal = nil
}

// The rest of this file asks Neutron past the controller and its faults.

func (n *storyNeutron) do(method, path string, body, answer any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	reader := strings.NewReader("")
	if body != nil {
		reader = strings.NewReader(string(text))
	}
	recorder := httptest.NewRecorder()
	request := httptest.NewRequest(method, n.server.URL+"/v2.0/"+path, reader)
	request.Header.Set("Content-Type", "application/json")
	n.next.ServeHTTP(recorder, request)
	if recorder.Code >= 300 {
		return fmt.Errorf("%s %s: %d %s", method, path, recorder.Code, recorder.Body)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(recorder.Body.Bytes(), answer)
}

type storyNetwork struct {
	ID, Name, Description string
	subnets               []storySubnet
	ports                 []storyPort
}

type storySubnet struct {
	ID, CIDR, Description string
	NetworkID             string `json:"network_id"`
	Gateway               string `json:"gateway_ip"`
}

type storyPort struct {
	ID, Name  string
	NetworkID string `json:"network_id"`
	Owner     string `json:"device_owner"`
}

// all returns the networks that the story is about, by name.
func (n *storyNeutron) all() ([]storyNetwork, error) {
	var got struct {
		Networks []storyNetwork
		Subnets  []storySubnet
		Ports    []storyPort
	}
	// What is on a network is read after it: nobody can put anything on a
	// network that is gone.
	for _, kind := range []string{"networks", "subnets", "ports"} {
		if err := n.do(http.MethodGet, kind, nil, &got); err != nil {
			return nil, err
		}
	}
	all := slices.DeleteFunc(got.Networks, func(network storyNetwork) bool { return n.others && !n.isOfStory(network) })
	for i := range all {
		all[i].subnets = slices.DeleteFunc(slices.Clone(got.Subnets), func(s storySubnet) bool { return s.NetworkID != all[i].ID })
		all[i].ports = slices.DeleteFunc(slices.Clone(got.Ports), func(p storyPort) bool { return p.NetworkID != all[i].ID || p.Owner == "network:dhcp" })
		slices.SortFunc(all[i].subnets, func(a, b storySubnet) int { return strings.Compare(a.CIDR, b.CIDR) })
		slices.SortFunc(all[i].ports, func(a, b storyPort) int { return strings.Compare(a.Name, b.Name) })
	}
	slices.SortFunc(all, func(a, b storyNetwork) int {
		return strings.Compare(a.Name+"\n"+a.Description, b.Name+"\n"+b.Description)
	})
	return all, nil
}

// isOfStory tells the story's networks from others in the same Neutron.
func (n *storyNeutron) isOfStory(network storyNetwork) bool {
	for _, id := range n.made {
		if id == network.ID {
			return true
		}
	}
	return strings.Contains(network.Description, n.clusterName)
}

// told are networks as `neutron list` tells them.
func told(all []storyNetwork) string {
	var text strings.Builder
	for _, network := range all {
		fmt.Fprintf(&text, "network %s (%s)\n", network.Name, network.Description)
		for _, subnet := range network.subnets {
			fmt.Fprintf(&text, "  subnet %s, gateway %s (%s)\n", subnet.CIDR, subnet.Gateway, subnet.Description)
		}
		for _, port := range network.ports {
			fmt.Fprintf(&text, "  port %s\n", port.Name)
		}
	}
	return text.String()
}

func (s *story) neutronList(out io.Writer, _ []string) error {
	all, err := s.neutron.all()
	if err == nil {
		_, err = io.WriteString(out, told(all))
	}
	return err
}

// markOf is what the description of a Network's network says; with an empty
// name, how those of the story begin.
func (s *story) markOf(name string) string {
	return neutron.Owner{Cluster: s.clusterName, Namespace: s.namespace, Name: name}.Marker()
}

// networksOf returns the networks with the mark of a Network, or the one that
// the story has made and calls so.
func (s *story) networksOf(name string) ([]storyNetwork, error) {
	all, err := s.neutron.all()
	return slices.DeleteFunc(all, func(network storyNetwork) bool {
		return network.Description != s.markOf(name) && network.ID != s.neutron.made[name]
	}), err
}

// networkOf is for where there must be one.
func (s *story) networkOf(name string) (storyNetwork, error) {
	found, err := s.networksOf(name)
	if err == nil && len(found) != 1 {
		err = fmt.Errorf("neutron has %d networks of %s", len(found), name)
	}
	if err != nil {
		return storyNetwork{}, err
	}
	return found[0], nil
}

// neutronHas checks that a Network has exactly one network with one subnet of
// its own.
func (s *story) neutronHas(_ io.Writer, args []string) error {
	network, err := s.networkOf(args[0])
	if err != nil {
		return err
	}
	return s.isAs(network, args[0], args[1], args[2])
}

func (s *story) isAs(network storyNetwork, name, cidr, gateway string) error {
	ours := slices.DeleteFunc(slices.Clone(network.subnets), func(subnet storySubnet) bool { return subnet.Description != s.markOf(name) })
	if len(ours) != 1 || ours[0].CIDR != cidr || ours[0].Gateway != gateway || network.Name != s.namespace+"/"+name {
		return fmt.Errorf("neutron has\n%swhere there should be %s with one subnet %s and gateway %s", told([]storyNetwork{network}), name, cidr, gateway)
	}
	return nil
}

// asSpec checks that Neutron has what one Network asks for.
func (s *story) asSpec(all []storyNetwork, network *samplecrdv1.Network) error {
	want := plan.DesiredFor(neutron.Owner{Namespace: network.Namespace, Name: network.Name}, network.Spec)
	found := slices.DeleteFunc(slices.Clone(all), func(n storyNetwork) bool { return n.Description != s.markOf(network.Name) })
	if len(found) != 1 || found[0].ID != network.Status.NetworkID {
		return fmt.Errorf("%s has status.networkID %q, and in Neutron\n%s", network.Name, network.Status.NetworkID, told(found))
	}
	gateway := want.Gateway
	if !gateway.IsValid() {
		gateway = want.CIDR.Addr().Next()
	}
	return s.isAs(found[0], network.Name, want.CIDR.String(), gateway.String())
}

// neutronMatches checks that Neutron has what all Networks of the story ask for.
func (s *story) neutronMatches(io.Writer, []string) error { return s.asAsked(s.Context()) }

func (s *story) neutronHasNothing(out io.Writer, args []string) error {
	return s.neutronHasNetworks(out, append([]string{"0"}, args...))
}

// neutronHasNetworks counts networks: of one Network, or all.
func (s *story) neutronHasNetworks(_ io.Writer, args []string) error {
	want, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	found, err := s.neutron.all()
	if len(args) == 3 {
		found, err = s.networksOf(args[2])
	}
	if err == nil && len(found) != want {
		err = fmt.Errorf("neutron has %d networks, and should have %d:\n%s", len(found), want, told(found))
	}
	return err
}

// made is what Neutron answers with to a request to create something.
type made struct{ Network, Subnet, Port struct{ ID string } }

// createNetwork makes a network by hand. $NETWORK is its ID from then on.
func (s *story) createNetwork(_ io.Writer, args []string) error {
	var answer made
	err := s.neutron.do(http.MethodPost, "networks", map[string]any{"network": fieldsOf(args[1:])}, &answer)
	s.neutron.made[args[0]] = answer.Network.ID
	s.setenv(args[0], answer.Network.ID)
	return err
}

func (s *story) createSubnet(_ io.Writer, args []string) error {
	network, err := s.networkOf(args[0])
	if err != nil {
		return err
	}
	return s.neutron.do(http.MethodPost, "subnets", map[string]any{"subnet": map[string]any{
		"network_id": network.ID, "cidr": args[1], "ip_version": 4,
	}}, nil)
}

// createSubnetPool makes a subnet pool by hand. $POOL is its name, which nobody
// else's has, and $POOL_ID its ID.
func (s *story) createSubnetPool(_ io.Writer, args []string) error {
	fields := map[string]any{"name": args[0] + "-" + s.clusterName, "prefixes": []string{args[1]}}
	if len(args) == 3 {
		fields["default_prefixlen"] = args[2]
	}
	var answer struct{ Subnetpool struct{ ID string } }
	err := s.neutron.do(http.MethodPost, "subnetpools", map[string]any{"subnetpool": fields}, &answer)
	s.neutron.pools = append(s.neutron.pools, answer.Subnetpool.ID)
	s.setenv(args[0], args[0]+"-"+s.clusterName)
	s.setenv(args[0]+"_ID", answer.Subnetpool.ID)
	return err
}

// lacks makes it a Neutron without some extensions.
func (s *story) lacks(_ io.Writer, args []string) error {
	if s.neutron.others {
		return errors.New("that is for the embedded Neutron")
	}
	options := embedded.Options{With: []string{neutron.ExtensionDNS}}
	for _, extension := range args {
		if extension == neutron.ExtensionDNS {
			options.With = nil
		} else {
			options.Without = append(options.Without, extension)
		}
	}
	s.neutron.next.Handler = embedded.New(options)
	return nil
}

// shows checks that what Neutron has of a network or its only subnet has all
// these texts in it, each as FIELD VALUE with the value in JSON.
func (s *story) shows(out io.Writer, args []string) error {
	network, err := s.networkOf(args[0])
	if err != nil {
		return err
	}
	var all strings.Builder
	for path := range map[string]bool{"networks/" + network.ID: true, "subnets?network_id=" + network.ID: true} {
		var answer map[string]json.RawMessage
		if err := s.neutron.do(http.MethodGet, path, nil, &answer); err != nil {
			return err
		}
		for _, raw := range answer {
			var one []map[string]any
			if json.Unmarshal(raw, &one) != nil {
				one = make([]map[string]any, 1)
				_ = json.Unmarshal(raw, &one[0]) // it is one or a list
			}
			for _, fields := range one {
				for name, value := range fields {
					text, _ := json.Marshal(value) // which came out of JSON
					fmt.Fprintf(&all, "%s %s\n", name, text)
				}
			}
		}
	}
	for _, text := range args[1:] {
		if !slices.Contains(strings.Split(all.String(), "\n"), text) {
			return fmt.Errorf("there is no %q in\n%s", text, all.String())
		}
	}
	_, err = io.WriteString(out, all.String())
	return err
}

// createPort puts a port on a network. $PORT is its ID from then on.
func (s *story) createPort(_ io.Writer, args []string) error {
	network, err := s.networkOf(args[0])
	if err != nil {
		return err
	}
	var answer made
	err = s.neutron.do(http.MethodPost, "ports", map[string]any{"port": map[string]any{"network_id": network.ID, "name": args[1]}}, &answer)
	s.neutron.made[args[1]] = answer.Port.ID
	s.setenv(args[1], answer.Port.ID)
	return err
}

// fieldsOf reads FIELD=VALUE; the value none is none at all.
func fieldsOf(args []string) map[string]any {
	fields := map[string]any{}
	for _, arg := range args {
		key, value, _ := strings.Cut(arg, "=")
		fields[key] = value
		if value == "none" {
			fields[key] = nil
		}
	}
	return fields
}

func (s *story) editNetwork(_ io.Writer, args []string) error {
	network, err := s.networkOf(args[0])
	if err != nil {
		return err
	}
	return s.neutron.do(http.MethodPut, "networks/"+network.ID, map[string]any{"network": fieldsOf(args[1:])}, nil)
}

// subnetOf returns the subnet with a range, or the only one.
func (s *story) subnetOf(args []string) (storySubnet, error) {
	network, err := s.networkOf(args[0])
	if err != nil {
		return storySubnet{}, err
	}
	found := network.subnets
	if len(args) == 2 {
		found = slices.DeleteFunc(found, func(subnet storySubnet) bool { return subnet.CIDR != args[1] })
	}
	if len(found) != 1 {
		return storySubnet{}, fmt.Errorf("there are %d such subnets", len(found))
	}
	return found[0], nil
}

func (s *story) editSubnet(_ io.Writer, args []string) error {
	subnet, err := s.subnetOf(args[:1])
	if err != nil {
		return err
	}
	return s.neutron.do(http.MethodPut, "subnets/"+subnet.ID, map[string]any{"subnet": fieldsOf(args[1:])}, nil)
}

func (s *story) deleteNetwork(_ io.Writer, args []string) error {
	network, err := s.networkOf(args[0])
	if err != nil {
		return err
	}
	return s.neutron.do(http.MethodDelete, "networks/"+network.ID, nil, nil)
}

func (s *story) deleteSubnet(_ io.Writer, args []string) error {
	subnet, err := s.subnetOf(args)
	if err != nil {
		return err
	}
	return s.neutron.do(http.MethodDelete, "subnets/"+subnet.ID, nil, nil)
}

func (s *story) deletePort(_ io.Writer, args []string) error {
	return s.neutron.do(http.MethodDelete, "ports/"+s.neutron.made[args[0]], nil, nil)
}

// setQuota says how many networks, subnets or ports there can be; -1 is any
// number.
func (s *story) setQuota(_ io.Writer, args []string) error {
	number, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	kind := strings.TrimSuffix(args[1], "s")
	return s.neutron.do(http.MethodPut, "quotas/any", map[string]any{"quota": map[string]int{kind: number}}, nil)
}

func (s *story) countRequests(args []string) (got int, told string) {
	method, kind := "", ""
	if len(args) > 1 {
		method = args[1]
	}
	if len(args) > 2 {
		kind = args[2]
	}
	var lines []string
	for _, r := range slices.Concat(s.neutron.Requests(), s.neutron.UnderWay()) {
		if (method == "" || r.Method == method) && strings.HasPrefix(r.Path, "/v2.0/"+kind) {
			lines = append(lines, fmt.Sprintf("%s %s?%s: %d", r.Method, r.Path, r.Query, r.Status))
		}
	}
	return len(lines), strings.Join(lines, "\n")
}

// requests checks how many requests the controllers have made since the story
// began, or since forgets-requests.
func (s *story) requests(_ io.Writer, args []string) error {
	want, err := strconv.Atoi(args[0])
	if got, told := s.countRequests(args); err == nil && got != want {
		err = fmt.Errorf("there were %d requests, and not %d:\n%s", got, want, told)
	}
	return err
}

func (s *story) forgetRequests(io.Writer, []string) error {
	s.neutron.ResetRequests()
	return nil
}
