package reconcile

import (
	"context"
	"time"

	"k8s.io/klog/v2"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/plan"
	"github.com/samplecrd/network-controller/pkg/status"
)

// progressDelay is how long the requests of a sync take before users see in the status
// that the controller is working on an edit or a deletion. Most syncs end sooner, and
// save a write.
const progressDelay = time.Second

// showProgress writes the status while a step is applied, if the step takes long. The
// returned function is called after the step: it waits for a write in progress. A status
// that cannot be written does not prevent the step.
func (r *Reconciler) showProgress(ctx context.Context, network *samplecrdv1.Network, step plan.Step, syncBegan time.Time) (end func()) {
	if network == nil {
		return func() {}
	}
	network = r.withLatestStatus(network)
	if _, needed := status.InProgress(network, step, r.now()); !needed {
		return func() {}
	}
	written := make(chan struct{})
	timer := r.clock.AfterFunc(max(0, progressDelay-r.clock.Since(syncBegan)), func() {
		defer close(written)
		if r.isStopping() { // another replica may lead by now
			return
		}
		after, _ := status.InProgress(network, step, r.now())
		if _, err := r.applyStatus(ctx, network, after); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Showing the work in progress failed; continuing")
		}
	})
	return func() {
		if !timer.Stop() {
			<-written
		}
	}
}
