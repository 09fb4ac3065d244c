package embedded

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// tagFilters are the filters by tags, each with a list of them.
var tagFilters = map[string]func(tags []string) func(object) bool{
	"tags":         hasAll,
	"tags-any":     hasAny,
	"not-tags":     func(tags []string) func(object) bool { return not(hasAll(tags)) },
	"not-tags-any": func(tags []string) func(object) bool { return not(hasAny(tags)) },
}

func hasAll(tags []string) func(object) bool {
	return func(o object) bool {
		return !slices.ContainsFunc(tags, func(tag string) bool { return !hasTag(o, tag) })
	}
}

func hasAny(tags []string) func(object) bool {
	return func(o object) bool {
		return slices.ContainsFunc(tags, func(tag string) bool { return hasTag(o, tag) })
	}
}

func not(passes func(object) bool) func(object) bool {
	return func(o object) bool { return !passes(o) }
}

func hasTag(o object, tag string) bool { return slices.Contains(o["tags"].([]any), any(tag)) }

// handleTags adds the paths of the tags of a collection's objects.
func (s *Server) handleTags(c *collection) {
	all, one := "/v2.0/"+c.plural+"/{id}/tags", "/v2.0/"+c.plural+"/{id}/tags/{tag}"
	get := c.withTags(func(_ *http.Request, o object) (object, *apiError) {
		return object{"tags": o["tags"]}, nil
	})
	getOne := c.withTags(func(r *http.Request, o object) (object, *apiError) {
		return nil, findTag(r, o)
	})
	s.handle("GET "+all, http.StatusOK, get)
	s.handle("PATCH "+all, http.StatusOK, get)
	s.handle("POST "+all, http.StatusOK, withoutRevision(func(*http.Request) (object, *apiError) {
		return nil, notFound("HTTPNotFound", "not supported")
	}))
	s.handle("PUT "+all, http.StatusOK, c.withTags(putTags))
	s.handle("DELETE "+all, http.StatusNoContent, c.withTags(func(_ *http.Request, o object) (object, *apiError) {
		setTags(o, []any{})
		return nil, nil
	}))
	s.handle("GET "+one+"/{more...}", http.StatusOK, func(*http.Request) (object, *apiError) { return nil, internalError })
	for _, method := range []string{"GET ", "POST ", "PATCH "} {
		s.handle(method+one, http.StatusNoContent, getOne)
	}
	s.handle("PUT "+one, http.StatusCreated, c.withTags(func(r *http.Request, o object) (object, *apiError) {
		if tag := r.PathValue("tag"); !hasTag(o, tag) {
			setTags(o, append(slices.Clone(o["tags"].([]any)), tag))
		}
		return nil, nil
	}))
	s.handle("DELETE "+one, http.StatusNoContent, c.withTags(func(r *http.Request, o object) (object, *apiError) {
		failure := findTag(r, o)
		if failure == nil {
			setTags(o, slices.DeleteFunc(slices.Clone(o["tags"].([]any)), func(tag any) bool { return tag == r.PathValue("tag") }))
		}
		return nil, failure
	}))
}

// withTags finds the object in a path, and checks what all requests for tags
// have in common: their revision, their JSON, and the tag in the path.
func (c *collection) withTags(do func(*http.Request, object) (object, *apiError)) func(*http.Request) (object, *apiError) {
	return withoutRevision(func(r *http.Request) (object, *apiError) {
		data, err := io.ReadAll(r.Body)
		if err != nil || len(data) > 0 && !json.Valid(data) {
			return nil, &apiError{http.StatusBadRequest, "MalformedRequestBody", "Malformed request body: Cannot understand JSON."}
		}
		r.Body = io.NopCloser(bytes.NewReader(data))
		if failure := checkTag(r.PathValue("tag")); failure != nil {
			return nil, failure
		}
		o, ok := c.objects[r.PathValue("id")]
		if !ok {
			return nil, notFound("TagResourceNotFound", "Resource %s %s could not be found.", c.plural, r.PathValue("id"))
		}
		return do(r, o)
	})
}

// putTags replaces all tags. The answer is what the request says, whatever else
// that is.
func putTags(r *http.Request, o object) (object, *apiError) {
	var body any
	decoder := json.NewDecoder(r.Body)
	decoder.UseNumber()
	if err := decoder.Decode(&body); err != nil {
		return nil, internalError // there is no body
	}
	said, _ := body.(object)
	tags, failure := readTags(said)
	if failure != nil {
		return nil, failure
	}
	setTags(o, tags)
	return said, nil
}

// setTags gives an object other tags, which it keeps in order. It is a change
// only where they differ.
func setTags(o object, tags []any) {
	tags = slices.SortedFunc(slices.Values(tags), func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
	if before := o["tags"].([]any); !slices.Equal(before, tags) {
		o["tags"] = append([]any{}, tags...) // [] in JSON, where there are none
		touch(o)
	}
}

func findTag(r *http.Request, o object) *apiError {
	if tag := r.PathValue("tag"); !hasTag(o, tag) {
		return notFound("TagNotFound", "Tag %s could not be found.", tag)
	}
	return nil
}

func readTags(body object) ([]any, *apiError) {
	list, ok := body["tags"]
	if !ok {
		return nil, invalidInput("Invalid tags body.")
	}
	tags, ok := list.([]any)
	if !ok {
		return nil, invalidInput("'%s' is not a list.", text(list))
	}
	seen := map[string]bool{}
	for _, tag := range tags {
		if failure := checkTag(tag); failure != nil {
			return nil, failure
		}
		if seen[tag.(string)] {
			return nil, invalidInput("Duplicate items in the list: '%s'.", tag)
		}
		seen[tag.(string)] = true
	}
	return tags, nil
}

func checkTag(value any) *apiError {
	tag, ok := value.(string)
	switch {
	case !ok:
		return invalidInput("'%s' is not a valid string.", text(value))
	case utf8.RuneCountInString(tag) > 255:
		return invalidInput("'%s' exceeds maximum length of 255.", tag)
	}
	return nil
}

// tagPath returns the path of a request for one tag as the mux of this package
// reads it rightly, and whether there is one. Neutron decodes a path before it
// looks for slashes, drops those at the end and one ".json", and takes what is
// left of a tag for Latin-1, whatever its bytes were meant to be.
func tagPath(path string) (plain, escaped string, ok bool) {
	parts := strings.SplitN(path, "/", 6) // "", v2.0, networks, ID, tags, TAG
	if len(parts) < 6 || parts[1] != "v2.0" || parts[4] != "tags" {
		return "", "", false
	}
	tag := strings.TrimRight(parts[5], "/")
	if bare := strings.TrimSuffix(tag, ".json"); bare != "" {
		tag = bare
	}
	var latin strings.Builder
	for _, b := range []byte(tag) {
		latin.WriteRune(rune(b))
	}
	before := strings.Join(parts[:5], "/")
	if tag == "" {
		return before, (&url.URL{Path: before}).EscapedPath(), true
	}
	plain = before + "/" + latin.String()
	// A mux would take points for a way up, and redirect.
	last := strings.ReplaceAll(url.PathEscape(latin.String()), ".", "%2E")
	return plain, (&url.URL{Path: before}).EscapedPath() + "/" + strings.ReplaceAll(last, "%2F", "/"), true
}
