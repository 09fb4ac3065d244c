// Package neutrontest is the contract that every neutron.Client and every Neutron
// must fulfil. It runs on the embedded Neutron in the tests of this repository, and
// on a real one on request:
//
//	NEUTRON_ENDPOINT=http://127.0.0.1:9696 go test ./pkg/neutron/openstack -run TestRealNeutron
//
// So tests with the embedded Neutron prove something about real ones: if it responds
// differently, a test here fails.
//
// The tests create networks with a unique owner marker, and delete them. They can
// run in a project with other networks, if its quota leaves room.
package neutrontest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// Cloud is a Neutron under test.
type Cloud struct {
	// Client is the client under test.
	Client neutron.Client
	// Endpoint is a URL of the same Neutron without authentication, such as
	// http://127.0.0.1:9696, for requests that a Client does not make.
	Endpoint string
	// SetQuotas allows the tests to change the quotas of the project. They reset
	// them to the defaults. No other user should work in the project meanwhile.
	SetQuotas bool
}

// TestClient checks that a client and its Neutron keep the promises of
// neutron.Client, and behave as the controller expects. It calls newCloud once for
// each test.
func TestClient(t *testing.T, newCloud func(t *testing.T) Cloud) {
	for _, part := range [][]test{networkTests, subnetTests, settingTests, routerTests, protocolTests} {
		for _, test := range part {
			t.Run(test.name, func(t *testing.T) {
				cloud := newCloud(t)
				cloud.Endpoint = strings.TrimSuffix(strings.TrimRight(cloud.Endpoint, "/"), "/v2.0")
				test.run(&suite{T: t, Cloud: cloud, marker: "neutrontest owner: a/b " + rand.Text()})
			})
		}
	}
}

type test struct {
	name string
	run  func(*suite)
}

// suite is one test.
type suite struct {
	*testing.T
	Cloud
	marker string // the description of all objects of the test
}

// missing is the ID of no object.
const missing = "00000000-0000-4000-8000-000000000000"

// createNetwork creates a network and deletes it after the test.
func (s *suite) createNetwork() neutron.Network {
	s.Helper()
	return s.createNamed("neutrontest")
}

func (s *suite) createNamed(name string) neutron.Network {
	s.Helper()
	network, err := s.Client.CreateNetwork(s.Context(), neutron.NewNetwork{Name: name, Description: s.marker})
	if err != nil {
		s.Fatalf("creating a network: %v", err)
	}
	s.Cleanup(func() { s.remove("networks", network.ID) })
	return network
}

// createSubnet creates a subnet with the defaults of Neutron.
func (s *suite) createSubnet(network neutron.Network, cidr string) neutron.Subnet {
	s.Helper()
	subnet, err := s.Client.CreateSubnet(s.Context(), s.subnetOn(network, cidr))
	if err != nil {
		s.Fatalf("creating the subnet %s: %v", cidr, err)
	}
	return subnet
}

// tryCreate requests a subnet with some settings, on a new network.
func (s *suite) tryCreate(cidr string, settings neutron.SubnetSettings) (neutron.Subnet, error) {
	s.Helper()
	request := s.subnetOn(s.createNetwork(), cidr)
	request.SubnetSettings = settings
	return s.Client.CreateSubnet(s.Context(), request)
}

// tryUpdate requests other settings of a subnet, at its revision.
func (s *suite) tryUpdate(subnet neutron.Subnet, settings neutron.SubnetSettings) (neutron.Subnet, error) {
	s.Helper()
	return s.Client.UpdateSubnet(s.Context(), subnet.ID,
		neutron.SubnetUpdate{SubnetSettings: settings, Revision: subnet.Revision})
}

func (s *suite) subnetOn(network neutron.Network, cidr string) neutron.NewSubnet {
	return neutron.NewSubnet{NetworkID: network.ID, Name: "neutrontest", Description: s.marker,
		CIDR: netip.MustParsePrefix(cidr)}
}

// createPort creates a port on a network, and deletes it after the test. It has one
// address for each IP version of the network's subnets.
func (s *suite) createPort(network neutron.Network) (id string) {
	s.Helper()
	var body struct{ Port struct{ ID string } }
	s.mustSend(http.MethodPost, "/v2.0/ports", `{"port": {"network_id": "`+network.ID+`"}}`, http.StatusCreated, &body)
	s.Cleanup(func() { s.remove("ports", body.Port.ID) })
	return body.Port.ID
}

// network reads a network of the test.
func (s *suite) network(id string) neutron.Network {
	s.Helper()
	found, err := s.Client.Networks(s.Context(), neutron.NetworkFilter{ID: id})
	if err != nil || len(found) != 1 {
		s.Fatalf("Networks(%s) = %v, %v; want that network", id, found, err)
	}
	return found[0]
}

// subnets reads the subnets of a network.
func (s *suite) subnets(networkID string) []neutron.Subnet {
	s.Helper()
	found, err := s.Client.Subnets(s.Context(), neutron.SubnetFilter{NetworkID: networkID})
	if err != nil {
		s.Fatalf("Subnets(%s): %v", networkID, err)
	}
	return found
}

// subnet reads one subnet of a network.
func (s *suite) subnet(networkID, id string) neutron.Subnet {
	s.Helper()
	found := s.subnets(networkID)
	i := slices.IndexFunc(found, func(subnet neutron.Subnet) bool { return subnet.ID == id })
	if i < 0 {
		s.Fatalf("Subnets(%s) = %v; want %s among them", networkID, found, id)
	}
	return found[i]
}

// want checks the failure of a request.
func (s *suite) want(doing string, err, class error, status int, typ string) {
	s.Helper()
	var failure *neutron.Error
	if !errors.As(err, &failure) || !errors.Is(err, class) || failure.Status != status || failure.Type != typ ||
		failure.Message == "" {
		s.Errorf("%s: error is %v, want a *neutron.Error: %v, %d %s, with a message", doing, err, class, status, typ)
	}
}

// wantRejected checks that Neutron rejected a request whose values are invalid.
func (s *suite) wantRejected(doing string, err error, typ string) {
	s.Helper()
	s.want(doing, err, neutron.ErrRefused, http.StatusBadRequest, typ)
}

// wantStale checks that Neutron rejected a request because of its revision.
func (s *suite) wantStale(doing string, err error) {
	s.Helper()
	s.want(doing, err, neutron.ErrConflict, http.StatusPreconditionFailed, "RevisionNumberConstraintFailed")
}

// wantEqual compares values. Neutron returns the IDs of subnets, tags and host routes in
// no order.
func (s *suite) wantEqual(what string, want, got any) {
	s.Helper()
	if diff := cmp.Diff(want, got, equality...); diff != "" {
		s.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

var equality = cmp.Options{
	cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}),
	cmpopts.EquateEmpty(),
	cmpopts.SortSlices(func(a, b string) bool { return a < b }),
	cmpopts.SortSlices(func(a, b neutron.HostRoute) bool { return a.Destination.Compare(b.Destination) < 0 }),
	cmpopts.SortSlices(func(a, b neutron.RouterInterface) bool { return a.SubnetID+a.RouterID < b.SubnetID+b.RouterID }),
	cmpopts.SortSlices(func(a, b neutron.Router) bool { return a.ID < b.ID }),
	cmpopts.SortSlices(func(a, b neutron.Network) bool { return a.ID < b.ID }),
}

// wantPorts checks that an error names the port that uses an object.
func (s *suite) wantPorts(err error, port string) {
	s.Helper()
	var failure *neutron.Error
	if errors.As(err, &failure) && (len(failure.Ports) != 1 || failure.Ports[0] != port ||
		!strings.Contains(err.Error(), port)) {
		s.Errorf("the error names the ports %q, want %s: %v", failure.Ports, port, err)
	}
}

// wantNil checks that a request succeeded.
func (s *suite) wantNil(doing string, err error) {
	s.Helper()
	if err != nil {
		s.Fatalf("%s: %v", doing, err)
	}
}

// remove deletes an object of a test, if it exists. (Cleanups run in reverse order:
// a port is deleted before its network.)
func (s *suite) remove(kind, id string) {
	status, body := s.send(context.WithoutCancel(s.Context()), http.MethodDelete, "/v2.0/"+kind+"/"+id, "")
	gone := status == http.StatusNotFound && bytes.Contains(body, []byte(id)) // and not: no such path
	if status != http.StatusNoContent && !gone {
		s.Errorf("cleaning up %s %s: %d %s", kind, id, status, body)
	}
}

// mustSend makes a request that must succeed, and decodes the response.
func (s *suite) mustSend(method, path, body string, want int, response any) {
	s.Helper()
	status, got := s.send(s.Context(), method, path, body)
	if status != want {
		s.Fatalf("%s %s: %d %s, want %d", method, path, status, got, want)
	}
	if response == nil {
		return
	}
	if err := json.Unmarshal(got, response); err != nil {
		s.Fatalf("%s %s: %v", method, path, err)
	}
}

// mustFail makes a request that must fail, with Neutron's name for the failure.
func (s *suite) mustFail(method, path, body string, want int, typ string) {
	s.Helper()
	var response struct {
		NeutronError struct{ Type, Message string }
	}
	status, got := s.send(s.Context(), method, path, body)
	_ = json.Unmarshal(got, &response) // without JSON, there is no type
	if status != want || response.NeutronError.Type != typ || response.NeutronError.Message == "" {
		s.Errorf("%s %s %s: %d %s, want %d %s", method, path, body, status, got, want, typ)
	}
}

// send makes a request without the client.
func (s *suite) send(ctx context.Context, method, path, body string) (status int, received []byte) {
	s.Helper()
	request, err := http.NewRequestWithContext(ctx, method, s.Endpoint+path, bytes.NewBufferString(body))
	if err != nil {
		s.Fatal(err)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if received, err = io.ReadAll(response.Body); err != nil {
		s.Fatal(err)
	}
	return response.StatusCode, received
}
