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

// maxMessage limits the text of a server in a message, in runes.
const maxMessage = 500

// maxRetryAfter limits the delay that a server can request: its clock may be
// wrong.
const maxRetryAfter = time.Hour

// request holds what the description of a failure needs.
type request struct {
	op      string
	host    string
	timeout time.Duration
	secrets []string // which a message must not hold
}

// clean makes a text from outside fit for a message: without secrets, in one line,
// without characters that control a terminal, and not too long.
func (r request) clean(text string) string {
	// A secret may appear only when the text is in one line.
	text = withoutSecrets(oneLine(withoutSecrets(text, r.secrets)), r.secrets)
	if runes := []rune(text); len(runes) > maxMessage {
		text = string(runes[:maxMessage-1]) + "…"
	}
	return text
}

// unusableAnswer is the problem of an answer that cannot be used.
type unusableAnswer string

func (e unusableAnswer) Error() string { return string(e) }

func unusable(format string, args ...any) error { return unusableAnswer(fmt.Sprintf(format, args...)) }

// classify turns an error of gophercloud into a *neutron.Error.
func classify(ctx context.Context, r request, err error) *neutron.Error {
	failure := &neutron.Error{Op: r.op, Class: neutron.ErrUnavailable}
	var answer gophercloud.ErrUnexpectedResponseCode
	var failed *neutron.Error
	switch {
	case errors.As(err, &answer):
		failure.Status = answer.Actual
		failure.Type, failure.Message = r.readBody(answer.Actual, answer.Body)
		failure.Class = classOf(r.op, failure.Status, failure.Type)
		switch {
		case failure.Status == http.StatusUnauthorized: // without a login: otherwise, it is an error of cloud
			failure.Message += " (Neutron requires a login; name a cloud of clouds.yaml with -cloud)"
		case failure.Type == "" && failure.Status >= 400 && failure.Status < 500:
			failure.Message += fmt.Sprintf(" (%s does not answer like a Neutron; check its address)", r.host)
		}
		failure.RetryAfter = retryAfter(answer.ResponseHeader.Get("Retry-After"), time.Now())
	case ctx.Err() != nil:
		failure.Cause = ctx.Err()
		failure.Message = ctx.Err().Error()
	case errors.As(err, &failed):
		*failure = *failed // a copy: a failed login is shared
	default:
		failure.Message = r.clean(withoutAnswer(r, err))
	}
	return failure
}

// classOf returns the class of a failure. typ is Neutron's name for it, and empty
// if the answer is not Neutron's own.
func classOf(op string, status int, typ string) error {
	switch {
	case typ == "" && status != http.StatusPreconditionFailed:
		return neutron.ErrUnavailable // the answer of a proxy, or of another server
	case status == http.StatusNotFound:
		return classOf404(op, typ)
	case status == http.StatusConflict:
		return classOf409(typ)
	case status == http.StatusPreconditionFailed:
		return neutron.ErrConflict
	case status == http.StatusInternalServerError && typ == "SubnetAllocationError":
		return neutron.ErrRefused // the subnet pool is exhausted
	case status == http.StatusUnauthorized, status == http.StatusProxyAuthRequired,
		status == http.StatusRequestTimeout, status == http.StatusTooEarly,
		status == http.StatusTooManyRequests, status == 498: // 498: Swift's rate limit
		return neutron.ErrUnavailable
	case status >= 400 && status < 500:
		return neutron.ErrRefused
	}
	return neutron.ErrUnavailable // 5xx; redirects; a 200 in place of a 201
}

// classOf404 accepts "not found" from Neutron only, and for one object only: the
// controller forgets an object that is not found. A list is never "not found",
// although Neutron answers 404 if the last network of a page was deleted.
func classOf404(op, typ string) error {
	switch {
	case op == listNetworks, op == listSubnets, op == listSubnetPools, op == listExtensions, op == listRouters, op == listPorts:
		return neutron.ErrUnavailable
	case typ == "HTTPNotFound": // no such path, or an object that the policy hides
		return neutron.ErrRefused
	}
	return neutron.ErrNotFound // NetworkNotFound, SubnetNotFound
}

// classOf409 distinguishes Neutron's many reasons for 409.
func classOf409(typ string) error {
	switch {
	case strings.HasSuffix(typ, "InUse"), // NetworkInUse, SubnetInUse, GatewayIpInUse
		strings.HasPrefix(typ, "RouterInterfaceInUse"), // …ByFloatingIP, …ByRoute
		typ == "IpAddressAlreadyAllocated":             // a port has the gateway address
		return neutron.ErrInUse
	case typ == "HTTPConflict", typ == "Conflict",
		typ == "DBDuplicateEntry", typ == "NeutronDbObjectDuplicateEntry",
		typ == "RetryRequest", typ == "StaleDataError":
		return neutron.ErrConflict
	}
	return neutron.ErrRefused // OverQuota, GatewayConflictWithAllocationPools, OverlappingAllocationPools, …
}

// readBody returns Neutron's name for a failure and its message. If another
// server answered, it returns the name of the status.
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

// withoutAnswer describes a failure without a usable answer.
func withoutAnswer(r request, err error) string {
	var (
		bad     unusableAnswer
		network *net.OpError
		lookup  *net.DNSError
		tooLong *http.MaxBytesError
		syntax  *json.SyntaxError
		typ     *json.UnmarshalTypeError
	)
	answer := "the answer of " + r.host + " is unusable: "
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
		return fmt.Sprintf("timed out: no answer from %s within %v", r.host, r.timeout)
	case errors.As(err, &network):
		stable := *network
		stable.Source = nil // its port is another one each time
		return stable.Error()
	case errors.Is(err, io.EOF):
		return r.host + " closed the connection without an answer"
	}
	return r.host + ": " + rootCause(err).Error()
}

// isTimeout reports whether the request as a whole timed out. (An attempt to
// connect that times out describes itself, with the address.)
func isTimeout(err error) bool {
	var network *net.OpError
	if errors.As(err, &network) && network.Op == "dial" {
		return false
	}
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

// lookupFailed omits the name server and the local port, which vary.
func lookupFailed(err *net.DNSError) string {
	switch {
	case err.IsNotFound:
		return "lookup " + err.Name + ": no such host"
	case err.IsTimeout:
		return "lookup " + err.Name + ": the name server timed out"
	}
	return "lookup " + err.Name + ": the name server failed"
}

func isCertificate(err error) bool {
	var verification *tls.CertificateVerificationError
	return errors.As(err, &verification)
}

// certificate omits the current time from the text about an expired certificate.
func certificate(err error) string {
	var invalid x509.CertificateInvalidError
	if errors.As(err, &invalid) && invalid.Reason == x509.Expired {
		return "its certificate has expired or is not yet valid"
	}
	return rootCause(err).Error()
}

// rootCause returns the innermost error: its wrappers hold the URL.
func rootCause(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// retryAfter parses the header of that name: seconds, or a date.
func retryAfter(header string, now time.Time) time.Duration {
	var wait time.Duration
	if seconds, err := strconv.ParseInt(header, 10, 32); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if date, err := http.ParseTime(header); err == nil {
		wait = date.Sub(now)
	}
	return min(max(wait, 0), maxRetryAfter)
}

// requestID matches the part that makes two messages of one failure differ.
var requestID = regexp.MustCompile(`(?i)\s*\(?(?:request[- ]?id:?\s*)?\breq-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b\)?`)

// oneLine removes what a condition must not hold: request IDs and control
// characters.
func oneLine(text string) string {
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
	return strings.Join(strings.Fields(text), " ")
}
