package openstack

import (
	"cmp"
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

// description holds what the description of a failure needs.
type description struct {
	op      string
	host    string
	timeout time.Duration
	secrets []string // which a message must not hold
}

// clean makes a text from outside fit for a message: without secrets, in one line,
// without characters that control a terminal, and not too long.
func (d description) clean(text string) string {
	// A secret may appear only when the text is in one line.
	text = withoutSecrets(oneLine(withoutSecrets(text, d.secrets)), d.secrets)
	if runes := []rune(text); len(runes) > maxMessage {
		text = string(runes[:maxMessage-1]) + "…"
	}
	return text
}

// unusableResponse is the problem of a response that cannot be used.
type unusableResponse string

func (e unusableResponse) Error() string { return string(e) }

func unusable(format string, args ...any) error {
	return unusableResponse(fmt.Sprintf(format, args...))
}

// classify returns the failure of a request to Neutron as a *neutron.Error.
func classify(ctx context.Context, d description, err error) *neutron.Error {
	var response gophercloud.ErrUnexpectedResponseCode
	var failed *neutron.Error
	switch {
	case errors.As(err, &response):
		failed = d.rejection(response, "NeutronError")
		failed.Class = classOf(d.op, failed.Status, failed.Type)
		switch {
		case failed.Status == http.StatusUnauthorized: // without a login: otherwise, it is an error of cloud
			failed.Message += " (Neutron requires a login; name a cloud of clouds.yaml with -cloud)"
		case failed.Type == "" && failed.Status >= 400 && failed.Status < 500:
			failed.Message += fmt.Sprintf(" (%s does not respond like a Neutron; check its address)", d.host)
		}
		return failed
	case ctx.Err() != nil:
		return &neutron.Error{Op: d.op, Class: neutron.ErrUnavailable, Message: ctx.Err().Error(), Cause: ctx.Err()}
	case errors.As(err, &failed):
		own := *failed // a failed login is shared
		return &own
	}
	return &neutron.Error{Op: d.op, Class: neutron.ErrUnavailable, Message: d.clean(d.withoutResponse(err))}
}

// rejection returns the failure that a response describes, without its class. Another
// server than the requested one does not use its key: then, the message is the name of
// the status, and the type is empty.
func (d description) rejection(response gophercloud.ErrUnexpectedResponseCode, key string) *neutron.Error {
	failed := &neutron.Error{Op: d.op, Status: response.Actual, Message: http.StatusText(response.Actual)}
	failed.RetryAfter = retryAfter(response.ResponseHeader.Get("Retry-After"), time.Now())
	var body map[string]json.RawMessage
	var described struct{ Type, Title, Message string } // Keystone has titles
	if json.Unmarshal(response.Body, &body) != nil || json.Unmarshal(body[key], &described) != nil {
		return failed
	}
	if typ := cmp.Or(described.Type, described.Title); typ != "" {
		failed.Type, failed.Message = d.clean(typ), d.clean(described.Message)
	}
	return failed
}

// classOf returns the class of a failure. typ is Neutron's name for it, and empty
// if the response is not Neutron's own.
func classOf(op string, status int, typ string) error {
	switch {
	case typ == "" && status != http.StatusPreconditionFailed:
		return neutron.ErrUnavailable // the response of a proxy, or of another server
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
// although Neutron responds with 404 if the last network of a page was deleted. Nor is an
// object of which Neutron could not delete a part that somebody else had just deleted.
func classOf404(op, typ string) error {
	object, deletes := strings.CutPrefix(op, "delete ")
	switch {
	case strings.HasPrefix(op, "list "):
		return neutron.ErrUnavailable
	case typ == "HTTPNotFound": // no such path, or an object that the policy hides
		return neutron.ErrRefused
	case deletes && !strings.EqualFold(typ, object+"NotFound"): // such as PortNotFound
		return neutron.ErrUnavailable
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

// withoutResponse describes a failure without a usable response.
func (d description) withoutResponse(err error) string {
	var (
		bad     unusableResponse
		network *net.OpError
		lookup  *net.DNSError
		cert    *tls.CertificateVerificationError
		tooLong *http.MaxBytesError
		syntax  *json.SyntaxError
		typ     *json.UnmarshalTypeError
	)
	response := "the response from " + d.host + " is unusable: "
	switch {
	case errors.As(err, &bad):
		return response + string(bad)
	case errors.As(err, &tooLong):
		return response + fmt.Sprintf("it has more than %d bytes", tooLong.Limit)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return response + "it ends too early"
	case errors.As(err, &syntax), errors.As(err, &typ):
		return response + "it is not the JSON of an OpenStack service"
	case errors.As(err, &cert):
		return d.host + ": " + certificate(err)
	case errors.As(err, &lookup):
		return lookupFailed(lookup)
	case isTimeout(err):
		return fmt.Sprintf("timed out: no response from %s within %v", d.host, d.timeout)
	case errors.As(err, &network):
		stable := *network
		stable.Source = nil // its port is another one each time
		return stable.Error()
	case errors.Is(err, io.EOF):
		return d.host + " closed the connection without a response"
	}
	return d.host + ": " + rootCause(err).Error()
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
var requestID = regexp.MustCompile(
	`(?i)\s*\(?(?:request[- ]?id:?\s*)?\breq-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b\)?`)

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
