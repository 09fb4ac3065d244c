package embedded

import (
	"net/http"
	"slices"
	"unicode/utf8"
)

// handleTags adds the path of a tag of a collection's objects.
func (s *Server) handleTags(c *collection) {
	path := " /v2.0/" + c.plural + "/{id}/tags/{tag}"
	s.handle(http.MethodPut+path, http.StatusCreated, func(r *http.Request) (object, *apiError) {
		o, tag, failure := c.findTagged(r)
		if failure == nil && utf8.RuneCountInString(tag) > 255 {
			failure = invalidInput("'%s' exceeds maximum length of 255.", tag)
		}
		if failure != nil {
			return nil, failure
		}
		if tags := o["tags"].([]string); !slices.Contains(tags, tag) {
			o["tags"] = append(slices.Clone(tags), tag)
			touch(o)
		}
		return nil, nil
	})
	s.handle(http.MethodDelete+path, http.StatusNoContent, func(r *http.Request) (object, *apiError) {
		o, tag, failure := c.findTagged(r)
		if failure != nil {
			return nil, failure
		}
		tags := slices.Clone(o["tags"].([]string))
		i := slices.Index(tags, tag)
		if i < 0 {
			return nil, notFound("TagNotFound", "Tag %s could not be found.", tag)
		}
		o["tags"] = slices.Delete(tags, i, i+1)
		touch(o)
		return nil, nil
	})
}

// findTagged returns the object in a path, and the tag.
func (c *collection) findTagged(r *http.Request) (o object, tag string, failure *apiError) {
	o, ok := c.objects[r.PathValue("id")]
	if !ok {
		failure = notFound("TagResourceNotFound", "Resource %s %s could not be found.", c.plural, r.PathValue("id"))
	}
	return o, r.PathValue("tag"), failure
}
