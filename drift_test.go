package main

import (
	"time"
)

// shortResync is a resync period for tests that wait for a resync.
const shortResync = 50 * time.Millisecond
