package openstack

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/samplecrd/network-controller/pkg/neutron"
)

// maxMessage bounds what a server can put into a message, in runes.
const maxMessage = 500

// maxRetryAfter bounds how long a server can have itself left alone: a clock
// that is wrong must not mean for years.
const maxRetryAfter = time.Hour

// request is what a failure is described with.
type request struct {
	op      string
	host    string
	timeout time.Duration
	secrets []string // that it was made with
	hint    string   // what to think of when it is answered with 401
}

// clean makes a text that somebody else wrote fit for a message.
func (r request) clean(text string) string {
	for _, secret := range r.secrets {
		text = strings.ReplaceAll(text, secret, "***")
	}
	return clean(text)
}

// unusableAnswer is an answer that came, and that is not one.
type unusableAnswer string

func (e unusableAnswer) Error() string { return string(e) }

func unusable(format string, args ...any) error { return unusableAnswer(fmt.Sprintf(format, args...)) }

// classify says what kind of failure an error of gophercloud is.
func classify(ctx context.Context, r request, err error) *neutron.Error {
	failure := &neutron.Error{Op: r.op, Class: neutron.ErrUnavailable}
	var answer gophercloud.ErrUnexpectedResponseCode
	var login *neutron.Error
	switch {
	case errors.As(err, &answer):
		failure.Status = answer.Actual
		failure.Type, failure.Message = r.readBody(answer.Actual, answer.Body)
		failure.Class = kind(r.op, failure.Status, failure.Type)
		switch {
		case failure.Status == http.StatusUnauthorized:
			failure.Message += fmt.Sprintf(" (%s)", r.hint)
		case failure.Type == "" && failure.Status >= 400 && failure.Status < 500:
			failure.Message += fmt.Sprintf(" (%s does not answer as Neutron would: is it the right address?)", r.host)
		}
		failure.RetryAfter = retryAfter(answer.ResponseHeader.Get("Retry-After"), time.Now())
	case ctx.Err() != nil:
		failure.Cause = ctx.Err()
		failure.Message = ctx.Err().Error()
	case errors.As(err, &login):
		*failure = *login // which is the failure of others, too
	default:
		failure.Message = r.clean(withoutAnswer(r, err))
	}
	return failure
}

// kind is the table of what Neutron's answers ask for. typ is Neutron's name of
// the failure, and empty where the answer is not Neutron's own.
func kind(op string, status int, typ string) error {
	switch {
	case typ == "" && status != http.StatusPreconditionFailed:
		return neutron.ErrUnavailable // a proxy's answer, or that of something that is no Neutron
	case status == http.StatusNotFound:
		return kindOfNotFound(op, typ)
	case status == http.StatusConflict:
		return kindOfConflict(typ)
	case status == http.StatusPreconditionFailed:
		return neutron.ErrConflict
	case status == http.StatusInternalServerError && typ == "SubnetAllocationError":
		return neutron.ErrRefused // a subnet pool is exhausted: an outage by its status only
	case status == http.StatusUnauthorized, status == http.StatusProxyAuthRequired,
		status == http.StatusRequestTimeout, status == http.StatusTooEarly,
		status == http.StatusTooManyRequests, status == 498: // 498: a rate limit of Swift's, which gophercloud knows
		return neutron.ErrUnavailable
	case status >= 400 && status < 500:
		return neutron.ErrRefused
	}
	return neutron.ErrUnavailable // 5xx; redirects; a 200 where there should be a 201
}

// kindOfNotFound believes a 404 only of Neutron, and of one object: an object
// that is taken for gone is forgotten. A list is never "not found" (but Neutron
// says so when the network that a page ended with is deleted meanwhile).
func kindOfNotFound(op, typ string) error {
	switch {
	case op == listNetworks, op == listSubnets, op == listSubnetPools, op == listExtensions:
		return neutron.ErrUnavailable
	case typ == "HTTPNotFound": // no such path, or an object that the policy hides
		return neutron.ErrRefused
	}
	return neutron.ErrNotFound // NetworkNotFound, SubnetNotFound
}

// kindOfConflict tells the 409s apart, which Neutron has for anything that does
// not fit together.
func kindOfConflict(typ string) error {
	switch {
	case strings.HasSuffix(typ, "InUse"): // NetworkInUse, SubnetInUse, GatewayIpInUse
		return neutron.ErrInUse
	case typ == "HTTPConflict", typ == "Conflict",
		typ == "DBDuplicateEntry", typ == "NeutronDbObjectDuplicateEntry",
		typ == "RetryRequest", typ == "StaleDataError":
		return neutron.ErrConflict
	}
	return neutron.ErrRefused // OverQuota, GatewayConflictWithAllocationPools, OverlappingAllocationPools, …
}

// readBody returns Neutron's name for a failure and its message, or the status
// in words where the body is not Neutron's.
func (r request) readBody(status int, body []byte) (typ, message string) {
	var answer struct {
		NeutronError struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		}
	}
	if err := json.Unmarshal(body, &answer); err == nil && answer.NeutronError.Type != "" {
		return r.clean(answer.NeutronError.Type), r.clean(answer.NeutronError.Message)
	}
	return "", http.StatusText(status)
}

// withoutAnswer describes a failure that left us without a usable answer.
func withoutAnswer(r request, err error) string {
	var (
		bad     unusableAnswer
		network *net.OpError
		lookup  *net.DNSError
		tooLong *http.MaxBytesError
		syntax  *json.SyntaxError
		typ     *json.UnmarshalTypeError
	)
	answer := "the answer of " + r.host + " is not usable: "
	switch {
	case errors.As(err, &bad):
		return answer + string(bad)
	case errors.As(err, &tooLong):
		return answer + fmt.Sprintf("it has more than %d bytes", tooLong.Limit)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return answer + "it ends too early"
	case errors.As(err, &syntax), errors.As(err, &typ):
		return answer + "it is not the JSON of an OpenStack service"
	case isCertificate(err):
		return r.host + ": " + certificate(err)
	case errors.As(err, &lookup):
		return lookupFailed(lookup)
	case isTimeout(err):
		return fmt.Sprintf("no answer from %s within %v", r.host, r.timeout)
	case errors.As(err, &network):
		stable := *network
		stable.Source = nil // its port is another one each time
		return stable.Error()
	case errors.Is(err, io.EOF):
		return r.host + " closed the connection without an answer"
	}
	return r.host + ": " + rootCause(err).Error()
}

// isTimeout reports whether it took too long in all. (A time-out of one attempt
// to connect names the address, and is described by it.)
func isTimeout(err error) bool {
	var network *net.OpError
	if errors.As(err, &network) && network.Op == "dial" {
		return false
	}
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// lookupFailed leaves out the name server, and the port that it was asked from.
func lookupFailed(err *net.DNSError) string {
	switch {
	case err.IsNotFound:
		return "lookup " + err.Name + ": no such host"
	case err.IsTimeout:
		return "lookup " + err.Name + ": the name server gives no answer in time"
	}
	return "lookup " + err.Name + ": the name server fails"
}

func isCertificate(err error) bool {
	var verification *tls.CertificateVerificationError
	return errors.As(err, &verification)
}

// certificate leaves out the time, which is in the text for an expired one.
func certificate(err error) string {
	var invalid x509.CertificateInvalidError
	if errors.As(err, &invalid) && invalid.Reason == x509.Expired {
		return "its certificate has expired or is not yet valid"
	}
	return rootCause(err).Error()
}

// rootCause returns the innermost error: those around it hold the URL.
func rootCause(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// retryAfter reads the header of that name: seconds, or a date.
func retryAfter(header string, now time.Time) time.Duration {
	var wait time.Duration
	if seconds, err := strconv.ParseInt(header, 10, 32); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if date, err := http.ParseTime(header); err == nil {
		wait = date.Sub(now)
	}
	return min(max(wait, 0), maxRetryAfter)
}

// requestID is what makes two messages about the same failure differ.
var requestID = regexp.MustCompile(`(?i)\s*\(?(?:request[- ]?id:?\s*)?\breq-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b\)?`)

// clean makes a text fit for a condition, whoever wrote it.
func clean(text string) string {
	text = requestID.ReplaceAllString(text, "")
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > maxMessage {
		text = string(runes[:maxMessage-1]) + "…"
	}
	return text
}
