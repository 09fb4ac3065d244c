package openstack

import (
	"net/url"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// WaitForFiles waits until a client that has a session has read the files, and has
// logged in if they have changed.
func WaitForFiles(c neutron.Client) {
	_, _, _ = c.(*client).target.(*cloud).attempts.Do("", func() (any, error) { return nil, nil })
}

// Targets returns where Credentials lead before a login.
func Targets(c *Credentials) (urls []*url.URL, region string) {
	if urls = []*url.URL{c.config.identity}; c.config.override != nil {
		urls = append(urls, c.config.override)
	}
	return urls, c.config.endpoint.Region
}
