package etcd

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// writePair writes a self-signed certificate and its key.
func writePair(t *testing.T, dir, name string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return writePEM(t, filepath.Join(dir, name+".crt"), "CERTIFICATE", der),
		writePEM(t, filepath.Join(dir, name+".key"), "EC PRIVATE KEY", keyDER)
}

func writePEM(t *testing.T, file, kind string, der []byte) string {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestTLSFilesThatCannotBeUsedAreNamed(t *testing.T) {
	dir := t.TempDir()
	cert, key := writePair(t, dir, "one")
	_, otherKey := writePair(t, dir, "other")
	missing := filepath.Join(dir, "missing.pem")
	for name, test := range map[string]struct {
		files TLSFiles
		named string
	}{
		"missing CA":            {TLSFiles{CA: missing}, missing},
		"CA without PEM":        {TLSFiles{CA: key}, key},
		"missing certificate":   {TLSFiles{Cert: missing, Key: key}, missing},
		"missing key":           {TLSFiles{Cert: cert, Key: missing}, missing},
		"certificate alone":     {TLSFiles{CA: cert, Cert: cert}, cert},
		"key alone":             {TLSFiles{CA: cert, Key: key}, key},
		"key of another":        {TLSFiles{Cert: cert, Key: otherKey}, otherKey},
		"key for a certificate": {TLSFiles{Cert: key, Key: key}, key},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := test.files.Config(); err == nil || !strings.Contains(err.Error(), test.named) {
				t.Errorf("got error %v, want one that names %s", err, test.named)
			}
		})
	}
}

func TestARenewedCertificateIsUsed(t *testing.T) {
	dir := t.TempDir()
	cert, key := writePair(t, dir, "client")
	config, err := TLSFiles{CA: cert, Cert: cert, Key: key}.Config()
	if err != nil {
		t.Fatal(err)
	}
	present := func() string {
		c, err := config.GetClientCertificate(&tls.CertificateRequestInfo{})
		if err != nil {
			t.Fatal(err)
		}
		return string(c.Certificate[0])
	}
	before := present()
	writePair(t, dir, "client")
	if present() == before {
		t.Error("the old certificate is presented after the file has changed")
	}
}

func TestNoTLSFilesMeanNoConfig(t *testing.T) {
	if config, err := (TLSFiles{}).Config(); config != nil || err != nil {
		t.Errorf("got %v, %v", config, err)
	}
}
