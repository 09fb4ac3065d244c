package reconcile

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/samplecrd/network-controller/pkg/client/clientset/versioned/fake"
	"github.com/samplecrd/network-controller/pkg/plan"
)

// TestProgressAfterStop: a step that takes long is shown in the status, but not after the
// replica has stopped leading: another one may write the status by then.
func TestProgressAfterStop(t *testing.T) {
	for name, test := range map[string]struct {
		stop    bool
		patches int
	}{
		"leading": {false, 1},
		"stopped": {true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := object("uid-a", "net-a")
				network.DeletionTimestamp = &metav1.Time{Time: time.Unix(1_000_000, 0)}
				r, _ := newReconciler(t, network)
				client := fake.NewClientset(network)
				r.client, r.clock = client, clock.RealClock{} // that of the bubble
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				r.Start(ctx)
				end := r.showProgress(t.Context(), network, plan.DeleteNetwork{ID: "net-a"}, r.clock.Now())
				if test.stop {
					stop()
				}
				time.Sleep(2 * progressDelay) //nolint:forbidigo // no time passes in a bubble
				end()
				patches := 0
				for _, action := range client.Actions() {
					if action.Matches("patch", "networks/status") {
						patches++
					}
				}
				if patches != test.patches {
					t.Errorf("the status was written %d times, want %d: %v", patches, test.patches, client.Actions())
				}
			})
		})
	}
}
