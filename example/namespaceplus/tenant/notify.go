package tenant

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	myv1 "github.com/samplecrd/network-controller/example/namespaceplus/apis/mygroup/v1"
)

// SecretName is the name of the Secret whose field key signs notifications.
const SecretName = "namespaceplus-webhook"

// SecretNamespace is the namespace of that Secret.
const SecretNamespace = "namespaceplus-system"

// notifyTimeout limits a notification. Meanwhile, the receiver has a worker for itself.
const notifyTimeout = 5 * time.Second

// receivers are the clients of all receivers. A receiver can delay the controller by a
// timeout, and can send it nothing but a status code: the body is never read.
var receivers = &http.Client{
	Timeout:       notifyTimeout,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, MaxResponseHeaderBytes: 16 << 10,
	},
}

// NeedsNotification reports whether the receiver has not accepted a notification yet,
// although the namespace is ready.
func NeedsNotification(tenant *myv1.NamespacePlus) bool {
	return tenant.Spec.Notification != nil && tenant.Status.Notified != IdempotencyKey(tenant) &&
		apimeta.IsStatusConditionTrue(tenant.Status.Conditions, myv1.ConditionReady)
}

// IdempotencyKey identifies a notification. If the controller ends after the request and
// before it records the response, it sends the same key again.
func IdempotencyKey(tenant *myv1.NamespacePlus) string {
	hash := sha256.Sum256([]byte(tenant.Spec.Notification.URL))
	return string(tenant.UID) + "-" + hex.EncodeToString(hash[:4])
}

// Notify sends the notification. Its errors do not contain the path of the URL, which is
// a secret for many receivers, nor anything that a receiver has sent.
func Notify(ctx context.Context, tenant *myv1.NamespacePlus, secret *corev1.Secret) error {
	key := secret.Data["key"]
	if len(key) == 0 {
		return fmt.Errorf("the Secret %s/%s has no field key: add a random one", SecretNamespace, SecretName)
	}
	event := map[string]string{"event": "NamespaceReady", "namespace": tenant.Name, "uid": string(tenant.UID)}
	body, err := json.Marshal(event)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, tenant.Spec.Notification.URL, bytes.NewReader(body))
	if err != nil {
		return errors.New("spec.notification.url is not valid")
	}
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write(body) // it never fails
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", IdempotencyKey(tenant))
	request.Header.Set("X-Namespaceplus-Signature", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	response, err := receivers.Do(request)
	if err != nil {
		return fmt.Errorf("sending a request to %s: %s", request.URL.Host, why(err))
	}
	_ = response.Body.Close()
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("%s responded with status code %d instead of 2xx", request.URL.Host, response.StatusCode)
	}
	return nil
}

// why returns why a request failed, in words of this machine only: it contains nothing that
// a receiver has sent, and no port, which would make each failure a change of the status.
func why(err error) string {
	if failed, ok := errors.AsType[*net.OpError](err); ok {
		return clip(failed.Err.Error())
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "its certificate is not trusted"
	}
	return fmt.Sprintf("no valid response within %v", notifyTimeout)
}
