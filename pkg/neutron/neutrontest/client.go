// Package neutrontest holds the tests that every Neutron, and every client of
// it, must pass. It runs against the embedded Neutron in the tests of this
// repository, and against a real one on request:
//
//	NEUTRON_ENDPOINT=http://127.0.0.1:9696 go test ./pkg/neutron/openstack -run TestRealNeutron
//
// That is what makes a Neutron in memory worth testing with: where it answers
// differently from a real one, a test here fails.
//
// The tests make networks of their own, tell them from others by a mark that
// was never used before, and take them away again. They can run in a project
// that has other networks, but not while its quota is reached.
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
	"strings"
	"testing"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// Cloud is a Neutron under test.
type Cloud struct {
	// Client is what is tested.
	Client neutron.Client
	// Endpoint is where the same Neutron can be reached without authentication,
	// such as http://127.0.0.1:9696. The tests do there what a Client cannot.
	Endpoint string
	// SetQuotas allows the tests to change the quotas of the project for a
	// moment; afterwards they are the default ones. Nobody else should be using
	// it then.
	SetQuotas bool
}

// TestClient checks that a client and its Neutron keep the promises of
// neutron.Client, and answer in the ways that the controller counts on.
// newCloud is called once for each test.
func TestClient(t *testing.T, newCloud func(t *testing.T) Cloud) {
	for _, part := range append([][]test{networkTests, subnetTests, gatewayTests, settingTests, rangeTests, rawTests}, apiTests...) {
		for _, test := range part {
			t.Run(test.name, func(t *testing.T) {
				cloud := newCloud(t)
				cloud.Endpoint = strings.TrimSuffix(strings.TrimRight(cloud.Endpoint, "/"), "/v2.0")
				test.run(&suite{T: t, Cloud: cloud, mark: "neutrontest owner: a/b " + rand.Text()})
			})
		}
	}
}

type test struct {
	name string
	run  func(*suite)
}

// suite is one test, and what it makes.
type suite struct {
	*testing.T
	Cloud
	mark string // in the description of all that the test makes
}

// missing is an ID that nothing has.
const missing = "00000000-0000-4000-8000-000000000000"

// createNetwork makes a network that is gone after the test.
func (s *suite) createNetwork() neutron.Network {
	s.Helper()
	network, err := s.Client.CreateNetwork(s.Context(), s.newNetwork())
	if err != nil {
		s.Fatalf("creating a network: %v", err)
	}
	s.Cleanup(func() { s.remove("networks", network.ID) })
	return network
}

// createSubnet makes a subnet with everything left to Neutron that can be.
func (s *suite) createSubnet(network neutron.Network, cidr string) neutron.Subnet {
	s.Helper()
	subnet, err := s.Client.CreateSubnet(s.Context(), s.subnetOn(network, cidr))
	if err != nil {
		s.Fatalf("creating the subnet %s: %v", cidr, err)
	}
	return subnet
}

func (s *suite) newNetwork() neutron.NewNetwork {
	return neutron.NewNetwork{Name: "neutrontest", Description: s.mark}
}

func (s *suite) subnetOn(network neutron.Network, cidr string) neutron.NewSubnet {
	return neutron.NewSubnet{NetworkID: network.ID, Name: "neutrontest", Description: s.mark, CIDR: netip.MustParsePrefix(cidr)}
}

// createPort makes a port on a network, with an address of each IP version that
// the network has a subnet for. It is gone after the test.
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

// want checks that a request failed in a way.
func (s *suite) want(doing string, err, kind error, status int, typ string) {
	s.Helper()
	var failure *neutron.Error
	if !errors.As(err, &failure) || !errors.Is(err, kind) || failure.Status != status || failure.Type != typ || failure.Message == "" {
		s.Errorf("%s: error is %v, want a *neutron.Error: %v, %d %s, with a message", doing, err, kind, status, typ)
	}
}

// wantNil checks that a request succeeded.
func (s *suite) wantNil(doing string, err error) {
	s.Helper()
	if err != nil {
		s.Fatalf("%s: %v", doing, err)
	}
}

// remove deletes what a test made, if it is still there. The network of a port
// that is in its way is deleted after it: cleanups run backwards.
func (s *suite) remove(kind, id string) {
	status, body := s.send(context.WithoutCancel(s.Context()), http.MethodDelete, "/v2.0/"+kind+"/"+id, "")
	gone := status == http.StatusNotFound && bytes.Contains(body, []byte(id)) // not just: no such path
	if status != http.StatusNoContent && !gone {
		s.Errorf("cleaning up %s %s: %d %s", kind, id, status, body)
	}
}

// mustSend makes a request and decodes its answer.
func (s *suite) mustSend(method, path, body string, want int, answer any) {
	s.Helper()
	status, got := s.send(s.Context(), method, path, body)
	if status != want {
		s.Fatalf("%s %s: %d %s, want %d", method, path, status, got, want)
	}
	if answer == nil {
		return
	}
	if err := json.Unmarshal(got, answer); err != nil {
		s.Fatalf("%s %s: %v", method, path, err)
	}
}

// wantRefused makes a request that must be refused, with Neutron's name for why.
func (s *suite) wantRefused(method, path, body string, want int, typ string) {
	s.Helper()
	var answer struct {
		NeutronError struct{ Type, Message string }
	}
	status, got := s.send(s.Context(), method, path, body)
	_ = json.Unmarshal(got, &answer) // what is no JSON has no type
	if status != want || answer.NeutronError.Type != typ || answer.NeutronError.Message == "" {
		s.Errorf("%s %s %s: %d %s, want %d %s", method, path, body, status, got, want, typ)
	}
}

// send makes a request past the client.
func (s *suite) send(ctx context.Context, method, path, body string) (status int, answer []byte) {
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
	if answer, err = io.ReadAll(response.Body); err != nil {
		s.Fatal(err)
	}
	return response.StatusCode, answer
}
