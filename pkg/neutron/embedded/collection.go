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

// object is a network, subnet or port as it is in JSON.
type object = map[string]any

// collection is all objects of one kind, and what is special about them.
type collection struct {
	name       string      // in a body: network
	plural     string      // in a path: networks
	typeName   string      // in the type of an error: Network
	title      string      // in its message, where that is another name
	attributes []attribute // in the order in which they are checked
	// firstRevision is the revision of an object that was just created.
	firstRevision int
	quota         int // 0 or less for any number

	// validate checks an object for itself, whatever else there is; given is
	// what the request says, and before what was there, or nil.
	validate func(o, given, before object) *apiError
	// place checks a new object against what else there is, and completes it.
	place func(o, given object) *apiError
	// release checks that an object can be deleted, and deletes what goes with
	// it.
	release func(o object) *apiError
	// added and dropped note an object elsewhere; touched is told of all that
	// one request created, changed or deleted.
	added, dropped func(o object)
	touched        func(objects []object)
	// emptyPutCounts: a PUT that names no attribute makes a new revision too.
	emptyPutCounts bool
	// noBulk: objects are created one at a time.
	noBulk bool
	// wholeAnswers: an answer to a POST or PUT has all fields, whatever the
	// request asks for.
	wholeAnswers bool
	// shown returns an object as answers have it, and shownUpdated as the answer
	// to a PUT does; where they are nil, that is how it is kept.
	shown        func(o object) object
	shownUpdated func(o, given object) object
	// forgivesMarker: a page after an object that is not there is the first.
	forgivesMarker bool

	objects map[string]object
	order   []string // the IDs, as they were created
}

func nothing(object)    {}
func nothings([]object) {}

// handleCollection adds the paths of a collection.
func (s *Server) handleCollection(c *collection) {
	all, one := "/v2.0/"+c.plural, "/v2.0/"+c.plural+"/{id}"
	s.handle("GET "+all, http.StatusOK, withoutRevision(func(r *http.Request) (object, *apiError) { return s.list(c, r) }))
	s.handle("POST "+all, http.StatusCreated, c.create)
	s.handle("GET "+one, http.StatusOK, c.show)
	s.handle("PUT "+one, http.StatusOK, c.update)
	s.handle("DELETE "+one, http.StatusNoContent, c.delete)
	missing := func(*http.Request) (object, *apiError) { return nil, c.missing("None") }
	s.handle("PUT "+all, http.StatusOK, missing)
	s.handle("DELETE "+all, http.StatusOK, missing)
	other := func(*http.Request) (object, *apiError) { return nil, methodNotAllowed }
	s.handle(all, http.StatusOK, other)
	s.handle(one, http.StatusOK, other)
	if s.has("standard-attr-tag") {
		s.handleTags(c)
	}
}

func (c *collection) missing(id string) *apiError {
	return notFound(c.typeName+"NotFound", "%s %s could not be found.", cmp.Or(c.title, c.typeName), id)
}

// answer returns an object as an answer has it, with some fields only.
func (c *collection) answer(o object, fields []string) object {
	if c.shown != nil {
		o = c.shown(o)
	}
	return thin(o, fields)
}

// answerWritten does so for the answer to a POST or PUT.
func (c *collection) answerWritten(r *http.Request, o object) object {
	if c.wholeAnswers {
		return c.answer(o, nil)
	}
	return c.answer(o, parseQuery(r.URL.RawQuery).all("fields"))
}

// find returns the object in a path.
func (c *collection) find(r *http.Request) (object, *apiError) {
	if o, ok := c.objects[r.PathValue("id")]; ok {
		return o, nil
	}
	return nil, c.missing(r.PathValue("id"))
}

func (c *collection) show(r *http.Request) (object, *apiError) {
	query := parseQuery(r.URL.RawQuery)
	if _, failure := c.filters(query); failure != nil {
		return nil, failure
	}
	if _, _, failure := askedRevision(r); failure != nil {
		return nil, failure
	}
	o, failure := c.find(r)
	if failure != nil {
		return nil, failure
	}
	return object{c.name: c.answer(o, query.all("fields"))}, nil
}

func (c *collection) create(r *http.Request) (object, *apiError) {
	items, bulk, failure := c.readBody(r)
	if failure == nil && bulk && c.noBulk {
		failure = badRequest("Bulk operation not supported")
	}
	if failure != nil {
		return nil, failure
	}
	made, failure := c.createAll(r, items)
	if failure != nil {
		return nil, failure
	}
	for i := range made {
		made[i] = c.answerWritten(r, made[i])
	}
	if bulk {
		return object{c.plural: made}, nil
	}
	return object{c.name: made[0]}, nil
}

// createAll creates all objects of a request, or none.
func (c *collection) createAll(r *http.Request, items []object) ([]object, *apiError) {
	var made []object
	for _, given := range items {
		o, failure := c.complete(given)
		if failure == nil {
			failure = c.validate(o, given, nil)
		}
		if failure != nil {
			return nil, failure
		}
		made = append(made, o)
	}
	if failure := refuseRevision(r); failure != nil {
		return nil, failure
	}
	if c.quota != unlimited && len(c.objects)+len(made) > c.quota {
		return nil, conflict("OverQuota", "Quota exceeded for resources: ['%s'].", c.name)
	}
	for i, o := range made {
		if failure := c.place(o, items[i]); failure != nil {
			for _, o := range made[:i] {
				c.drop(o)
			}
			return nil, failure
		}
		c.add(o)
	}
	c.touched(made)
	return made, nil
}

// add puts a new object among the others.
func (c *collection) add(o object) {
	id := newID()
	o["id"], o["revision_number"] = id, c.firstRevision
	o["created_at"], o["updated_at"] = now(), now()
	c.objects[id] = o
	c.order = append(c.order, id)
	c.added(o)
}

// drop takes an object away.
func (c *collection) drop(o object) {
	id := o["id"].(string)
	delete(c.objects, id)
	c.order = slices.DeleteFunc(c.order, func(other string) bool { return other == id })
	c.dropped(o)
}

// complete checks what a request gives for a new object and adds what it
// leaves out.
func (c *collection) complete(given object) (object, *apiError) {
	if failure := c.checkNames(given); failure != nil {
		return nil, failure
	}
	for _, a := range c.attributes {
		_, said := given[a.name]
		switch {
		case said && !a.post:
			return nil, badRequest("Attribute '%s' not allowed in POST", a.name)
		case a.required && !said:
			return nil, badRequest("Failed to parse request. Required attribute '%s' not specified", a.name)
		}
	}
	o := object{}
	for _, a := range c.attributes {
		if !a.hidden {
			o[a.name] = a.initial
		}
	}
	if failure := c.take(o, given); failure != nil {
		return nil, failure
	}
	o["project_id"] = o["tenant_id"]
	return o, nil
}

// checkNames refuses attributes that there are not, and takes project_id for
// what it is called in the oldest of times.
func (c *collection) checkNames(given object) *apiError {
	if projectID, said := given["project_id"]; said {
		if tenantID, also := given["tenant_id"]; also && text(tenantID) != text(projectID) {
			return badRequest("'project_id' and 'tenant_id' do not match")
		}
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

// take checks the values that a request gives, and puts them into an object.
func (c *collection) take(o, given object) *apiError {
	for _, a := range c.attributes {
		value, said := given[a.name]
		if !said {
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
	items, bulk, failure := c.readBody(r)
	if failure != nil {
		return nil, failure
	}
	if bulk {
		return nil, badRequest("Bulk operation not supported")
	}
	before, failure := c.find(r)
	if failure != nil {
		return nil, failure
	}
	given := items[0]
	o, failure := c.changed(before, given)
	if failure != nil {
		return nil, failure
	}
	if len(given) > 0 || c.emptyPutCounts {
		// A real Neutron, too, looks at the revision last of all.
		if failure := matchRevision(r, before); failure != nil {
			return nil, failure
		}
		maps.Copy(before, o)
		touch(before)
		c.touched([]object{before})
	}
	if c.shownUpdated != nil {
		return object{c.name: c.shownUpdated(before, given)}, nil
	}
	return object{c.name: c.answerWritten(r, before)}, nil
}

// changed returns a copy of an object with what a request gives.
func (c *collection) changed(before, given object) (object, *apiError) {
	if failure := c.checkNames(given); failure != nil {
		return nil, failure
	}
	for _, a := range c.attributes {
		if _, said := given[a.name]; said && !a.put {
			return nil, badRequest("Cannot update read-only attribute %s", a.name)
		}
	}
	o := maps.Clone(before)
	if failure := c.take(o, given); failure != nil {
		return nil, failure
	}
	return o, c.validate(o, given, before)
}

// touch notes that an object was changed, if only by a request that changes
// nothing.
func touch(o object) {
	o["revision_number"] = o["revision_number"].(int) + 1
	o["updated_at"] = now()
}

func (c *collection) delete(r *http.Request) (object, *apiError) {
	if body, _ := io.ReadAll(r.Body); len(body) > 0 {
		return nil, badRequest("Request body is not supported in DELETE.")
	}
	o, failure := c.find(r)
	if failure == nil {
		failure = c.release(o)
	}
	if failure == nil {
		failure = matchRevision(r, o)
	}
	if failure != nil {
		return nil, failure
	}
	c.drop(o)
	c.touched([]object{o})
	return nil, nil
}

// matchRevision refuses a request for another revision than the object has. An
// If-Match of any other form is ignored, as a real Neutron does.
func matchRevision(r *http.Request, o object) *apiError {
	revision, asked, failure := askedRevision(r)
	if failure != nil || !asked || revision == o["revision_number"] {
		return failure
	}
	return &apiError{http.StatusPreconditionFailed, "RevisionNumberConstraintFailed",
		fmt.Sprintf("Constrained to %d, but current revision is %v", revision, o["revision_number"])}
}

// askedRevision returns the revision that a request is for, if it names one.
func askedRevision(r *http.Request) (revision int, asked bool, failure *apiError) {
	_, wanted, ok := strings.Cut(strings.ReplaceAll(r.Header.Get("If-Match"), `"`, ""), "revision_number=")
	if !ok {
		return 0, false, nil
	}
	revision, err := strconv.Atoi(strings.TrimSpace(wanted))
	if err != nil {
		return 0, false, badResource("if-match", "Revision number etag must be in the format of revision_number=<int>.")
	}
	return revision, true, nil
}

// refuseRevision refuses a request that names a revision, where there is no one
// object that could have it. A real Neutron trips over that, too.
func refuseRevision(r *http.Request) *apiError {
	_, asked, failure := askedRevision(r)
	if asked {
		return internalError
	}
	return failure
}

// withoutRevision has requests refused that name a revision.
func withoutRevision(do func(*http.Request) (object, *apiError)) func(*http.Request) (object, *apiError) {
	return func(r *http.Request) (object, *apiError) {
		if failure := refuseRevision(r); failure != nil {
			return nil, failure
		}
		return do(r)
	}
}

// readBody returns the objects in a request; bulk reports whether they were in a
// list.
func (c *collection) readBody(r *http.Request) (items []object, bulk bool, failure *apiError) {
	body, failure := readObject(r)
	if failure != nil {
		return nil, false, failure
	}
	if list, bulk := body[c.plural]; bulk {
		if r.Method != http.MethodPost {
			return nil, true, nil
		}
		items, failure := c.bulkItems(list)
		return items, true, failure
	}
	if body[c.name] == nil {
		return nil, false, badRequest("Unable to find '%s' in request body", c.name)
	}
	given, ok := body[c.name].(object)
	if !ok {
		return nil, false, badRequest("Object '%s' contains invalid data", c.name)
	}
	return []object{given}, false, nil
}

func (c *collection) bulkItems(list any) ([]object, *apiError) {
	items, _ := list.([]any)
	if len(items) == 0 {
		return nil, badRequest("Resources required")
	}
	var all []object
	for _, item := range items {
		given, ok := item.(object)
		if wrapped, is := given[c.name].(object); is {
			given = wrapped
		}
		if !ok {
			return nil, badRequest("Body contains invalid data")
		}
		all = append(all, given)
	}
	return all, nil
}

// readObject returns the body of a request; an empty one is an empty object.
func readObject(r *http.Request) (object, *apiError) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, badRequest("Body contains invalid data")
	}
	if len(data) == 0 {
		return object{}, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var body object
	if err := decoder.Decode(&body); err != nil || body == nil {
		return nil, badRequest("Body contains invalid data")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
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
