package main

import (
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samplecrd/network-controller/pkg/debugpage"
)

func TestDescribe(t *testing.T) {
	begun := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	taken, ended := begun.Add(1500*time.Microsecond), begun.Add(90*time.Millisecond)
	j := journey{
		Causes: []debugpage.Cause{{Type: "updated", ResourceVersion: "412", Changed: "spec"}, {Type: "drift"}}, CauseCount: 2,
		Queued: begun, Taken: &taken, Worker: 3, Desired: "10.0.0.0/24", Actual: "nothing", Ended: &ended,
		Steps: []debugpage.JourneyStep{{Text: "create network", Requests: []debugpage.JourneyRequest{
			{Server: "Neutron", Operation: "create network", Code: 503, Milliseconds: 4.25},
		}}},
		Outcome: "Neutron is unavailable", Failed: true,
		Retry: &debugpage.Waiting{Failures: 2, From: ended, Until: ended.Add(time.Second)},
	}
	for language, want := range map[string]string{
		"en": `  events   updated (spec, resourceVersion 412); drift
  queue    waited 2ms, then worker 3 took the key
  desired  10.0.0.0/24
  actual   nothing
  step     create network
  request  Neutron: create network, 503, 4.2 ms
  outcome  Neutron is unavailable, after 90ms
  retry    in 1s; failures in a row: 2

`,
		"zh": `  事件  updated (spec, resourceVersion 412); drift
  队列  等了 2ms，由 worker 3 取走
  期望  10.0.0.0/24
  实际  nothing
  步骤  create network
  请求  Neutron: create network, 503, 4.2 ms
  结果  Neutron is unavailable，用时 90ms
  重试  1s 之后，已连续失败 2 次

`,
	} {
		if diff := cmp.Diff(want, (&tour{language: language}).describe(j)); diff != "" {
			t.Errorf("%s: -want +got\n%s", language, diff)
		}
	}
}

// Both languages have each text, with the same values in the same order.
func TestWords(t *testing.T) {
	all := []words{starting, ready, pressEnter, finished, healed, whatMoved, merged, waited, after, retryIn,
		labelEvents, labelQueue, labelDesired, labelActual, labelStep, labelRequest, labelOutcome, labelRetry}
	for _, s := range steps {
		all = append(all, s.title, s.lesson)
	}
	verbs := regexp.MustCompile(`%[a-z]`)
	for _, w := range all {
		english, chinese := verbs.FindAllString(w.english, -1), verbs.FindAllString(w.chinese, -1)
		if w.english == "" || w.chinese == "" || !slices.Equal(english, chinese) {
			t.Errorf("%q and %q have the values %v and %v", w.english, w.chinese, english, chinese)
		}
	}
}
