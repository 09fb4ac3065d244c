package embedded

import (
	"cmp"
	"net/http"
	"slices"
	"unicode/utf8"
)

// tagFilters are the filters by tags. Each value is a list of tags.
var tagFilters = map[string]func(o object, tags []string) bool{
	"tags":         hasAll,
	"tags-any":     hasAny,
	"not-tags":     func(o object, tags []string) bool { return !hasAll(o, tags) },
	"not-tags-any": func(o object, tags []string) bool { return !hasAny(o, tags) },
}

func hasAll(o object, tags []string) bool {
	return !slices.ContainsFunc(tags, func(tag string) bool { return !hasTag(o, tag) })
}

func hasAny(o object, tags []string) bool {
	return slices.ContainsFunc(tags, func(tag string) bool { return hasTag(o, tag) })
}

func hasTag(o object, tag string) bool { return slices.Contains(o["tags"].([]any), any(tag)) }

// handleTags adds the paths of the tags of a collection's objects.
func (s *Server) handleTags(c *collection) {
	all, one := " /v2.0/"+c.plural+"/{id}/tags", " /v2.0/"+c.plural+"/{id}/tags/{tag}"
	s.handle(http.MethodGet+all, http.StatusOK, c.withTags(func(_ *http.Request, o object) (object, *apiError) {
		return object{"tags": o["tags"]}, nil
	}))
	s.handle(http.MethodPut+all, http.StatusOK, c.withTags(replaceTags))
	s.handle(http.MethodDelete+all, http.StatusNoContent, c.withTags(func(_ *http.Request, o object) (object, *apiError) {
		setTags(o, nil)
		return nil, nil
	}))
	s.handle(http.MethodPut+one, http.StatusCreated, c.withTags(func(r *http.Request, o object) (object, *apiError) {
		tag := r.PathValue("tag")
		if failure := checkTag(tag); failure != nil {
			return nil, failure
		}
		if !hasTag(o, tag) {
			setTags(o, append(slices.Clone(o["tags"].([]any)), tag))
		}
		return nil, nil
	}))
	s.handle(http.MethodDelete+one, http.StatusNoContent, c.withTags(func(r *http.Request, o object) (object, *apiError) {
		tag := r.PathValue("tag")
		if !hasTag(o, tag) {
			return nil, notFound("TagNotFound", "Tag %s could not be found.", tag)
		}
		setTags(o, slices.DeleteFunc(slices.Clone(o["tags"].([]any)), func(other any) bool { return other == tag }))
		return nil, nil
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

func replaceTags(r *http.Request, o object) (object, *apiError) {
	body, failure := readObject(r)
	if failure != nil {
		return nil, failure
	}
	tags, ok := body["tags"].([]any)
	if !ok {
		return nil, invalidInput("Invalid tags body.")
	}
	for _, tag := range tags {
		if failure := checkTag(tag); failure != nil {
			return nil, failure
		}
	}
	if sorted := sortTags(tags); len(slices.Compact(sorted)) < len(tags) {
		return nil, invalidInput("Duplicate items in the list: '%s'.", text(tags))
	}
	setTags(o, tags)
	return body, nil
}

// setTags sets the tags of an object, in order. If they are the same, the object
// keeps its revision.
func setTags(o object, tags []any) {
	tags = sortTags(tags)
	if !slices.Equal(o["tags"].([]any), tags) {
		o["tags"] = append([]any{}, tags...) // [] in JSON, not null
		touch(o)
	}
}

func sortTags(tags []any) []any {
	return slices.SortedFunc(slices.Values(tags), func(a, b any) int { return cmp.Compare(a.(string), b.(string)) })
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
