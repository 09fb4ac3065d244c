// Package neutronapi is what tests use to look at a Neutron, and to change it as
// somebody else than the controller does.
package neutronapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
)

// UserAgent marks the requests of this package.
const UserAgent = "test"

// API is a Neutron without what is between it and a controller.
type API struct{ Neutron http.Handler }

// Do sends a request to a path such as networks. The body and the response are
// values for JSON, or nil.
func (a API) Do(method, path string, body, response any) error {
	var text bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&text).Encode(body); err != nil {
			return err
		}
	}
	request := httptest.NewRequestWithContext(context.Background(), method, "/v2.0/"+path, &text)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", UserAgent)
	recorder := httptest.NewRecorder()
	a.Neutron.ServeHTTP(recorder, request)
	if recorder.Code >= 300 {
		return fmt.Errorf("%s %s: %d %s", method, path, recorder.Code, recorder.Body)
	}
	if response == nil || recorder.Body.Len() == 0 {
		return nil
	}
	return json.Unmarshal(recorder.Body.Bytes(), response)
}

// State is what a Neutron contains.
type State struct {
	Networks []Network
	Subnets  []Subnet
	Ports    []Port
}

// Network is a network with the fields that tests compare.
type Network struct {
	ID, Name, Description string
	MTU                   int
	AdminStateUp          bool `json:"admin_state_up"`
	Tags                  []string
}

// Subnet is a subnet with the fields that tests compare.
type Subnet struct {
	ID, CIDR, Description string
	NetworkID             string   `json:"network_id"`
	Gateway               string   `json:"gateway_ip"`
	DNS                   []string `json:"dns_nameservers"`
}

// Port is a port with the fields that tests compare.
type Port struct {
	ID, Name  string
	NetworkID string `json:"network_id"`
	Owner     string `json:"device_owner"`
	Device    string `json:"device_id"`
	FixedIPs  []struct {
		SubnetID string `json:"subnet_id"`
	} `json:"fixed_ips"`
}

// IsOfRouter reports whether a port attaches subnets to the router that is its device.
func (p Port) IsOfRouter() bool { return p.Owner == "network:router_interface" }

// State lists everything. Networks come first: a deleted network gets no subnets or
// ports.
func (a API) State() (s State, err error) {
	for _, kind := range []string{"networks", "subnets", "ports"} {
		if err := a.Do(http.MethodGet, kind, nil, &s); err != nil {
			return s, err
		}
	}
	return s, nil
}

// Remove deletes a network with what is on it, when its controllers have ended.
func (a API) Remove(networkID string) error {
	all, err := a.State()
	for _, port := range all.Ports {
		switch {
		case port.NetworkID != networkID || port.Owner == "network:dhcp": // Neutron's own
		case port.IsOfRouter():
			for _, fixed := range port.FixedIPs {
				body := map[string]any{"subnet_id": fixed.SubnetID}
				path := "routers/" + port.Device + "/remove_router_interface"
				err = errors.Join(err, a.Do(http.MethodPut, path, body, nil))
			}
		default:
			err = errors.Join(err, a.Do(http.MethodDelete, "ports/"+port.ID, nil, nil))
		}
	}
	return errors.Join(err, a.Do(http.MethodDelete, "networks/"+networkID, nil, nil))
}
