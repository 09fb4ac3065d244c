package deployments

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
)

// TestProblemIsRepeated: an event expires after an hour, so the problem of a
// Deployment is reported again while it lasts, but not at each sync.
func TestProblemIsRepeated(t *testing.T) {
	recorder, clock := record.NewFakeRecorder(10), clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	d := &Deployments{events: recorder, clock: clock, reported: map[cache.ObjectName]report{}}
	deployment := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "uid-1"}}
	again := deployment.DeepCopy()
	again.UID = "uid-2"
	for _, test := range []struct {
		name       string
		after      time.Duration
		deployment *metav1.PartialObjectMetadata
		problem    string
		want       int
	}{
		{"new", 0, deployment, "bad", 1},
		{"the next sync", time.Minute, deployment, "bad", 0},
		{"another problem", time.Minute, deployment, "worse", 1},
		{"half an hour later", 30 * time.Minute, deployment, "worse", 1},
		{"another Deployment of the name", time.Minute, again, "worse", 1},
	} {
		clock.SetTime(clock.Now().Add(test.after))
		_ = d.rejected(test.deployment, test.problem, true)
		if got := len(recorder.Events); got != test.want {
			t.Errorf("%s: %d events, want %d", test.name, got, test.want)
		}
		for len(recorder.Events) > 0 {
			<-recorder.Events
		}
	}
}
