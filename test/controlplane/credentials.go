package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// validity is how long certificates are valid.
const validity = 365 * 24 * time.Hour

// keyPair is a certificate with its key, both in PEM.
type keyPair struct {
	certificate, key []byte
}

// credentials are what the components and their clients know each other by.
type credentials struct {
	authority []byte             // the certificate that signed all others, in PEM
	clients   map[string]keyPair // by the names that kubeconfig files have for them
}

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// writeCredentials makes all credentials of a cluster, and writes those files
// into its folder that the components read.
func writeCredentials(dir string) (credentials, error) {
	files, clients, err := makeCredentials()
	if err != nil {
		return credentials{}, fmt.Errorf("making certificates: %w", err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return credentials{}, fmt.Errorf("writing certificates: %w", err)
		}
	}
	return credentials{authority: files["ca.crt"], clients: clients}, nil
}

// makeCredentials returns the files that the components read, and the clients'
// key pairs.
func makeCredentials() (files map[string][]byte, clients map[string]keyPair, err error) {
	ca, caPair, err := newAuthority()
	if err != nil {
		return nil, nil, err
	}
	server, err := ca.sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 96, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return nil, nil, err
	}
	_, serviceAccountKey, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	clients = map[string]keyPair{}
	for name, subject := range map[string]pkix.Name{
		"admin":       {CommonName: "admin", Organization: []string{"system:masters"}},
		"controllers": {CommonName: "system:kube-controller-manager"},
	} {
		clients[name], err = ca.sign(&x509.Certificate{Subject: subject, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		if err != nil {
			return nil, nil, err
		}
	}
	return map[string][]byte{
		"ca.crt":              caPair.certificate,
		"apiserver.crt":       server.certificate,
		"apiserver.key":       server.key,
		"service-account.key": serviceAccountKey,
	}, clients, nil
}

// newAuthority makes an authority with a key that is in no file.
func newAuthority() (*authority, keyPair, error) {
	ca := &authority{certificate: &x509.Certificate{
		Subject:               pkix.Name{CommonName: "local cluster"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}}
	pair, err := ca.sign(ca.certificate)
	return ca, pair, err
}

// sign makes a key and a certificate for it. The first certificate that an
// authority signs is its own.
func (a *authority) sign(template *x509.Certificate) (keyPair, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return keyPair{}, err
	}
	key, keyPEM, err := newKey()
	if err != nil {
		return keyPair{}, err
	}
	template.SerialNumber = serial.Add(serial, big.NewInt(1))
	template.NotBefore = time.Now().Add(-time.Hour) // the clock may be set back a little
	template.NotAfter = time.Now().Add(validity)
	template.KeyUsage |= x509.KeyUsageDigitalSignature
	if a.key == nil {
		a.key = key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return keyPair{}, err
	}
	return keyPair{certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key: keyPEM}, nil
}

// newKey makes a private key, also in PEM.
func newKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// writeKubeconfig writes a kubeconfig file for a client of the API server.
func (c credentials) writeKubeconfig(path, server, client string) error {
	const name = "local"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: c.authority}
	config.AuthInfos[client] = &clientcmdapi.AuthInfo{
		ClientCertificateData: c.clients[client].certificate,
		ClientKeyData:         c.clients[client].key,
	}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: client}
	config.CurrentContext = name
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("writing a kubeconfig file: %w", err)
	}
	return nil
}

// restConfig reads a kubeconfig file.
func restConfig(path string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig file %s: %w", path, err)
	}
	config.QPS = -1
	return config, nil
}
