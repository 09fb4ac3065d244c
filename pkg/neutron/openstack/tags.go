package openstack

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// AddNetworkTag implements neutron.Tagger.
func (c *client) AddNetworkTag(ctx context.Context, id, tag string) error {
	const op = "add tag"
	address, err := c.tagURL(op, id, tag)
	if err != nil {
		return err
	}
	_, err = c.service.Put(ctx, address, nil, nil, &gophercloud.RequestOpts{OkCodes: []int{http.StatusCreated}}) //nolint:bodyclose // gophercloud closes the body
	return c.failed(ctx, op, err)
}

// RemoveNetworkTag implements neutron.Tagger.
func (c *client) RemoveNetworkTag(ctx context.Context, id, tag string) error {
	const op = "remove tag"
	address, err := c.tagURL(op, id, tag)
	if err != nil {
		return err
	}
	_, err = c.service.Delete(ctx, address, nil) //nolint:bodyclose // gophercloud closes the body
	err = c.failed(ctx, op, err)
	if failure := (*neutron.Error)(nil); errors.As(err, &failure) && failure.Type == "TagNotFound" {
		return nil
	}
	return err
}

// tagURL returns the URL of a tag of a network. Neutron misreads some characters
// in a path, and treats some endings as a format.
func (c *client) tagURL(op, id, tag string) (string, error) {
	if err := checkID(op, id); err != nil {
		return "", err
	}
	isFormat := strings.HasSuffix(tag, ".json") || strings.HasSuffix(tag, ".xml")
	if tag == "" || isFormat || strings.Trim(tag, ".") == "" || strings.ContainsFunc(tag, func(r rune) bool { return r < ' ' || r > '~' || r == '/' }) {
		return "", &neutron.Error{Op: op, Class: neutron.ErrRefused, Message: "the tag must consist of printable ASCII characters other than a slash, and must not end with .json or .xml"}
	}
	return c.service.ServiceURL("networks", id, "tags", url.PathEscape(tag)), nil
}
