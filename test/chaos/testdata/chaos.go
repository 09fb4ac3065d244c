package main

import (
	"os"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/utils/clock"
)

// The tests in test/chaos add this file to the program. It divides the limits that no flag
// changes by the number in CHAOS_SCALE. SIGUSR1 sets the wall clock of the process an hour
// ahead, and SIGUSR2 back.
func init() {
	scale, err := strconv.Atoi(os.Getenv("CHAOS_SCALE"))
	if err != nil || scale < 1 {
		panic("CHAOS_SCALE is no positive number")
	}
	reconciling := &defaults.reconcile
	retry := &reconciling.Retry
	for _, limit := range []*time.Duration{
		&reconciling.MaxInFlight, &reconciling.MaxLateness, &reconciling.MaxClockSkew, &defaults.drift.StartTimeout,
		&retry.InUse, &retry.Rejected, &retry.OverwrittenStatus, &retry.MaxBackoff,
	} {
		*limit /= time.Duration(scale)
	}
	wall, signals := &settableClock{}, make(chan os.Signal, 1)
	wallClock = wall
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGUSR2)
	go func() {
		for received := range signals {
			wall.set(received == syscall.SIGUSR1)
		}
	}()
}

// settableClock is a wall clock.
type settableClock struct {
	clock.RealClock
	ahead atomic.Int64
}

func (c *settableClock) set(ahead bool) {
	if ahead {
		c.ahead.Add(int64(time.Hour))
	} else {
		c.ahead.Add(-int64(time.Hour))
	}
}

// Now returns a time without a monotonic reading.
func (c *settableClock) Now() time.Time {
	return c.RealClock.Now().Round(0).Add(time.Duration(c.ahead.Load()))
}
