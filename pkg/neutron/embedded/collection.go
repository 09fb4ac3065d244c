package embedded

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
)

// object is a network, subnet or port as it is in JSON.
type object = map[string]any

// collection is all objects of one kind.
type collection struct {
	name       string // in a body: network
	plural     string // in a path: networks
	typeName   string // in an error: Network
	attributes map[string]attribute
	quota      int // 0 for any number
	// firstRevision is the revision of an object that was just created.
	firstRevision int

	// prepare checks and completes an object before it is created or changed;
	// given is what the request says, and before what was there, or nil.
	prepare func(s *Server, o, given, before object) *apiError
	// remove checks that an object can be deleted, and deletes what goes with it.
	remove func(s *Server, o object) *apiError

	objects map[string]object
	order   []string // the IDs, as they were created
}

// attribute is a member of an object.
type attribute struct {
	post, put bool // whether a request may say it when it creates or updates
	required  bool
	fallback  any // where it is not said
	check     func(value any) (any, *apiError)
}

// common returns the attributes that every kind of object has, and more.
func common(more map[string]attribute) map[string]attribute {
	all := map[string]attribute{
		"id": {}, "status": {fallback: "ACTIVE"}, "tags": {fallback: []any{}},
		"created_at": {}, "updated_at": {}, "revision_number": {},
		"tenant_id":   {post: true, fallback: project, check: text("tenant_id")},
		"project_id":  {post: true, fallback: project, check: text("project_id")},
		"name":        {post: true, put: true, fallback: "", check: text("name")},
		"description": {post: true, put: true, fallback: "", check: text("description")},
	}
	maps.Copy(all, more)
	return all
}

// project is the one that everything belongs to, as in a real Neutron without
// authentication.
const project = "fake_project_id"

// find returns the collection in a path, and answers with an error where there
// is none. It holds s.mu then; done releases it.
func (s *Server) find(w http.ResponseWriter, r *http.Request) (c *collection, done func()) {
	s.mu.Lock()
	c, ok := s.collections[r.PathValue("collection")]
	if !ok {
		s.mu.Unlock()
		answerError(w, notFound("HTTP", "The resource could not be found."))
		return nil, nil
	}
	return c, s.mu.Unlock
}

// findObject is find for a path that ends with an ID.
func (s *Server) findObject(w http.ResponseWriter, r *http.Request) (c *collection, o object, done func()) {
	c, done = s.find(w, r)
	if c == nil {
		return nil, nil, nil
	}
	o, ok := c.objects[r.PathValue("id")]
	if !ok {
		done()
		answerError(w, c.missing(r.PathValue("id")))
		return nil, nil, nil
	}
	return c, o, done
}

func (c *collection) missing(id string) *apiError {
	return notFound(c.typeName, fmt.Sprintf("%s %s could not be found.", c.typeName, id))
}

func (s *Server) show(w http.ResponseWriter, r *http.Request) {
	c, o, done := s.findObject(w, r)
	if c == nil {
		return
	}
	defer done()
	answer(w, http.StatusOK, object{c.name: thin(o, r.URL.Query()["fields"])})
}

func (s *Server) create(w http.ResponseWriter, r *http.Request) {
	body, failure := readBody(w, r)
	if failure != nil {
		answerError(w, failure)
		return
	}
	c, done := s.find(w, r)
	if c == nil {
		return
	}
	defer done()
	if list, bulk := body[c.plural].([]any); bulk {
		s.createAll(w, c, list)
		return
	}
	given, ok := body[c.name].(object)
	if !ok {
		answerError(w, badRequest("Unable to find '%s' in request body", c.name))
		return
	}
	o, failure := s.add(c, given)
	if failure != nil {
		answerError(w, failure)
		return
	}
	answer(w, http.StatusCreated, object{c.name: o})
}

// createAll creates all objects of a list, or none.
func (s *Server) createAll(w http.ResponseWriter, c *collection, list []any) {
	if len(list) == 0 {
		answerError(w, badRequest("Resources required"))
		return
	}
	made := []object{}
	for _, item := range list {
		given, _ := item.(object)
		o, failure := s.add(c, given)
		if failure != nil {
			for _, o := range made {
				s.drop(c, o)
			}
			answerError(w, failure)
			return
		}
		made = append(made, o)
	}
	answer(w, http.StatusCreated, object{c.plural: made})
}

// add creates an object of what a request gives.
func (s *Server) add(c *collection, given object) (object, *apiError) {
	o, failure := c.complete(given)
	if failure != nil {
		return nil, failure
	}
	if failure := c.prepare(s, o, given, nil); failure != nil {
		return nil, failure
	}
	if c.quota > 0 && len(c.objects) >= c.quota {
		return nil, &apiError{http.StatusConflict, "OverQuota", fmt.Sprintf("Quota exceeded for resources: ['%s'].", c.name)}
	}
	id, now := newID(), time.Now().UTC().Format(time.RFC3339)
	o["id"], o["created_at"], o["updated_at"], o["revision_number"] = id, now, now, c.firstRevision
	c.objects[id] = o
	c.order = append(c.order, id)
	if c.plural == "subnets" {
		s.subnetsChanged(o["network_id"].(string))
	}
	return o, nil
}

// complete checks what a request gives for a new object and adds what it
// leaves out.
func (c *collection) complete(given object) (object, *apiError) {
	o := object{}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		attribute, known := c.attributes[name]
		switch {
		case !known:
			return nil, badRequest("Unrecognized attribute(s) '%s'", name)
		case !attribute.post:
			return nil, badRequest("Attribute '%s' not allowed in POST", name)
		}
		value, failure := attribute.value(given[name])
		if failure != nil {
			return nil, failure
		}
		o[name] = value
	}
	for _, name := range slices.Sorted(maps.Keys(c.attributes)) {
		if _, said := o[name]; said {
			continue
		}
		if c.attributes[name].required {
			return nil, badRequest("Failed to parse request. Required attribute '%s' not specified", name)
		}
		o[name] = c.attributes[name].fallback
	}
	return o, nil
}

func (a attribute) value(given any) (any, *apiError) {
	if a.check == nil {
		return given, nil
	}
	return a.check(given)
}

func (s *Server) update(w http.ResponseWriter, r *http.Request) {
	body, failure := readBody(w, r)
	if failure != nil {
		answerError(w, failure)
		return
	}
	c, before, done := s.findObject(w, r)
	if c == nil {
		return
	}
	defer done()
	given, ok := body[c.name].(object)
	if !ok {
		answerError(w, badRequest("Unable to find '%s' in request body", c.name))
		return
	}
	o, failure := c.changed(before, given)
	if failure == nil {
		failure = matchRevision(r, before)
	}
	if failure == nil {
		failure = c.prepare(s, o, given, before)
	}
	if failure != nil {
		answerError(w, failure)
		return
	}
	touch(o)
	c.objects[r.PathValue("id")] = o
	answer(w, http.StatusOK, object{c.name: o})
}

// changed returns a copy of an object with what a request gives.
func (c *collection) changed(before, given object) (object, *apiError) {
	o := maps.Clone(before)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		attribute, known := c.attributes[name]
		switch {
		case !known:
			return nil, badRequest("Unrecognized attribute(s) '%s'", name)
		case !attribute.put:
			return nil, badRequest("Cannot update read-only attribute %s", name)
		}
		value, failure := attribute.value(given[name])
		if failure != nil {
			return nil, failure
		}
		o[name] = value
	}
	return o, nil
}

// touch notes that an object was changed, if only by a request that changes
// nothing.
func touch(o object) {
	o["revision_number"] = o["revision_number"].(int) + 1
	o["updated_at"] = time.Now().UTC().Format(time.RFC3339)
}

func (s *Server) delete(w http.ResponseWriter, r *http.Request) {
	c, o, done := s.findObject(w, r)
	if c == nil {
		return
	}
	defer done()
	failure := matchRevision(r, o)
	if failure == nil {
		failure = c.remove(s, o)
	}
	if failure != nil {
		answerError(w, failure)
		return
	}
	s.drop(c, o)
	w.WriteHeader(http.StatusNoContent)
}

// drop takes an object away.
func (s *Server) drop(c *collection, o object) {
	id := o["id"].(string)
	delete(c.objects, id)
	c.order = slices.DeleteFunc(c.order, func(other string) bool { return other == id })
	if c.plural == "subnets" {
		s.subnetsChanged(o["network_id"].(string))
	}
}

// matchRevision refuses a request for another revision than the object has.
// Any other form of If-Match is ignored, as a real Neutron does.
func matchRevision(r *http.Request, o object) *apiError {
	text, ok := strings.CutPrefix(r.Header.Get("If-Match"), "revision_number=")
	wanted, err := strconv.Atoi(text)
	if !ok || err != nil || wanted == o["revision_number"] {
		return nil
	}
	return &apiError{http.StatusPreconditionFailed, "RevisionNumberConstraintFailed",
		fmt.Sprintf("Constrained to %d, but current revision is %v", wanted, o["revision_number"])}
}

// maxBody is the size of a request's body at most, in bytes.
const maxBody = 112 << 10

func readBody(w http.ResponseWriter, r *http.Request) (object, *apiError) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return nil, &apiError{http.StatusRequestEntityTooLarge, "HTTPRequestEntityTooLarge", "Request is too large."}
	}
	var body object
	if err := json.Unmarshal(data, &body); err != nil || body == nil {
		return nil, badRequest("Body contains invalid data")
	}
	return body, nil
}

// newID returns a random UUID (version 4).
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// thin returns an object with some fields only; none means all.
func thin(o object, fields []string) object {
	if len(fields) == 0 {
		return o
	}
	thinned := object{}
	for _, field := range fields {
		if value, ok := o[field]; ok {
			thinned[field] = value
		}
	}
	return thinned
}

// answer sends an object as JSON.
func answer(w http.ResponseWriter, status int, body object) {
	data, err := json.Marshal(body)
	if err != nil {
		panic(err) // what was read as JSON can be written as JSON
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data)
}

func sortedBy(objects []object, key string, descending bool) {
	sort.SliceStable(objects, func(i, j int) bool {
		a, b := fmt.Sprint(objects[i][key]), fmt.Sprint(objects[j][key])
		if descending {
			return b < a
		}
		return a < b
	})
}
