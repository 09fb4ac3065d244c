package openstack

import "time"

// WithClock has a client take the time from there.
func WithClock(now func() time.Time) Option { return func(o *options) { o.now = now } }
