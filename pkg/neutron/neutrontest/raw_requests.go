package neutrontest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestAPI checks what can be seen of a Neutron without a client, and depends on
// the extensions that it has. newEndpoint is called once for each test, and
// returns where the Neutron can be reached without authentication. TestClient
// runs these tests, too.
func TestAPI(t *testing.T, newEndpoint func(t *testing.T) string) {
	for _, part := range apiTests {
		for _, test := range part {
			t.Run(test.name, func(t *testing.T) {
				test.run(&suite{T: t, Cloud: Cloud{Endpoint: newEndpoint(t), SetQuotas: true}})
			})
		}
	}
}

var apiTests = [][]test{extensionTests, tagTests, networkChangeTests, subnetChangeTests, subnetPoolTests, allocationTests}

// object is what is in JSON.
type object = map[string]any

// exchange is a request and the answer to it. Most of it is left to whoever
// makes the request.
type exchange struct {
	body string // the members of the object, such as "mtu": 1400
	// want is some members of the object in the answer, or the status and type
	// of a refusal, such as 400 InvalidInput.
	want string
}

// post creates an object; common is said in every request. What is created is
// gone after the test. It returns the ID of the last one.
func (s *suite) post(kind, common string, exchanges ...exchange) (id string) {
	s.Helper()
	for _, e := range exchanges {
		body := strings.Trim(common+", "+e.body, ", ")
		made := s.exchange(http.MethodPost, kind, "/v2.0/"+kind+"s", body, e.want)
		if made != nil {
			id = made["id"].(string)
			s.Cleanup(func() { s.remove(kind+"s", id) })
		}
	}
	return id
}

// put changes an object, again and again.
func (s *suite) put(kind, id string, exchanges ...exchange) {
	s.Helper()
	for _, e := range exchanges {
		s.exchange(http.MethodPut, kind, "/v2.0/"+kind+"s/"+id, e.body, e.want)
	}
}

// get reads an object.
func (s *suite) get(kind, id, want string) object {
	s.Helper()
	return s.exchange(http.MethodGet, kind, "/v2.0/"+kind+"s/"+id, "", want)
}

// exchange makes a request and checks the answer. It returns the object in it,
// or nil.
func (s *suite) exchange(method, kind, path, body, want string) object {
	s.Helper()
	if method != http.MethodGet {
		body = `{"` + kind + `": {` + body + `}}`
	}
	status, answer := s.send(s.Context(), method, path, body)
	var decoded map[string]object
	_ = json.Unmarshal(answer, &decoded) // what is no JSON has no members
	if !strings.HasPrefix(want, "4") && !strings.HasPrefix(want, "5") {
		for name, value := range members(s, want) {
			if got, ok := decoded[kind][name]; !ok || !reflect.DeepEqual(got, value) {
				s.Errorf("%s %s %s: %d %s, want %q: %v", method, path, body, status, answer, name, value)
			}
		}
		return decoded[kind]
	}
	if got := fmt.Sprint(status, " ", decoded["NeutronError"]["type"]); got != want {
		s.Errorf("%s %s %s: %d %s, want %s", method, path, body, status, answer, want)
	}
	return decoded[kind]
}

// members decodes the members of an object.
func members(s *suite, text string) object {
	s.Helper()
	var o object
	if err := json.Unmarshal([]byte("{"+text+"}"), &o); err != nil {
		s.Fatalf("%s: %v", text, err)
	}
	return o
}

// list returns one member of each object of a kind that a query finds, sorted.
func (s *suite) list(kind, query, name string) []string {
	s.Helper()
	var answer map[string][]object
	s.mustSend(http.MethodGet, "/v2.0/"+kind+"s?"+query, "", http.StatusOK, &answer)
	var found []string
	for _, o := range answer[kind+"s"] {
		found = append(found, fmt.Sprint(o[name]))
	}
	slices.Sort(found)
	return found
}

// rawNetwork makes a network that is gone after the test, past the client.
func (s *suite) rawNetwork() (id string) {
	s.Helper()
	return s.post("network", `"name": "neutrontest"`, exchange{})
}

// rawSubnet makes a subnet on a network of its own.
func (s *suite) rawSubnet(body string) (id string) {
	s.Helper()
	return s.post("subnet", `"network_id": "`+s.rawNetwork()+`"`, exchange{body: body})
}

// atRevision makes a request that is meant for one revision of an object, and
// returns the status and the type of the error.
func (s *suite) atRevision(revision, method, path, body string) (status int, typ string) {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context(), method, s.Endpoint+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	request.Header.Set("If-Match", "revision_number="+revision)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var answer struct{ NeutronError struct{ Type string } }
	_ = json.NewDecoder(response.Body).Decode(&answer) // what is no JSON has no type
	return response.StatusCode, answer.NeutronError.Type
}
