package neutrontest

import (
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

var tagTests = []test{
	{"a tag in a path can have nearly anything in it", withTags(func(s *suite, network string) {
		for path, tag := range map[string]string{
			"a": "a", "a%20b": "a b", "a,b": "a,b", "a%25b": "a%b", "a+b": "a+b", "%22": `"`, "a%0Ab": "a\nb", "a%3Fb": "a?b",
			".": ".", "..": "..", "..a": "..a", "a.b": "a.b", "tags": "tags",
			"a.json": "a", "a.json.json": "a.json", // what looks like a format goes
			"a%252Fb":                "a%2Fb",
			"%C3%A4":                 "\u00c3\u00a4", // the bytes of ä, each for itself
			strings.Repeat("x", 255): strings.Repeat("x", 255),
		} {
			one := "/v2.0/networks/" + network + "/tags/" + path
			s.mustSend(http.MethodPut, one, "", http.StatusCreated, nil)
			s.wantTags(network, tag)
			s.mustSend(http.MethodGet, one, "", http.StatusNoContent, nil)
			s.mustSend(http.MethodDelete, one, "", http.StatusNoContent, nil)
			s.wantTags(network)
		}
	})},
	{"these tags cannot be in a path", withTags(func(s *suite, network string) {
		tags := "/v2.0/networks/" + network + "/tags/"
		for _, path := range []string{"a/b", "a%2Fb"} {
			s.wantRefused(http.MethodPut, tags+path, "", http.StatusNotFound, "HTTPNotFound")
			s.wantRefused(http.MethodDelete, tags+path, "", http.StatusNotFound, "HTTPNotFound")
		}
		s.wantRefused(http.MethodPut, tags+strings.Repeat("x", 256), "", http.StatusBadRequest, "InvalidInput")
		s.wantRefused(http.MethodGet, tags+"absent", "", http.StatusNotFound, "TagNotFound")
		s.wantRefused(http.MethodDelete, tags+"absent", "", http.StatusNotFound, "TagNotFound")
		s.wantRefused(http.MethodPut, "/v2.0/networks/"+missing+"/tags/a", "", http.StatusNotFound, "TagResourceNotFound")
	})},
	{"tags in a body can have anything in them", withTags(func(s *suite, network string) {
		s.putTags(network, `["c", "a/b", "ä", "", "a.json", "a b", "a,b"]`)
		s.wantTags(network, "", "a b", "a,b", "a.json", "a/b", "c", "ä")
		s.mustSend(http.MethodDelete, "/v2.0/networks/"+network+"/tags/a.json", "", http.StatusNotFound, nil) // that is: a
		s.mustSend(http.MethodDelete, "/v2.0/networks/"+network+"/tags", "", http.StatusNoContent, nil)
		s.wantTags(network)
	})},
	{"tags come back in order", withTags(func(s *suite, network string) {
		s.putTags(network, `["c", "a", "b"]`)
		s.get("network", network, `"tags": ["a", "b", "c"]`)
	})},
	{"there is no limit to the number of tags", withTags(func(s *suite, network string) {
		var tags []string
		for i := range 200 {
			tags = append(tags, strconv.Quote(strconv.Itoa(i)))
		}
		s.putTags(network, "["+strings.Join(tags, ", ")+"]")
		s.mustSend(http.MethodPut, "/v2.0/networks/"+network+"/tags/more", "", http.StatusCreated, nil)
	})},
	{"these are no tags", withTags(func(s *suite, network string) {
		tags := "/v2.0/networks/" + network + "/tags"
		for _, body := range []string{`{"tags": ["a", "a"]}`, `{"tags": "a"}`, `{"tags": [1]}`, `{"tags": null}`, `{}`, `[]`} {
			s.wantRefused(http.MethodPut, tags, body, http.StatusBadRequest, "InvalidInput")
		}
		s.wantRefused(http.MethodPut, tags, "garbage", http.StatusBadRequest, "MalformedRequestBody")
	})},
	{"a tag that is there already is no change", withTags(func(s *suite, network string) {
		s.putTags(network, `["a", "b"]`)
		before := s.get("network", network, "")["revision_number"]
		s.mustSend(http.MethodPut, "/v2.0/networks/"+network+"/tags/a", "", http.StatusCreated, nil)
		s.putTags(network, `["b", "a"]`)
		if after := s.get("network", network, "")["revision_number"]; after != before {
			s.Errorf("the revision went from %v to %v", before, after)
		}
	})},
	{"tags cannot be asked for at a revision", withTags(func(s *suite, network string) {
		tags := "/v2.0/networks/" + network + "/tags"
		for _, request := range [][3]string{
			{http.MethodGet, tags}, {http.MethodPut, tags, `{"tags": ["x"]}`}, {http.MethodDelete, tags},
			{http.MethodPut, tags + "/x"}, {http.MethodDelete, tags + "/x"},
		} {
			status, typ := s.atRevision("1", request[0], request[1], request[2]) // which it has
			if status != http.StatusInternalServerError || typ != "HTTPInternalServerError" {
				s.Errorf("%v: %d %s, want 500 HTTPInternalServerError", request, status, typ)
			}
			status, typ = s.atRevision("x", request[0], request[1], request[2])
			if status != http.StatusBadRequest || typ != "BadRequest" {
				s.Errorf("%v: %d %s, want 400 BadRequest", request, status, typ)
			}
		}
		s.wantTags(network)
	})},
}

// withTags makes a test of one with a network. Where there are no tags, others
// test that.
func withTags(run func(s *suite, network string)) func(*suite) {
	return func(s *suite) {
		if s.has("standard-attr-tag") {
			run(s, s.rawNetwork())
		}
	}
}

func (s *suite) putTags(network, tags string) {
	s.Helper()
	s.mustSend(http.MethodPut, "/v2.0/networks/"+network+"/tags", `{"tags": `+tags+`}`, http.StatusOK, nil)
}

// wantTags checks which tags a network has.
func (s *suite) wantTags(network string, want ...string) {
	s.Helper()
	var body struct{ Tags []string }
	s.mustSend(http.MethodGet, "/v2.0/networks/"+network+"/tags", "", http.StatusOK, &body)
	slices.Sort(body.Tags) // another database may have another order for what is not a letter
	if len(body.Tags)+len(want) > 0 && !reflect.DeepEqual(body.Tags, want) {
		s.Errorf("the tags are %q, want %q", body.Tags, want)
	}
}
