package status

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	samplecrdv1 "github.com/samplecrd/network-controller/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-controller/pkg/neutron"
	"github.com/samplecrd/network-controller/pkg/plan"
)

// StepError is a step that failed.
type StepError struct {
	Step plan.Step
	Err  error
}

// Error returns the text of the error.
func (e *StepError) Error() string { return e.Err.Error() }

// Unwrap returns the error.
func (e *StepError) Unwrap() error { return e.Err }

func stepOf(outcome error) plan.Step {
	if failed := (*StepError)(nil); errors.As(outcome, &failed) {
		return failed.Step
	}
	return nil
}

// cannot begins a message about a failure. Without a step, it names the request.
func cannot(step plan.Step, failure *neutron.Error) string {
	if step == nil {
		return "Cannot " + failure.Op
	}
	return "Cannot " + plan.Intent(step)
}

func inUseMessage(step plan.Step, failure *neutron.Error) string {
	users := "ports use it: " + sentence(failure.Message)
	switch len(failure.Ports) {
	case 0:
	case 1:
		users = "port " + failure.Ports[0] + " uses it."
	default:
		users = "ports use it: " + strings.Join(failure.Ports, ", ") + "."
	}
	return cannot(step, failure) + " while " + users + " " + plan.Cure(step) +
		" The controller retries every 20 to 30 seconds."
}

func refusedMessage(step plan.Step, failure *neutron.Error) string {
	cure := ""
	switch {
	case failure.Type == neutron.OverQuota:
		cure = " Free quota of the OpenStack project, or raise the quota."
	case failure.Status == http.StatusForbidden:
		cure = " The OpenStack policy does not permit this request with the controller's credentials: an administrator " +
			"must change the policy or the credentials."
	case failure.Status == http.StatusUnauthorized:
		cure = " The access rules of the application credential do not permit this request:" +
			" an administrator must create another application credential, and write it to clouds.yaml or its Secret."
	}
	return cannot(step, failure) + ": Neutron rejected the request" + answer(failure) + cure +
		" The controller retries within 8 minutes, and at once when the spec or the annotation " +
		samplecrdv1.AnnotationRetry + " changes."
}

func loginRejectedMessage(step plan.Step, failure *neutron.Error) string {
	return cannot(step, failure) + ": Keystone at " + failure.Keystone + " rejected the login" + answer(failure) +
		" Check auth_url and the credentials in clouds.yaml, or in the Secret that contains it." +
		" The controller retries at least every two minutes, and needs no restart."
}

func noCloudMessage(namespace string, step plan.Step, failure *neutron.Error) string {
	return cannot(step, failure) + ": the namespace " + namespace + " has no cloud: " + sentence(failure.Message)
}

// wayOut returns how a deletion ends without credentials: those of a project that is gone, or
// in a Secret that Kubernetes has deleted with its namespace, may never come back.
func wayOut(desired plan.Desired) string {
	if !desired.Absent {
		return ""
	}
	return " To end the deletion and leave what exists in Neutron, remove the finalizer " + samplecrdv1.Finalizer + "."
}

func unavailableMessage(step plan.Step, failure *neutron.Error) string {
	server := "Neutron"
	if failure.Keystone != "" {
		server = "Keystone at " + failure.Keystone
	}
	text := cannot(step, failure) + ": " + server + " is unavailable" + answer(failure)
	if failure.RetryAfter > 0 {
		return text
	}
	return text + " The controller retries until it succeeds, at least every two minutes."
}

// answer returns what Neutron answered, as the end of a sentence.
func answer(failure *neutron.Error) string {
	text := ""
	if failure.Status != 0 {
		text = " (" + strings.TrimSpace(fmt.Sprintf("%d %s", failure.Status, failure.Type)) + ")"
	}
	if failure.Message != "" {
		text += ": " + failure.Message
	}
	return sentence(text)
}

func sentence(text string) string {
	if strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}

func capitalized(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}
