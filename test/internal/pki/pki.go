// Package pki makes the certificates and kubeconfig files of a cluster, as files
// in a folder.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// Authority signs certificates. Its key is in no file.
type Authority struct {
	dir         string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// New makes an authority, and writes its certificate into ca.crt in a folder.
func New(dir string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the authority: %w", err)
	}
	certificate, err := cert.NewSelfSignedCACert(cert.Config{
		CommonName: "tests",
		NotBefore:  time.Now().Add(-time.Hour), // a clock may be set back a little
	}, key)
	if err != nil {
		return nil, fmt.Errorf("making the authority: %w", err)
	}
	a := &Authority{dir: dir, certificate: certificate, key: key}
	return a, a.write("ca.crt", encode(a.certificate.Raw))
}

// Server writes NAME.crt and NAME.key for a server at these addresses.
func (a *Authority) Server(name string, addresses ...string) error {
	template := x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, address := range addresses {
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(address))
	}
	return a.writePair(name, template)
}

// Client writes NAME.crt and NAME.key for a user and the groups of that user.
func (a *Authority) Client(name, user string, groups ...string) error {
	return a.writePair(name, client(user, groups))
}

// Key writes a private key into NAME.key.
func (a *Authority) Key(name string) error {
	key, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return fmt.Errorf("making %s.key: %w", name, err)
	}
	return a.write(name+".key", key)
}

// Kubeconfig writes NAME.kubeconfig for a user of a server, and the groups of
// that user. It returns the path.
func (a *Authority) Kubeconfig(name, server, user string, groups ...string) (string, error) {
	const cluster = "local"
	certificate, key, err := a.sign(client(user, groups))
	if err != nil {
		return "", fmt.Errorf("making %s.kubeconfig: %w", name, err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[cluster] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: encode(a.certificate.Raw)}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key}
	config.Contexts[cluster] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: name}
	config.CurrentContext = cluster
	path := filepath.Join(a.dir, name+".kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return "", fmt.Errorf("writing %s: %w", path, err)
	}
	return path, nil
}

func client(user string, groups []string) x509.Certificate {
	return x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}

func (a *Authority) writePair(name string, template x509.Certificate) error {
	certificate, key, err := a.sign(template)
	if err != nil {
		return fmt.Errorf("making %s.crt: %w", name, err)
	}
	if err := a.write(name+".crt", certificate); err != nil {
		return err
	}
	return a.write(name+".key", key)
}

// sign makes a key and a certificate for it, both in PEM.
func (a *Authority) sign(template x509.Certificate) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(math.MaxInt64)); err != nil {
		return nil, nil, err
	}
	template.NotBefore = a.certificate.NotBefore
	template.NotAfter = time.Now().Add(365 * 24 * time.Hour)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, &template, a.certificate, private.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	key, err = keyutil.MarshalPrivateKeyToPEM(private)
	return encode(der), key, err
}

// encode returns a certificate in PEM.
func encode(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der})
}

// write writes a file that only its owner may read.
func (a *Authority) write(name string, content []byte) error {
	if err := os.WriteFile(filepath.Join(a.dir, name), content, 0o600); err != nil {
		return fmt.Errorf("writing certificates: %w", err)
	}
	return nil
}
