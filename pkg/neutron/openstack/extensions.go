package openstack

import "context"

// Extensions implements neutron.Reader.
func (c *client) Extensions(ctx context.Context) ([]string, error) {
	var answer struct {
		Extensions []struct {
			Alias string `json:"alias"`
		} `json:"extensions"`
	}
	if _, err := c.service.Get(ctx, c.service.ServiceURL("extensions"), &answer, nil); err != nil { //nolint:bodyclose // gophercloud closes the body
		return nil, c.failed(ctx, listExtensions, err)
	}
	if answer.Extensions == nil {
		return nil, c.failed(ctx, listExtensions, unusable("it has no list of extensions"))
	}
	aliases := []string{}
	for _, extension := range answer.Extensions {
		aliases = append(aliases, extension.Alias)
	}
	return aliases, nil
}
