package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
)

// LoadServing reads a serving certificate with its key, as --tls-cert-file and
// --tls-private-key-file name them.
func LoadServing(certFile, keyFile string) (tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("load serving certificate %s with key %s: %w", certFile, keyFile, err)
	}
	return pair, nil
}

// LoadClientCA reads the certificates that client certificates are verified
// against, as --client-ca-file names them.
func LoadClientCA(file string) (*x509.CertPool, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("load client CA: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(b) {
		return nil, fmt.Errorf("load client CA: %s has no certificate in it", file)
	}
	return pool, nil
}

// LoadSigningKey reads the private key of --service-account-signing-key-file.
func LoadSigningKey(file string) (crypto.Signer, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("load signing key: %w", err)
	}
	key, err := parseKey(b)
	if err != nil {
		return nil, fmt.Errorf("load signing key: %s %w", file, err)
	}
	return key, nil
}

// LoadPublicKeys reads the keys of --service-account-key-file: public keys, or
// private ones, of which the public half counts; at least one.
func LoadPublicKeys(file string) ([]crypto.PublicKey, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("load service account keys: %w", err)
	}
	keys, err := parsePublicKeys(b)
	if err != nil {
		return nil, fmt.Errorf("load service account keys: %s %w", file, err)
	}
	return keys, nil
}

// parseKey reads the first private key of a PEM file, in any of the usual
// forms.
func parseKey(b []byte) (crypto.Signer, error) {
	for block, rest := pem.Decode(b); block != nil; block, rest = pem.Decode(rest) {
		if key, err := privateKey(block); key != nil || err != nil {
			return key, err
		}
	}
	return nil, errors.New("has no PEM block with a private key")
}

// privateKey is nil for a block that is none.
func privateKey(block *pem.Block) (crypto.Signer, error) {
	var key any
	var err error
	switch block.Type {
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	default:
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("has a private key that cannot be read: %w", err)
	}
	switch key := key.(type) {
	case *ecdsa.PrivateKey:
		return key, nil
	case *rsa.PrivateKey:
		return key, nil
	}
	return nil, fmt.Errorf("has a private key of type %T, want ECDSA or RSA", key)
}

func parsePublicKeys(b []byte) ([]crypto.PublicKey, error) {
	var keys []crypto.PublicKey
	for block, rest := pem.Decode(b); block != nil; block, rest = pem.Decode(rest) {
		private, err := privateKey(block)
		if err != nil {
			return nil, err
		}
		if private != nil {
			keys = append(keys, private.Public())
			continue
		}
		public, err := publicKey(block)
		if err != nil {
			return nil, err
		}
		if public != nil {
			keys = append(keys, public)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("has no PEM block with a key")
	}
	return keys, nil
}

func publicKey(block *pem.Block) (crypto.PublicKey, error) {
	var key any
	var err error
	switch block.Type {
	case "PUBLIC KEY":
		key, err = x509.ParsePKIXPublicKey(block.Bytes)
	case "RSA PUBLIC KEY":
		key, err = x509.ParsePKCS1PublicKey(block.Bytes)
	case "CERTIFICATE":
		cert, failed := x509.ParseCertificate(block.Bytes)
		if failed == nil {
			key = cert.PublicKey
		}
		err = failed
	}
	if err != nil {
		return nil, fmt.Errorf("has a public key that cannot be read: %w", err)
	}
	return key, nil
}
