package openstack

import (
	"time"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// WithClock sets the clock of a client.
func WithClock(now func() time.Time) Option { return func(o *options) { o.now = now } }

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
