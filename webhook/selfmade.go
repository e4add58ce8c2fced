package webhook

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/client"
)

const (
	certLife = 365 * 24 * time.Hour
	// settle is how old a certificate is before it is shown, unless it is the only one:
	// by then, every API server trusts it.
	settle = 24 * time.Hour
	// backdate is how much others' clocks may be behind.
	backdate = time.Hour
)

// selfMade are certificates that are their own CAs. They are in a Secret, if one is
// named, so that all replicas have the same.
//
// When half the life of a certificate is over, another is made beside it. API servers
// are told to trust both, and the new one is shown when it has settled. So none is ever
// shown that has not been trusted for a day, but for the very first.
type selfMade struct {
	host    string
	secret  client.Key
	secrets *client.Client[*corev1.Secret]

	mu    sync.Mutex
	pairs []tls.Certificate // the newest first
}

// refresh reads the certificates, and makes another if it is time. If somebody else
// does the same, one of the two gets an error.
func (m *selfMade) refresh(ctx context.Context) (bundle []byte, err error) {
	m.mu.Lock()
	pairs := m.pairs
	m.mu.Unlock()
	if m.secret.Name == "" {
		pairs, _, err = rotate(pairs, m.host, time.Now())
	} else {
		pairs, err = m.refreshSecret(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("certificates in secret %q: %w", m.secret, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pairs = pairs
	data, err := encodePairs(pairs)
	return data["tls.crt"], err
}

func (m *selfMade) refreshSecret(ctx context.Context) ([]tls.Certificate, error) {
	write := m.secrets.Update
	secret, err := m.secrets.Get(ctx, m.secret)
	if client.IsNotFound(err) {
		write, err = m.secrets.Create, nil
		secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: m.secret.Namespace, Name: m.secret.Name}}
	}
	if err != nil {
		return nil, err
	}
	pairs, err := parsePairs(secret.Data)
	if err != nil {
		return nil, err
	}
	pairs, changed, err := rotate(pairs, m.host, time.Now())
	if err != nil || !changed {
		return pairs, err
	}
	if secret.Data, err = encodePairs(pairs); err != nil {
		return nil, err
	}
	_, err = write(ctx, secret)
	return pairs, err
}

// get shows the newest certificate that has settled, or else the oldest.
func (m *selfMade) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.pairs {
		if last := i == len(m.pairs)-1; last || time.Since(m.pairs[i].Leaf.NotBefore) >= backdate+settle {
			return &m.pairs[i], nil
		}
	}
	return nil, errNoCertificate
}

// rotate leaves out certificates that have expired or are of another host, and adds a
// new one if the newest has less than half of its life left.
func rotate(pairs []tls.Certificate, host string, now time.Time) (out []tls.Certificate, changed bool, err error) {
	for _, p := range pairs {
		if now.Before(p.Leaf.NotAfter) && p.Leaf.VerifyHostname(host) == nil {
			out = append(out, p)
		}
	}
	if len(out) > 0 && now.Add(certLife/2).Before(out[0].Leaf.NotAfter) {
		return out, len(out) != len(pairs), nil
	}
	fresh, err := newPair(host, now)
	return append([]tls.Certificate{fresh}, out...), true, err
}

func newPair(host string, now time.Time) (tls.Certificate, error) {
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: fmt.Sprintf("evenkeel-webhook@%d", now.Unix())},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(certLife),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA: true, BasicConstraintsValid: true,
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	leaf, err := x509.ParseCertificate(der)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, err
}

// encodePairs returns what a Secret has of them: certificates and keys in PEM, in the
// same order.
func encodePairs(pairs []tls.Certificate) (map[string][]byte, error) {
	var certs, keys []byte
	for _, p := range pairs {
		der, err := x509.MarshalPKCS8PrivateKey(p.PrivateKey)
		if err != nil {
			return nil, err
		}
		certs = append(certs, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Leaf.Raw})...)
		keys = append(keys, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})...)
	}
	return map[string][]byte{"tls.crt": certs, "tls.key": keys}, nil
}

func parsePairs(data map[string][]byte) (out []tls.Certificate, err error) {
	for certs, keys := data["tls.crt"], data["tls.key"]; len(bytes.TrimSpace(certs)) > 0; {
		var cert, key *pem.Block
		cert, certs = pem.Decode(certs)
		key, keys = pem.Decode(keys)
		if cert == nil || key == nil {
			return nil, errors.New("there is not a key for each certificate, in PEM")
		}
		pair, err := tls.X509KeyPair(pem.EncodeToMemory(cert), pem.EncodeToMemory(key))
		if err != nil {
			return nil, err
		}
		out = append(out, pair)
	}
	return out, nil
}
