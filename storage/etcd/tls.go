package etcd

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/even-keel/evenkeel/storage"
)

// TLSFiles name PEM files that secure the connection to a cluster.
type TLSFiles struct {
	// CA holds the certificates that the servers' are checked against; the
	// system's roots are used if it is empty.
	CA string
	// Cert and Key are the client's own, for clusters that ask for one.
	Cert, Key string
}

// Config reads the files; without any it returns nil. The client certificate
// is read anew for each connection, so that it can be renewed on disk.
func (f TLSFiles) Config() (*tls.Config, error) {
	if f == (TLSFiles{}) {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.CA != "" {
		roots, err := readRoots(f.CA)
		if err != nil {
			return nil, err
		}
		config.RootCAs = roots
	}
	if f.Cert == "" && f.Key == "" {
		return config, nil
	}
	if _, err := f.certificate(); err != nil {
		return nil, err
	}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return f.certificate()
	}
	return config, nil
}

func readRoots(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the etcd CA file: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("etcd CA file %s holds no PEM certificate: %w", file, storage.ErrInvalid)
	}
	return roots, nil
}

func (f TLSFiles) certificate() (*tls.Certificate, error) {
	switch {
	case f.Cert == "":
		return nil, fmt.Errorf("etcd key file %s was given without a certificate file: %w", f.Key, storage.ErrInvalid)
	case f.Key == "":
		return nil, fmt.Errorf("etcd certificate file %s was given without a key file: %w", f.Cert, storage.ErrInvalid)
	}
	cert, certErr := os.ReadFile(f.Cert)
	key, keyErr := os.ReadFile(f.Key)
	if err := errors.Join(certErr, keyErr); err != nil {
		return nil, fmt.Errorf("read the etcd client certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("etcd client certificate %s with key %s: %w", f.Cert, f.Key, err)
	}
	return &pair, nil
}
