package embedded

import (
	"net/http"
	"slices"
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
	s.handle("GET "+all, http.StatusOK, c.withTags(func(_ *http.Request, o object) (object, *apiError) {
		return object{"tags": o["tags"]}, nil
	}))
	s.handle("PUT "+all, http.StatusOK, c.withTags(func(r *http.Request, o object) (object, *apiError) {
		tags, failure := readTags(r)
		if failure == nil {
			setTags(o, tags)
		}
		return object{"tags": tags}, failure
	}))
	s.handle("DELETE "+all, http.StatusNoContent, c.withTags(func(_ *http.Request, o object) (object, *apiError) {
		setTags(o, []any{})
		return nil, nil
	}))
	s.handle("GET "+one, http.StatusNoContent, c.withTags(func(r *http.Request, o object) (object, *apiError) {
		return nil, findTag(r, o)
	}))
	s.handle("PUT "+one, http.StatusCreated, c.withTags(func(r *http.Request, o object) (object, *apiError) {
		tag := r.PathValue("tag")
		if failure := checkTag(tag); failure != nil {
			return nil, failure
		}
		if !hasTag(o, tag) {
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

// withTags finds the object in a path.
func (c *collection) withTags(do func(*http.Request, object) (object, *apiError)) func(*http.Request) (object, *apiError) {
	return func(r *http.Request) (object, *apiError) {
		o, ok := c.objects[r.PathValue("id")]
		if !ok {
			return nil, notFound("TagResourceNotFound", "Resource %s %s could not be found.", c.plural, r.PathValue("id"))
		}
		return do(r, o)
	}
}

// setTags gives an object other tags. It is a change only where they differ.
func setTags(o object, tags []any) {
	before := o["tags"].([]any)
	o["tags"] = tags
	if len(before) != len(tags) || slices.ContainsFunc(tags, func(tag any) bool { return !slices.Contains(before, tag) }) {
		touch(o)
	}
}

func findTag(r *http.Request, o object) *apiError {
	if tag := r.PathValue("tag"); !hasTag(o, tag) {
		return notFound("TagNotFound", "Tag %s could not be found.", tag)
	}
	return nil
}

func readTags(r *http.Request) ([]any, *apiError) {
	body, failure := readObject(r)
	if failure != nil {
		return nil, failure
	}
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
