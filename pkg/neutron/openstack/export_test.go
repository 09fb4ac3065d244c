package openstack

import "github.com/samplecrd/network-controller/pkg/neutron"

// WaitForFiles waits until a client that has a session has read the files, and has
// logged in if they have changed.
func WaitForFiles(c neutron.Client) {
	cloud := c.(*client).target.(*cloud)
	cloud.mu.Lock()
	running := cloud.running
	cloud.mu.Unlock()
	if running != nil {
		<-running.done
	}
}
