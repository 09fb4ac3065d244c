package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/metrics"
	"github.com/samplecrd/network-controller/pkg/observe"
	"github.com/samplecrd/network-controller/pkg/plan"
	"github.com/samplecrd/network-controller/pkg/status"
)

// Report writes the status and events that follow from the outcome of a sync, if they are
// new. It returns the error to retry, or nil if the Network needs no sync until something
// changes.
func (p *Pass) Report(ctx context.Context) error {
	if errors.Is(p.outcome, errStopping) || errors.Is(p.outcome, context.Canceled) {
		return nil // the next start finds the key again
	}
	observe.Reach(ctx, observe.Report, p.desired.SuccessWord, p.outcome)
	if p.network == nil {
		// By the next try, another network may carry the owner marker: the next list decides
		// again whether it is an orphan.
		p.note(p.key, func(a *account) { a.isOrphan = false })
		if p.outcome == nil {
			p.forget(p.key)
		}
		return p.outcome
	}
	inSync := isComplete(p.outcome)
	err := p.reportStatus(ctx)
	if err == nil {
		p.remember(func(memory *memory) {
			memory.reported, memory.inSync = p.network.Generation, inSync
			if inSync {
				memory.failure = ""
			}
		})
	} // else the next sync finds the same outcome again
	if !inSync {
		retry, _ := p.Retry(p.outcome)
		if err == nil || errors.As(err, new(status.WaitError)) && retry != RetryNever {
			err = p.outcome
		}
	}
	p.emitForbidden(err)
	return err
}

// reportStatus updates the status if the outcome of a sync changes it, and records
// an event if there is a new problem.
func (p *Pass) reportStatus(ctx context.Context) error {
	before := p.network.Status
	found := status.Found{Desired: p.desired, Actual: p.actual, Outcome: p.outcome}
	after, relevant := status.For(p.network, found, p.now())
	if !relevant || equality.Semantic.DeepEqual(after, before) {
		if relevant {
			p.remember(func(memory *memory) { memory.status, memory.correction.pending = status.Hash(after), false })
		}
		p.named(after)
		return nil
	}
	if err := p.correct(ctx); err != nil {
		return err
	}
	if err := p.writeStatus(ctx, after); errors.Is(err, errDeleted) {
		return nil
	} else if err != nil {
		return err
	}
	p.named(after)
	if before.MatchedGeneration == 0 && !status.IsReady(before) && status.IsReady(after) { // for the first time
		metrics.ObserveReady(p.clock.Since(p.network.CreationTimestamp.Time))
	}
	if reason, message := status.NewProblem(before, after); reason != "" {
		p.emit(p.network, status.Event{Type: corev1.EventTypeWarning, Reason: reason, Note: message})
	}
	return nil
}

// correct is called before a status is written over another one. It returns an error if
// another client has overwritten what this replica wrote, and it is too early to correct
// that: the other client may be a controller that does the same. A sync that changed
// something, or whose spec is new, does not wait.
func (p *Pass) correct(ctx context.Context) error {
	was := p.memoryOf(p.network)
	if was.status == 0 || was.status == status.Hash(p.network.Status) ||
		was.reported != p.network.Generation || slices.ContainsFunc(p.applied, plan.ChangesNeutron) {
		return nil
	}
	next := p.options.Retry.correctionAfter(was.correction, p.clock.Now())
	p.remember(func(memory *memory) { memory.correction = next })
	if left := p.until(next.due); left > 0 {
		return status.WaitError{Reason: "another client has written the status, which is corrected later", Left: left}
	}
	p.reportOverwritten(ctx)
	return nil
}

// reportOverwritten reports who has written the status of a Network. The informer drops the
// managed fields, which name the writer.
func (p *Pass) reportOverwritten(ctx context.Context) {
	live, err := p.client.SamplecrdV1().Networks(p.key.Namespace).Get(ctx, p.key.Name, metav1.GetOptions{})
	if err != nil || live.UID != p.network.UID {
		return
	}
	event := status.Overwritten(status.Writer(live.ManagedFields, p.options.FieldManager), p.options.FieldManager)
	klog.FromContext(ctx).Error(errors.New(event.Note), "Another client has written the status")
	p.emit(p.network, event)
}

// emitForbidden records an event if the API server denied a request. The status
// cannot report that: it may be what the controller is not allowed to write.
func (p *Pass) emitForbidden(err error) {
	if !apierrors.IsForbidden(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return
	}
	p.emit(p.network, status.Event{Type: corev1.EventTypeWarning, Reason: "Forbidden", Note: fmt.Sprintf(
		"The API server rejected a request of the controller: %v. Check the controller's RBAC roles and the admission "+
			"policies.", err)})
}

// logStep logs a step that was applied. A step that changes nothing in Neutron is
// logged only with -v=4.
func (p *Pass) logStep(logger klog.Logger, step plan.Step) {
	if !plan.ChangesNeutron(step) {
		logger = logger.V(4)
	}
	drift := p.network != nil && status.IsDrift(p.network, step)
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
	logger.Info(plan.Fact(step), values...)
}

// announce records the events for the steps that a sync applied.
func (p *Pass) announce() {
	network := p.network
	if network == nil { // the events of an orphan are found by its name
		network = &samplecrdv1.Network{ObjectMeta: metav1.ObjectMeta{Namespace: p.key.Namespace, Name: p.key.Name}}
	}
	for _, event := range status.EventsOf(network, p.applied, p.actual.Ours(p.desired).NetworkID) {
		p.emit(network, event)
	}
}

// emit records an event.
func (r *Reconciler) emit(regarding *samplecrdv1.Network, event status.Event) {
	r.events.Event(regarding, event.Type, event.Reason, status.Clip(event.Note))
}
