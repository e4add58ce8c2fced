//go:build linux

package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// certs are what kube-apiserver needs, in files, and an administrator's identity.
type certs struct {
	dir   string // ca.crt, apiserver.crt, apiserver.key, sa.key
	caPEM []byte
	admin tls.Certificate
}

func (c certs) file(name string) string { return filepath.Join(c.dir, name) }

// makeCerts makes a CA and what it signs, all ECDSA on P-256 as our own server's.
func makeCerts(dir string) (certs, error) {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return certs{}, err
	}
	caTemplate := certificate(1, pkix.Name{CommonName: "bench-ca"})
	caTemplate.IsCA, caTemplate.BasicConstraintsValid, caTemplate.KeyUsage = true, true, x509.KeyUsageCertSign
	caPEM, _, err := sign(caTemplate, caTemplate, caKey, caKey)
	if err != nil {
		return certs{}, err
	}
	c := certs{dir: dir, caPEM: caPEM}
	serving := certificate(2, pkix.Name{CommonName: "kube-apiserver"})
	serving.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	serving.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	servingPEM, servingKey, err := issue(serving, caTemplate, caKey)
	if err != nil {
		return certs{}, err
	}
	client := certificate(3, pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}})
	client.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	clientPEM, clientKey, err := issue(client, caTemplate, caKey)
	if err != nil {
		return certs{}, err
	}
	if c.admin, err = tls.X509KeyPair(clientPEM, clientKey); err != nil {
		return certs{}, err
	}
	_, signing, err := issue(certificate(4, pkix.Name{CommonName: "tokens"}), caTemplate, caKey)
	return c, errors.Join(err, c.write("ca.crt", caPEM), c.write("apiserver.crt", servingPEM),
		c.write("apiserver.key", servingKey), c.write("sa.key", signing))
}

func (c certs) write(name string, text []byte) error {
	return os.WriteFile(c.file(name), text, 0o600)
}

func certificate(serial int64, name pkix.Name) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: name, KeyUsage: x509.KeyUsageDigitalSignature,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
}

// issue makes a key and signs its certificate with the CA.
func issue(template, ca *x509.Certificate, caKey crypto.Signer) (certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	return sign(template, ca, key, caKey)
}

func sign(template, ca *x509.Certificate, key *ecdsa.PrivateKey, caKey crypto.Signer) (certPEM, keyPEM []byte, err error) {
	der, err := x509.CreateCertificate(rand.Reader, template, ca, key.Public(), caKey)
	if err != nil {
		return nil, nil, fmt.Errorf("certificate of %s: %w", template.Subject.CommonName, err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	certPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return certPEM, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}), nil
}
