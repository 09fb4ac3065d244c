package openstack

import "github.com/samplecrd/network-controller/pkg/neutron"

// WaitForFiles waits until a client that has a session has read the files, and has
// logged in if they have changed.
func WaitForFiles(c neutron.Client) {
	_, _, _ = c.(*client).target.(*cloud).attempts.Do("", func() (any, error) { return nil, nil })
}
