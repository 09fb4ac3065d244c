package embedded

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// object is a network, subnet, subnet pool or port, as it is in JSON.
type object = map[string]any

// collection holds all objects of one kind. See newCollection for the defaults.
type collection struct {
	name       string      // in a body, such as network
	plural     string      // in a path, such as networks
	typeName   string      // in the type of an error, such as Network
	title      string      // in the message of an error; defaults to typeName
	attributes []attribute // in the order in which they are checked
	// firstRevision is the revision of a new object.
	firstRevision int
	quota         int

	// These can be nil. validate checks an object by itself; given holds the values of the request,
	// and before is the object before an update, or nil.
	validate func(o, given, before object) *apiError
	// place checks a new object against the other objects, and completes it.
	place func(o, given object) *apiError
	// release checks that an object can be deleted.
	release func(o object) *apiError
	// added, updated and dropped keep what refers to an object up to date.
	added, updated, dropped func(o object)
	// shown returns an object as it is in a response.
	shown func(o object) object
	// forgivesMarker: the page after an unknown object is the first page.
	forgivesMarker bool

	objects map[string]object
	order   []string // the IDs, the oldest first
	sorted  []string // the IDs in their order, or nil
}

// newCollection returns an empty collection without a quota.
func newCollection(c collection) *collection {
	c.objects, c.quota, c.title = map[string]object{}, unlimited, cmp.Or(c.title, c.typeName)
	return &c
}

// handleCollection adds the paths of a collection.
func (s *Server) handleCollection(c *collection) {
	all, one := " /v2.0/"+c.plural, " /v2.0/"+c.plural+"/{id}"
	s.handle(http.MethodGet+all, http.StatusOK, func(r *http.Request) (object, *apiError) { return s.list(c, r) })
	s.handle(http.MethodPost+all, http.StatusCreated, c.create)
	s.handle(http.MethodGet+one, http.StatusOK, c.show)
	s.handle(http.MethodPut+one, http.StatusOK, c.update)
	s.handle(http.MethodDelete+one, http.StatusNoContent, c.delete)
	if s.has("standard-attr-tag") {
		s.handleTags(c)
	}
}

func (c *collection) missing(id string) *apiError {
	return notFound(c.typeName+"NotFound", "%s %s could not be found.", c.title, id)
}

// response returns an object as it is in a response, with some fields; none means
// all.
func (c *collection) response(o object, fields []string) object {
	if c.shown != nil {
		o = c.shown(o)
	}
	if len(fields) == 0 {
		return o
	}
	thin := object{}
	for _, field := range fields {
		if value, ok := o[field]; ok {
			thin[field] = value
		}
	}
	return thin
}

// find returns the object in a path.
func (c *collection) find(r *http.Request) (object, *apiError) {
	if o, ok := c.objects[r.PathValue("id")]; ok {
		return o, nil
	}
	return nil, c.missing(r.PathValue("id"))
}

func (c *collection) show(r *http.Request) (object, *apiError) {
	o, failure := c.find(r)
	if failure != nil {
		return nil, failure
	}
	return object{c.name: c.response(o, r.URL.Query()["fields"])}, nil
}

// read returns the values in a request.
func (c *collection) read(r *http.Request) (object, *apiError) {
	body, failure := readObject(r)
	if failure != nil {
		return nil, failure
	}
	given, ok := body[c.name].(object)
	if !ok {
		return nil, badRequest("Unable to find '%s' in request body", c.name)
	}
	return given, c.checkNames(given)
}

func (c *collection) create(r *http.Request) (object, *apiError) {
	given, failure := c.read(r)
	if failure != nil {
		return nil, failure
	}
	o, failure := c.complete(given)
	if failure == nil && c.validate != nil {
		failure = c.validate(o, given, nil)
	}
	if failure == nil && c.quota != unlimited && len(c.objects) >= c.quota {
		failure = conflict("OverQuota", "Quota exceeded for resources: ['%s'].", c.name)
	}
	if failure == nil && c.place != nil {
		failure = c.place(o, given)
	}
	if failure != nil {
		return nil, failure
	}
	c.add(o)
	return object{c.name: c.response(o, nil)}, nil
}

func (c *collection) add(o object) {
	id := newID()
	o["id"], o["revision_number"] = id, c.firstRevision
	o["created_at"], o["updated_at"] = now(), now()
	c.objects[id] = o
	c.order, c.sorted = append(c.order, id), nil
	if c.added != nil {
		c.added(o)
	}
}

func (c *collection) drop(o object) {
	id := o["id"].(string)
	delete(c.objects, id)
	c.order, c.sorted = slices.DeleteFunc(c.order, func(other string) bool { return other == id }), nil
	if c.dropped != nil {
		c.dropped(o)
	}
}

// complete checks the values of a request for a new object, and adds the defaults.
func (c *collection) complete(given object) (object, *apiError) {
	if failure := c.checkNames(given); failure != nil {
		return nil, failure
	}
	o := object{}
	for _, a := range c.attributes {
		_, set := given[a.name]
		switch {
		case set && !a.post:
			return nil, badRequest("Attribute '%s' not allowed in POST", a.name)
		case a.required && !set:
			return nil, badRequest("Failed to parse request. Required attribute '%s' not specified", a.name)
		case !a.hidden:
			o[a.name] = a.initial
		}
	}
	failure := c.take(o, given)
	o["project_id"] = o["tenant_id"]
	return o, failure
}

// checkNames rejects unknown attributes. It renames project_id to tenant_id, its
// old name.
func (c *collection) checkNames(given object) *apiError {
	if projectID, ok := given["project_id"]; ok {
		delete(given, "project_id")
		given["tenant_id"] = projectID
	}
	var unknown []string
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if c.attribute(name) == nil {
			unknown = append(unknown, name)
		}
	}
	if unknown != nil {
		return badRequest("Unrecognized attribute(s) '%s'", strings.Join(unknown, ", "))
	}
	return nil
}

// take checks the values of a request, and sets them in an object.
func (c *collection) take(o, given object) *apiError {
	for _, a := range c.attributes {
		value, ok := given[a.name]
		if !ok {
			continue
		}
		value, failure := a.check(a.name, value)
		if failure != nil {
			return failure
		}
		given[a.name] = value
		if !a.hidden {
			o[a.name] = value
		}
	}
	return nil
}

func (c *collection) update(r *http.Request) (object, *apiError) {
	given, failure := c.read(r)
	if failure != nil {
		return nil, failure
	}
	before, failure := c.find(r)
	if failure != nil {
		return nil, failure
	}
	for _, a := range c.attributes {
		if _, set := given[a.name]; set && !a.put {
			return nil, badRequest("Cannot update read-only attribute %s", a.name)
		}
	}
	o := maps.Clone(before)
	failure = c.take(o, given)
	if failure == nil && c.validate != nil {
		failure = c.validate(o, given, before)
	}
	if failure == nil {
		failure = matchRevision(r, before) // a real Neutron, too, checks it last
	}
	if failure != nil {
		return nil, failure
	}
	maps.Copy(before, o)
	touch(before)
	if c.updated != nil {
		c.updated(before)
	}
	return object{c.name: c.response(before, nil)}, nil
}

// touch gives an object the next revision.
func touch(o object) {
	o["revision_number"] = o["revision_number"].(int) + 1
	o["updated_at"] = now()
}

func (c *collection) delete(r *http.Request) (object, *apiError) {
	o, failure := c.find(r)
	if failure == nil && c.release != nil {
		failure = c.release(o)
	}
	if failure == nil {
		failure = matchRevision(r, o)
	}
	if failure != nil {
		return nil, failure
	}
	c.drop(o)
	return nil, nil
}

// matchRevision rejects a request with an If-Match for another revision. It
// ignores an If-Match of any other form, as a real Neutron does.
func matchRevision(r *http.Request, o object) *apiError {
	wanted, ok := strings.CutPrefix(r.Header.Get("If-Match"), "revision_number=")
	revision, err := strconv.Atoi(wanted)
	if !ok || err != nil || revision == o["revision_number"] {
		return nil
	}
	return &apiError{http.StatusPreconditionFailed, "RevisionNumberConstraintFailed",
		fmt.Sprintf("Constrained to %d, but current revision is %v", revision, o["revision_number"])}
}

// readObject returns the body of a request.
func readObject(r *http.Request) (object, *apiError) {
	data, _ := io.ReadAll(r.Body) // which is in memory
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var body object
	err := decoder.Decode(&body)
	if _, after := decoder.Token(); err != nil || body == nil || !errors.Is(after, io.EOF) {
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

func now() string { return time.Now().UTC().Format(time.RFC3339) }
