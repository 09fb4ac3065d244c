package reconcile

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/client-go/tools/cache"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/plan"
)

// Preview returns the steps that syncs of a key would apply, and the outcome: nil, or
// [plan.Blocked], or the error of a step that reads. It applies only the steps that read,
// and predicts the others.
//
// One sync may not be enough: when the status names a network, the next sync deletes
// its duplicates.
func (r *Reconciler) Preview(
	ctx context.Context, key cache.ObjectName, network *samplecrdv1.Network, desired plan.Desired,
) (steps []plan.Step, outcome error) {
	p := &Pass{Reconciler: r, key: key, network: network, desired: desired}
	p.desired.Request = previewedRequest
	p.actual = r.observe(key, network, p.desired)
	if network == nil { // so that the plan deletes what is left
		p.actual.Finalizer, p.desired.Gone, p.desired.Claims.Orphans = true, true, true
	}
	for range maxSyncs {
		outcome = p.preview(ctx)
		record := p.actual.Ours(p.desired)
		hasFailed := outcome != nil && !errors.As(outcome, new(plan.Blocked))
		if hasFailed || network == nil || reflect.DeepEqual(record, p.actual.Record) {
			break
		}
		p.actual.Record = record // as the status that the sync writes
	}
	return p.applied, outcome
}

// previewedRequest stands for the request that an owner marker will name.
const previewedRequest = "…"

// maxSyncs bounds how many syncs are previewed.
const maxSyncs = 5

// preview is applySteps without the steps that write.
func (p *Pass) preview(ctx context.Context) (outcome error) {
	for range maxSteps {
		step := plan.Next(p.desired, p.actual)
		if ended, outcome := endOf(step, p.network); ended {
			return outcome
		}
		if plan.IsRead(step) {
			var err error
			if p.actual, err = p.apply(ctx, step); err != nil {
				return err
			}
			continue
		}
		if err := p.begin(step); err != nil { // what the plan creates counts against the limit
			return err
		}
		p.applied, p.actual = append(p.applied, plan.MaskUnknown(step)), plan.Predict(p.actual, step)
	}
	return plan.Blocked{
		Reason: plan.ReasonNotConverging, Message: fmt.Sprintf("The plan has more than %d steps.", maxSteps)}
}
