package openstack

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

func (c *client) AddNetworkTag(ctx context.Context, id, tag string) error {
	return c.writeTag(ctx, request{op: "add network tag", method: http.MethodPut}, id, tag)
}

func (c *client) RemoveNetworkTag(ctx context.Context, id, tag string) error {
	err := c.writeTag(ctx, request{op: "remove network tag", method: http.MethodDelete}, id, tag)
	if typeOf(err) == "TagNotFound" {
		return nil
	}
	return err
}

// writeTag sends a request for a tag of a network. Neutron misreads some characters in a
// path, and treats some endings as a format.
func (c *client) writeTag(ctx context.Context, r request, id, tag string) error {
	isUnusable := func(r rune) bool { return r < ' ' || r > '~' || r == '/' }
	isFormat := strings.HasSuffix(tag, ".json") || strings.HasSuffix(tag, ".xml")
	if isFormat || strings.Trim(tag, ".") == "" || strings.ContainsFunc(tag, isUnusable) {
		return &neutron.Error{Op: r.op, Class: neutron.ErrRefused, Message: "the tag must consist of printable ASCII " +
			"characters other than a slash, and must not end with .json or .xml"}
	}
	r.path = []string{"networks", id, "tags", url.PathEscape(tag)}
	return c.write(ctx, r, nil)
}
