package reconcile

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/client-go/tools/cache"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/plan"
	"github.com/samplecrd/network-controller/pkg/status"
)

// Preview returns the steps that syncs of a key would apply, and the outcome: nil, or a
// [status.BlockedError], or the error of a step that reads. It applies only the steps
// that read, and predicts the others.
//
// One sync may not be enough: when the status names a network, the next sync deletes
// its duplicates.
func (r *Reconciler) Preview(ctx context.Context, key cache.ObjectName, network *samplecrdv1.Network, desired plan.Desired) (steps []plan.Step, outcome error) {
	desired.Request = previewedRequest
	actual := r.Observe(key, network, desired)
	if network == nil {
		actual.Finalizer, desired.Gone, desired.Claims.Orphans = true, true, true // so that the plan deletes what is left
	}
	for range maxSyncs {
		var some []plan.Step
		if some, actual, outcome = r.previewSync(ctx, key, network, desired, actual); outcome != nil && !errors.As(outcome, new(status.BlockedError)) {
			return append(steps, some...), outcome
		}
		steps = append(steps, some...)
		record := actual.Ours(desired)
		if network == nil || reflect.DeepEqual(record, actual.Record) {
			return steps, outcome
		}
		actual.Record = record // as the status that the sync writes
	}
	return steps, outcome
}

// previewedRequest stands for the request that an owner marker will name.
const previewedRequest = "…"

// maxSyncs bounds how many syncs are previewed.
const maxSyncs = 5

// previewSync returns the steps of one sync, and the predicted state after it.
func (r *Reconciler) previewSync(ctx context.Context, key cache.ObjectName, network *samplecrdv1.Network, desired plan.Desired, actual plan.Actual) (steps []plan.Step, after plan.Actual, outcome error) {
	for range maxSteps {
		step := plan.Next(desired, actual)
		if ended, outcome := endOf(step, network); ended {
			return steps, actual, outcome
		}
		if plan.IsRead(step) {
			read, err := r.find(ctx, network, actual, step)
			if err != nil {
				return steps, actual, err
			}
			actual = read
			continue
		}
		if err := r.begin(key, desired, step); err != nil { // what the plan creates counts against the limit
			return steps, actual, err
		}
		predicted, ok := plan.Predict(actual, step)
		if !ok {
			return steps, actual, fmt.Errorf("the step %q has no prediction", step)
		}
		steps, actual = append(steps, plan.MaskUnknown(step)), predicted
	}
	return steps, actual, status.BlockedError{Blocked: plan.Blocked{Reason: plan.ReasonNotConverging, Message: fmt.Sprintf(
		"The plan has more than %d steps.", maxSteps)}}
}
