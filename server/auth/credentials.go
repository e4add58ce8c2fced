package auth

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
)

// The files of OpenCredentials.
const (
	caCertFile      = "ca.crt"
	caKeyFile       = "ca.key"
	servingCertFile = "apiserver.crt"
	servingKeyFile  = "apiserver.key"
	adminCertFile   = "admin.crt"
	adminKeyFile    = "admin.key"
	signingKeyFile  = "sa.key"
)

// adminUser is whom the admin certificate stands for.
const adminUser = "kubernetes-admin"

// CredentialOptions say what the credentials are for.
type CredentialOptions struct {
	// Hosts are names and addresses under which the server is reached, besides
	// localhost and those of the service kubernetes.
	Hosts []string
	// ServiceIP is the address of that service; the zero value is 10.0.0.1.
	ServiceIP netip.Addr
	// Now is the clock; nil is the real one.
	Now func() time.Time
}

// Credentials are what a server and its administrator identify themselves with.
type Credentials struct {
	// CA signs serving and client certificates.
	CA    *x509.Certificate
	CAPEM []byte
	// Serving is the server's certificate and key.
	Serving tls.Certificate
	// AdminCertPEM and AdminKeyPEM let their bearer in as a system:masters.
	AdminCertPEM, AdminKeyPEM []byte
	// SigningKey signs service account tokens.
	SigningKey crypto.Signer

	authority authority
	now       func() time.Time
}

// NewCredentials makes credentials that nobody keeps: for a server in memory.
func NewCredentials(o CredentialOptions) (*Credentials, error) {
	c, err := build(&memory{files: map[string][]byte{}}, o)
	if err != nil {
		return nil, fmt.Errorf("make credentials: %w", err)
	}
	return c, nil
}

// OpenCredentials returns the credentials in a directory, and makes those that are
// missing. Certificates other than the CA's are made anew 30 days before they
// expire and when the wanted names change; their keys stay. Several processes
// may open one directory at the same time, also the first time: all get the
// same CA and keys.
//
// The error of a file that cannot be used wraps ErrDamaged.
func OpenCredentials(dir string, o CredentialOptions) (*Credentials, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open credentials: %w", err)
	}
	c, err := build(folder(dir), o)
	if err != nil {
		return nil, fmt.Errorf("open credentials: %w", err)
	}
	return c, nil
}

func build(k keeper, o CredentialOptions) (*Credentials, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if !o.ServiceIP.IsValid() {
		o.ServiceIP = DefaultServiceIP
	}
	now := o.Now()
	ca, err := buildAuthority(k, now)
	if err != nil {
		return nil, err
	}
	c := &Credentials{CA: ca.cert, CAPEM: encodeCertificate(ca.cert), authority: ca, now: o.Now}
	var g errgroup.Group // each waits for the disk, but not for the others
	g.Go(func() error { return c.buildServing(k, servingNames(o.ServiceIP, o.Hosts), now) })
	g.Go(func() error { return c.buildAdmin(k, now) })
	g.Go(func() error {
		var err error
		c.SigningKey, _, err = buildKey(k, signingKeyFile, lasting, "remove it to have a new one made; tokens signed with it are then refused")
		return err
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return c, nil
}

// anew is the advice where the CA is lost.
const anew = "restore it, or remove ca.key and ca.crt to have a new CA made; clients then need the new kubeconfig"

func buildAuthority(k keeper, now time.Time) (authority, error) {
	if err := refuseOrphan(k); err != nil {
		return authority{}, err
	}
	key, _, err := buildKey(k, caKeyFile, lasting, anew)
	if err != nil {
		return authority{}, err
	}
	content, err := ensure(k, caCertFile, lasting, func() ([]byte, error) {
		cert, err := newAuthority(key, now)
		if err != nil {
			return nil, err
		}
		return encodeCertificate(cert), nil
	})
	if err != nil {
		return authority{}, err
	}
	cert, err := parseCertificate(content)
	switch {
	case err != nil:
		return authority{}, damaged(k, caCertFile, err, anew)
	case !samePublic(cert.PublicKey, key.Public()):
		return authority{}, damaged(k, caCertFile, errors.New("does not belong to ca.key"), anew)
	case !cert.IsCA:
		return authority{}, damaged(k, caCertFile, errors.New("is not a CA's"), anew)
	case now.After(cert.NotAfter):
		return authority{}, damaged(k, caCertFile, fmt.Errorf("has expired on %s", cert.NotAfter.Format(time.DateOnly)), anew)
	}
	return authority{cert: cert, key: key}, nil
}

// refuseOrphan fails if the CA has a certificate and no key: a new key would
// lock out everyone who trusts the certificate.
func refuseOrphan(k keeper) error {
	if _, err := k.read(caCertFile); err != nil {
		return nil // not there, or reported when it is read for use
	}
	// Read after the certificate: another process makes the key first.
	if _, err := k.read(caKeyFile); errors.Is(err, fs.ErrNotExist) {
		return damaged(k, caKeyFile, errors.New("is missing, but ca.crt is there"), anew)
	}
	return nil
}

// buildKey returns the private key in a file, and its PEM.
func buildKey(k keeper, name string, d durability, advice string) (crypto.Signer, []byte, error) {
	content, err := ensure(k, name, d, func() ([]byte, error) {
		key, err := newKey()
		if err != nil {
			return nil, err
		}
		return encodeKey(key)
	})
	if err != nil {
		return nil, nil, err
	}
	key, err := parseKey(content)
	if err != nil {
		return nil, nil, damaged(k, name, err, advice)
	}
	return key, content, nil
}

// remake is the advice for what the CA can issue again.
const remake = "remove it to have it made again"

func (c *Credentials) buildServing(k keeper, want names, now time.Time) error {
	key, keyPEM, err := buildKey(k, servingKeyFile, remakable, remake)
	if err != nil {
		return err
	}
	issue := func() (*x509.Certificate, error) { return c.authority.server(key.Public(), want, now) }
	cert, err := c.buildCertificate(k, servingCertFile, issue, func(cert *x509.Certificate) bool {
		return c.authority.current(cert, key.Public(), now) && namesOf(cert).equal(want)
	})
	if err != nil {
		return err
	}
	c.Serving, err = tls.X509KeyPair(encodeCertificate(cert), keyPEM)
	return err
}

func (c *Credentials) buildAdmin(k keeper, now time.Time) error {
	key, keyPEM, err := buildKey(k, adminKeyFile, remakable, remake)
	if err != nil {
		return err
	}
	issue := func() (*x509.Certificate, error) {
		return c.authority.client(key.Public(), adminUser, []string{GroupMasters}, now)
	}
	cert, err := c.buildCertificate(k, adminCertFile, issue, func(cert *x509.Certificate) bool {
		return c.authority.current(cert, key.Public(), now)
	})
	if err != nil {
		return err
	}
	c.AdminCertPEM, c.AdminKeyPEM = encodeCertificate(cert), keyPEM
	return nil
}

// buildCertificate returns the certificate in a file, issued anew if there is
// none or it is no longer good.
func (c *Credentials) buildCertificate(k keeper, name string, issue func() (*x509.Certificate, error),
	good func(*x509.Certificate) bool) (*x509.Certificate, error) {
	content, err := existing(k, name, remakable)
	if err == nil {
		cert, err := parseCertificate(content)
		if err != nil {
			return nil, damaged(k, name, err, remake)
		}
		if good(cert) {
			return cert, nil
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	cert, err := issue()
	if err != nil {
		return nil, fmt.Errorf("issue %s: %w", name, err)
	}
	return cert, k.replace(name, encodeCertificate(cert), remakable)
}

func damaged(k keeper, name string, what error, advice string) error {
	return fmt.Errorf("%w: %s %w: %s", ErrDamaged, k.path(name), what, advice)
}

// IssueClient makes a client certificate with a new key, both PEM, for a user
// and its groups. Nobody keeps it.
func (c *Credentials) IssueClient(user string, groups ...string) (certPEM, keyPEM []byte, err error) {
	key, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	cert, err := c.authority.client(key.Public(), user, groups, c.now())
	if err != nil {
		return nil, nil, fmt.Errorf("issue client certificate of %q: %w", user, err)
	}
	keyPEM, err = encodeKey(key)
	return encodeCertificate(cert), keyPEM, err
}

// Pool is a pool of the CA alone.
func (c *Credentials) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(c.CA)
	return pool
}

// ServerTLS is the TLS configuration of a server that lets clients identify
// themselves by a certificate of clientCAs. A certificate of another CA ends
// the handshake.
func ServerTLS(serving tls.Certificate, clientCAs *x509.CertPool) *tls.Config {
	return &tls.Config{
		Certificates: []tls.Certificate{serving},
		ClientAuth:   tls.VerifyClientCertIfGiven,
		ClientCAs:    clientCAs,
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"h2", "http/1.1"},
		// Small first records help pages that are shown while they load; answers
		// here are read whole.
		DynamicRecordSizingDisabled: true,
	}
}
