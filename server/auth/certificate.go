package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"slices"
	"time"
)

const (
	caLife   = 10 * 365 * 24 * time.Hour
	leafLife = 365 * 24 * time.Hour
	// renewWithin is how long before its end a certificate is replaced.
	renewWithin = 30 * 24 * time.Hour
	// backdate is how much a client's clock may be behind ours.
	backdate = time.Hour
)

// DefaultServiceIP is the address of the service kubernetes: the first of the
// default range.
var DefaultServiceIP = netip.AddrFrom4([4]byte{10, 0, 0, 1})

// FirstAddress is the first address of a service range that is a service's:
// 10.0.0.1 of 10.0.0.0/24.
func FirstAddress(services netip.Prefix) netip.Addr { return services.Masked().Addr().Next() }

// names are what a serving certificate is good for.
type names struct {
	dns []string
	ips []netip.Addr
}

// servingNames are the names under which clients reach the server: its own, in
// and out of a cluster, and hosts, which are names or addresses.
func servingNames(serviceIP netip.Addr, hosts []string) names {
	n := names{
		dns: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
			"kubernetes.default.svc.cluster.local"},
		ips: []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback(), serviceIP},
	}
	for _, h := range hosts {
		if ip, err := netip.ParseAddr(h); err == nil {
			if !ip.IsUnspecified() {
				n.ips = append(n.ips, ip.Unmap().WithZone(""))
			}
		} else if h != "" {
			n.dns = append(n.dns, h)
		}
	}
	slices.Sort(n.dns)
	slices.SortFunc(n.ips, netip.Addr.Compare)
	n.dns, n.ips = slices.Compact(n.dns), slices.Compact(n.ips)
	return n
}

// namesOf are the names in a certificate.
func namesOf(cert *x509.Certificate) names {
	n := names{dns: slices.Sorted(slices.Values(cert.DNSNames))}
	for _, ip := range cert.IPAddresses {
		if addr, ok := netip.AddrFromSlice(ip); ok {
			n.ips = append(n.ips, addr.Unmap())
		}
	}
	slices.SortFunc(n.ips, netip.Addr.Compare)
	return n
}

func (n names) equal(o names) bool { return slices.Equal(n.dns, o.dns) && slices.Equal(n.ips, o.ips) }

// newKey makes a private key: ECDSA, for it takes microseconds where RSA takes
// a tenth of a second.
func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

// authority is a CA.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// newAuthority makes a CA certificate for a key.
func newAuthority(key crypto.Signer, now time.Time) (*x509.Certificate, error) {
	template := &x509.Certificate{
		// The time keeps two CAs apart in a store that knows them by name.
		Subject:               pkix.Name{CommonName: fmt.Sprintf("evenkeel-ca@%d", now.Unix())},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(caLife),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	return sign(template, template, key.Public(), key)
}

// server makes a serving certificate for a public key.
func (a authority) server(key crypto.PublicKey, n names, now time.Time) (*x509.Certificate, error) {
	template := a.leaf(pkix.Name{CommonName: "evenkeel"}, x509.ExtKeyUsageServerAuth, now)
	template.DNSNames = n.dns
	for _, ip := range n.ips {
		template.IPAddresses = append(template.IPAddresses, net.IP(ip.AsSlice()))
	}
	return sign(template, a.cert, key, a.key)
}

// client makes a client certificate: a user and its groups.
func (a authority) client(key crypto.PublicKey, user string, groups []string, now time.Time) (*x509.Certificate, error) {
	template := a.leaf(pkix.Name{CommonName: user, Organization: groups}, x509.ExtKeyUsageClientAuth, now)
	return sign(template, a.cert, key, a.key)
}

// leaf is a template; nothing outlives its CA.
func (a authority) leaf(subject pkix.Name, use x509.ExtKeyUsage, now time.Time) *x509.Certificate {
	end := now.Add(leafLife)
	if end.After(a.cert.NotAfter) {
		end = a.cert.NotAfter
	}
	return &x509.Certificate{
		Subject:               subject,
		NotBefore:             now.Add(-backdate),
		NotAfter:              end,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{use},
		BasicConstraintsValid: true,
	}
}

func sign(template, parent *x509.Certificate, public crypto.PublicKey, key crypto.Signer) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial.Add(serial, big.NewInt(1))
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// current tells whether a certificate is still good: the CA's, for this key and
// purpose, and not about to expire.
func (a authority) current(cert *x509.Certificate, key crypto.PublicKey, now time.Time) bool {
	return cert.CheckSignatureFrom(a.cert) == nil && samePublic(cert.PublicKey, key) &&
		!now.Before(cert.NotBefore) && now.Add(renewWithin).Before(cert.NotAfter)
}

func samePublic(a, b crypto.PublicKey) bool {
	k, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && k.Equal(b)
}

// encodeCertificate, encodeKey and their reverse are PEM.
func encodeCertificate(cert *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})
}

func encodeKey(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

func parseCertificate(b []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(b)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, errors.New("has no PEM block CERTIFICATE")
	}
	return x509.ParseCertificate(block.Bytes)
}
