package reconcile

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/metrics"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
	"github.com/samplecrd/network-controller/pkg/status"
	"github.com/samplecrd/network-controller/pkg/store"
)

// logStep logs a step that was applied. A step that changes nothing in Neutron is
// logged only with -v=4.
func logStep(ctx context.Context, network *samplecrdv1.Network, step plan.Step) {
	logger := klog.FromContext(ctx)
	if !plan.ChangesNeutron(step) {
		logger = logger.V(4)
	}
	drift := network != nil && status.IsDrift(network, step)
	if drift {
		metrics.DriftRepaired.Inc()
	}
	if !logger.Enabled() {
		return
	}
	values := []any{"step", status.Printable(step.String())}
	if drift {
		values = append(values, "reason", status.Drifted)
	}
	logger.Info(status.Fact(step), values...)
}

// announce records the events for the steps that a sync applied.
func (r *Reconciler) announce(key cache.ObjectName, network *samplecrdv1.Network, applied []plan.Step, record plan.Record) {
	if network == nil { // the events of an orphan are found by its name
		network = &samplecrdv1.Network{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	}
	for _, event := range status.EventsOf(network, applied, record) {
		r.emit(network, event)
	}
}

// LogFailure logs how a sync ended and what follows. What passes by itself, such as
// a concurrent change, is no error. An outcome that is the same as the one before is
// logged only with -v=2: a Network that waits for its user would fill the log.
func (r *Reconciler) LogFailure(ctx context.Context, key cache.ObjectName, err error, next string, values ...any) {
	logger, text := klog.FromContext(ctx), status.Printable(err.Error())
	retry, _ := r.Retry(err)
	switch {
	case isHarmless(err):
		logger.Info("Sync ended early; "+next, append(values, "reason", text)...)
	case r.isRepeated(key, text) && retry != RetrySoon:
		logger.V(2).Info("Sync failed again; "+next, append(values, "err", text)...)
	default:
		logger.Error(errors.New(text), "Sync failed; "+next, values...)
	}
}

// isHarmless reports whether an error is no failure: an object changed concurrently,
// or a create request of a deleted object may be pending.
func isHarmless(err error) bool {
	var failure *neutron.Error
	return errors.Is(err, store.ErrOutdated) || errors.Is(err, errDeleted) || apierrors.IsConflict(err) ||
		errors.Is(err, neutron.ErrConflict) || errors.As(err, &failure) && errors.Is(failure.Class, errWaiting{})
}

// isRepeated reports whether the previous sync of a key ended with the same failure.
func (r *Reconciler) isRepeated(key cache.ObjectName, failure string) (repeated bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	memory, ok := r.memories[key]
	if !ok { // no object
		return false
	}
	repeated = memory.failure == failure
	memory.failure = failure
	r.memories[key] = memory
	return repeated
}
