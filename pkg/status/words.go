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

// stepOf returns the step that led to an outcome, or nil.
func stepOf(outcome error) plan.Step {
	if failed := (*StepError)(nil); errors.As(outcome, &failed) {
		return failed.Step
	}
	return nil
}

// Fact returns what a step did, in the past tense, for the log.
func Fact(step plan.Step) string {
	switch step := step.(type) {
	case plan.AddFinalizer:
		return "Added finalizer"
	case plan.RemoveFinalizer:
		return "Removed finalizer"
	case plan.CreateNetwork:
		return "Created network"
	case plan.UpdateNetwork:
		return "Changed network"
	case plan.RetainNetwork:
		return "Retained network"
	case plan.DeleteNetwork:
		if step.DuplicateOf != "" {
			return "Deleted duplicate network"
		}
		return "Deleted network"
	case plan.AddTag:
		return "Added tag"
	case plan.RemoveTag:
		return "Removed tag"
	case plan.CreateSubnet:
		return "Created subnet"
	case plan.UpdateSubnet:
		return "Changed subnet"
	case plan.DeleteSubnet:
		return "Deleted subnet"
	case plan.AttachRouter:
		return "Attached subnet to router"
	case plan.DetachRouter:
		return "Detached subnet from router"
	}
	return "Applied step"
}

// intent describes what a step is for, after "cannot" or "to".
func intent(step plan.Step) string {
	switch step := step.(type) {
	case plan.FindNetwork:
		return "look up the Neutron network"
	case plan.FindSubnets:
		return "look up the subnets of the Neutron network"
	case plan.FindSubnetPool:
		return "look up the subnet pool"
	case plan.FindExtensions:
		return "look up the extensions of Neutron"
	case plan.FindCloud:
		return "find out to which cloud Neutron belongs"
	case plan.RemoveFinalizer:
		return "finish the deletion"
	case plan.CreateNetwork:
		return "create the Neutron network"
	case plan.UpdateNetwork:
		return changeIntent(step.Changes)
	case plan.RetainNetwork:
		return "mark the Neutron network " + step.ID + " as retained"
	case plan.DeleteNetwork:
		if step.DuplicateOf != "" {
			return fmt.Sprintf("delete the Neutron network %s, a duplicate of %s,", step.ID, step.DuplicateOf)
		}
		return "delete the Neutron network " + step.ID
	case plan.AddTag:
		return fmt.Sprintf("add the tag %q", step.Tag)
	case plan.RemoveTag:
		return fmt.Sprintf("remove the tag %q", step.Tag)
	case plan.CreateSubnet:
		text := strings.TrimPrefix(step.String(), "create subnet: ")
		if step.Subnet.FromPool != nil {
			return "create a subnet with " + text
		}
		return "create the subnet " + text
	case plan.UpdateSubnet:
		return changeIntent(step.Changes)
	case plan.DeleteSubnet:
		if step.For != "" {
			return fmt.Sprintf("change %s to %s", step.From, step.For)
		}
		return "delete the subnet " + step.From.String()
	}
	return routerIntent(step)
}

// routerIntent is intent for a step that concerns a router.
func routerIntent(step plan.Step) string {
	switch step := step.(type) {
	case plan.FindRouter:
		return "look up the router"
	case plan.FindRouterInterfaces:
		return "look up the routers of the Neutron network"
	case plan.FindPorts:
		return "look up the ports of the Neutron network"
	case plan.RecordRouter:
		return "record the router in the status"
	case plan.AttachRouter:
		return fmt.Sprintf("attach the subnet to router %s with the address %s", step.Interface.RouterID, step.Interface.Address)
	case plan.DetachRouter:
		return "detach the subnet from router " + step.Interface.RouterID
	}
	return step.String()
}

func changeIntent(changes []plan.Change) string {
	words := make([]string, len(changes))
	for i, change := range changes {
		words[i] = fmt.Sprintf("%s from %s to %s", change.What, change.From, change.To)
	}
	return "change " + strings.Join(words, " and ")
}

// cannot begins a message about a failure. Without a step, it names the request.
func cannot(step plan.Step, failure *neutron.Error) string {
	if step == nil {
		return "Cannot " + failure.Op
	}
	return "Cannot " + intent(step)
}

// inUseMessage describes what ports prevent, and the cure.
func inUseMessage(step plan.Step, failure *neutron.Error) string {
	users := "ports use it: " + sentence(failure.Message)
	switch len(failure.Ports) {
	case 0:
	case 1:
		users = "port " + failure.Ports[0] + " uses it."
	default:
		users = "ports use it: " + strings.Join(failure.Ports, ", ") + "."
	}
	cure := " Delete the ports, or restore the previous spec."
	switch step := step.(type) {
	case plan.AttachRouter:
		cure = " Delete the port, or set spec.gateway to another address."
	case plan.DetachRouter:
		cure = " Remove the routes or floating IP addresses that require the router, or restore the previous spec."
	case plan.DeleteNetwork:
		cure = " Nothing was deleted. Delete the ports, or set spec.deletionPolicy to Retain."
		if step.DuplicateOf != "" {
			cure = " Delete the ports, or move them to the other network."
		}
	case plan.DeleteSubnet:
		if step.For == "" {
			cure = " Nothing was deleted. Delete the ports, or set spec.deletionPolicy to Retain."
		}
	}
	return cannot(step, failure) + " while " + users + cure + " The controller retries every 20 to 30 seconds."
}

// refusedMessage describes what Neutron rejected, and what may help.
func refusedMessage(step plan.Step, failure *neutron.Error) string {
	cure := ""
	switch {
	case failure.Type == neutron.OverQuota:
		cure = " Free quota of the OpenStack project, or raise the quota."
	case failure.Status == http.StatusForbidden:
		cure = " The OpenStack policy does not permit this request with the controller's credentials: an administrator must change the policy or the credentials."
	case failure.Status == http.StatusUnauthorized:
		cure = " The access rules of the application credential do not permit this request:" +
			" an administrator must create another application credential, and write it to clouds.yaml or its Secret."
	}
	return cannot(step, failure) + ": Neutron rejected the request" + answer(failure) + cure +
		" The controller retries within 8 minutes, and at once when the spec or the annotation " + samplecrdv1.AnnotationRetry + " changes."
}

// loginRejectedMessage describes what needs another login, and the cure.
func loginRejectedMessage(step plan.Step, failure *neutron.Error) string {
	return cannot(step, failure) + ": Keystone at " + failure.Keystone + " rejected the login" + answer(failure) +
		" Check auth_url and the credentials in clouds.yaml, or in the Secret that contains it." +
		" The controller retries at least every two minutes, and needs no restart."
}

// unavailableMessage describes what waits for Neutron, or for a request to it.
func unavailableMessage(step plan.Step, failure *neutron.Error) string {
	text := cannot(step, failure)
	if failure.Class != neutron.ErrUnavailable { //nolint:errorlint // an error that only counts as unavailable
		return text + " yet: " + sentence(failure.Message)
	}
	server := "Neutron"
	if failure.Keystone != "" {
		server = "Keystone at " + failure.Keystone
	}
	text += ": " + server + " is unavailable" + answer(failure)
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

// sentence ends a text with a full stop.
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
