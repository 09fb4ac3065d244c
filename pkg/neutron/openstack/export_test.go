package openstack

import "time"

// WithClock sets the clock of a client.
func WithClock(now func() time.Time) Option { return func(o *options) { o.now = now } }
