package drift

import (
	"testing"
	"time"
)

// TestPauseAfter: listing takes a tenth of the time at most, and pauses differ.
func TestPauseAfter(t *testing.T) {
	const period = 30 * time.Second
	different := map[time.Duration]bool{}
	for range 100 {
		pause := pauseAfter(time.Second, period)
		if pause < period*3/4 || pause > period {
			t.Errorf("pauseAfter(1s, 30s) = %v", pause)
		}
		different[pause] = true
	}
	if len(different) < 50 {
		t.Errorf("100 pauses have %d lengths", len(different))
	}
	if pause := pauseAfter(9*time.Second, period); pause != 81*time.Second {
		t.Errorf("pauseAfter(9s, 30s) = %v, want 81s", pause)
	}
}
