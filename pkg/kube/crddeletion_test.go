package kube

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

const (
	guardedCRD     = "networks.samplecrd.k8s.io"
	allowsDeletion = "samplecrd.k8s.io/allow-deletion"
)

// response is what the API server returns for the CustomResourceDefinition.
type response struct {
	definition *metav1.PartialObjectMetadata
	err        error
}

// guardOf returns a guard whose requests get these responses, one after the other.
func guardOf(t *testing.T, responses ...response) *CRDGuard {
	t.Helper()
	client := fake.NewSimpleMetadataClient(fake.NewTestScheme())
	client.PrependReactor("get", definitions.Resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
		if name := action.(clienttesting.GetAction).GetName(); name != guardedCRD || len(responses) == 0 {
			t.Errorf("unexpected request for %s", name)
			return true, nil, errors.New("unexpected")
		}
		next := responses[0]
		responses = responses[1:]
		return true, next.definition, next.err
	})
	return NewCRDGuard(client, guardedCRD, allowsDeletion)
}

func TestCRDGuard(t *testing.T) {
	crd := func(deleted bool, annotations map[string]string) response {
		definition := &metav1.PartialObjectMetadata{}
		definition.Name, definition.Annotations = guardedCRD, annotations
		if deleted {
			definition.DeletionTimestamp = new(metav1.Now())
		}
		return response{definition: definition}
	}
	exists, notFound := crd(false, nil), response{err: apierrors.NewNotFound(definitions.GroupResource(), guardedCRD)}
	forbidden := response{err: apierrors.NewForbidden(definitions.GroupResource(), guardedCRD, errors.New("no rule"))}
	refused := response{err: errors.New("connection refused")}
	for name, test := range map[string]struct {
		responses []response
		want      bool
		wantErr   string
		wantLogs  int
	}{
		"exists":              {responses: []response{exists}},
		"being deleted":       {responses: []response{crd(true, nil)}, want: true},
		"deletion permitted":  {responses: []response{crd(true, map[string]string{allowsDeletion: "true"})}},
		"deletion forbidden":  {responses: []response{crd(true, map[string]string{allowsDeletion: "false"})}, want: true},
		"only permitted":      {responses: []response{crd(false, map[string]string{allowsDeletion: "true"})}},
		"deleted afterwards":  {responses: []response{exists, crd(true, nil)}, want: true},
		"does not exist":      {responses: []response{notFound}, want: true},
		"never had the right": {responses: []response{forbidden, forbidden, forbidden}, wantLogs: 1},
		"lost the right":      {responses: []response{exists, forbidden}, wantErr: "reading the CustomResourceDefinition"},
		"got the right":       {responses: []response{forbidden, crd(true, nil)}, want: true, wantLogs: 1},
		"no token":            {responses: []response{{err: apierrors.NewUnauthorized("expired")}}, wantErr: "expired"},
		"unavailable":         {responses: []response{refused}, wantErr: "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
			guard := guardOf(t, test.responses...)
			var got bool
			var err error
			for range test.responses {
				got, err = guard.BeingDeleted(klog.NewContext(t.Context(), logger))
			}
			if got != test.want {
				t.Errorf("BeingDeleted() = %v, want %v", got, test.want)
			}
			if (err == nil) != (test.wantErr == "") || err != nil && !strings.Contains(err.Error(), test.wantErr) {
				t.Errorf("the error is %v, want %q", err, test.wantErr)
			}
			if logs := strings.Count(logged(t, logger), "cannot be read"); logs != test.wantLogs {
				t.Errorf("it is logged %d times, want %d", logs, test.wantLogs)
			}
		})
	}
}

// logged returns what a logger of ktesting has logged.
func logged(t *testing.T, logger klog.Logger) string {
	t.Helper()
	return logger.GetSink().(ktesting.Underlier).GetBuffer().String()
}
