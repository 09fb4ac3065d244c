package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Kubeconfig files in the run folder are named NAME.kubeconfig.
const adminName = "admin"

// clients are who may ask the API server for something.
var clients = map[string]pkix.Name{
	adminName:     {CommonName: "admin", Organization: []string{"system:masters"}},
	"controllers": {CommonName: "system:kube-controller-manager"},
	"scheduler":   {CommonName: "system:kube-scheduler"},
	"kubelet":     {CommonName: "system:node:" + nodeName, Organization: []string{"system:nodes"}},
}

// keyPair is a certificate with its key, both in PEM.
type keyPair struct {
	certificate, key []byte
}

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte // the certificate
}

// writeCredentials writes into a folder what programs know each other by.
func writeCredentials(dir string) error {
	ca, err := newAuthority()
	if err != nil {
		return fmt.Errorf("making certificates: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making a key for service accounts: %w", err)
	}
	serviceAccount, err := encodeKey(key)
	if err != nil {
		return fmt.Errorf("making a key for service accounts: %w", err)
	}
	files := map[string][]byte{"ca.crt": ca.pem, "service-account.key": serviceAccount}
	for name, template := range map[string]*x509.Certificate{
		"apiserver": server("kube-apiserver", "127.0.0.1", nodeAddress, serviceAddress),
		"kubelet":   server("kubelet", nodeAddress),
		// As which the API server asks kubelet for logs, for example.
		"apiserver-kubelet": client(pkix.Name{CommonName: "kube-apiserver", Organization: []string{"system:masters"}}),
	} {
		pair, err := ca.sign(template)
		if err != nil {
			return fmt.Errorf("making the certificate %s: %w", name, err)
		}
		files[name+".crt"], files[name+".key"] = pair.certificate, pair.key
	}
	for name, subject := range clients {
		pair, err := ca.sign(client(subject))
		if err != nil {
			return fmt.Errorf("making the certificate %s: %w", name, err)
		}
		if files[name+".kubeconfig"], err = kubeconfig(ca.pem, pair); err != nil {
			return fmt.Errorf("making the kubeconfig file %s: %w", name, err)
		}
	}
	return writeFiles(dir, files)
}

// writeFiles writes files that only their owner may read.
func writeFiles(dir string, files map[string][]byte) error {
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func server(name string, addresses ...string) *x509.Certificate {
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, address := range addresses {
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(address))
	}
	return template
}

func client(subject pkix.Name) *x509.Certificate {
	return &x509.Certificate{Subject: subject, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
}

// newAuthority makes an authority with a key that is in no file.
func newAuthority() (*authority, error) {
	ca := &authority{certificate: &x509.Certificate{
		Subject:               pkix.Name{CommonName: "node"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}}
	pair, err := ca.sign(ca.certificate)
	ca.pem = pair.certificate
	return ca, err
}

// sign makes a key and a certificate for it. The first certificate that an
// authority signs is its own.
func (a *authority) sign(template *x509.Certificate) (keyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keyPair{}, err
	}
	if a.key == nil {
		a.key = key
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return keyPair{}, err
	}
	template.NotBefore = time.Now().Add(-time.Hour) // the clock may be set back a little
	template.NotAfter = time.Now().Add(30 * 24 * time.Hour)
	template.KeyUsage |= x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return keyPair{}, err
	}
	encoded, err := encodeKey(key)
	return keyPair{certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key: encoded}, err
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// object is one in JSON, which is YAML too.
type object = map[string]any

// kubeconfig returns a kubeconfig file.
func kubeconfig(authority []byte, pair keyPair) ([]byte, error) {
	return json.Marshal(object{
		"apiVersion": "v1",
		"kind":       "Config",
		"clusters": []object{{"name": nodeName, "cluster": object{
			"server": "https://" + nodeAddress, "certificate-authority-data": authority,
		}}},
		"users": []object{{"name": nodeName, "user": object{
			"client-certificate-data": pair.certificate, "client-key-data": pair.key,
		}}},
		"contexts":        []object{{"name": nodeName, "context": object{"cluster": nodeName, "user": nodeName}}},
		"current-context": nodeName,
	})
}
