package storage_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/even-keel/evenkeel/storage"
	"github.com/even-keel/evenkeel/storage/etcd"
	"github.com/even-keel/evenkeel/test/storage/etcdtest"
)

// authority issues certificates for a test.
type authority struct {
	t    *testing.T
	dir  string
	file string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "test CA"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign,
	}
	a.file, _, a.cert, a.key = a.issue("ca", template)
	return a
}

// issue writes a certificate and its key; a CA that has none signs itself.
func (a *authority) issue(name string, template *x509.Certificate) (certFile, keyFile string, cert *x509.Certificate, key *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	a.must(err)
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	a.must(err)
	cert, err = x509.ParseCertificate(der)
	a.must(err)
	keyDER, err := x509.MarshalECPrivateKey(key)
	a.must(err)
	return a.write(name+".crt", "CERTIFICATE", der), a.write(name+".key", "EC PRIVATE KEY", keyDER), cert, key
}

func (a *authority) leaf(name string) (certFile, keyFile string) {
	a.t.Helper()
	certFile, keyFile, _, _ = a.issue(name, &x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	return certFile, keyFile
}

func (a *authority) write(name, kind string, der []byte) string {
	a.t.Helper()
	file := filepath.Join(a.dir, name)
	a.must(os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	return file
}

func (a *authority) must(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}

// works has a store write, read and watch.
func works(t *testing.T, store *etcd.Store) {
	t.Helper()
	start := mustHead(t, store)
	at := mustCommit(t, store, storage.Create("works", []byte("1")))
	if entry, err := store.Get(t.Context(), "works"); err != nil || entry.Revision != at {
		t.Errorf("got %+v, error %v", entry, err)
	}
	w := store.Watch("", start)
	defer w.Close()
	if events, err := readThrough(t.Context(), w, at); err != nil || len(events) != 1 {
		t.Errorf("watched %+v, error %v", events, err)
	}
	mustCommit(t, store, storage.Delete("works", at))
	if err := store.Health(t.Context()); err != nil {
		t.Error(err)
	}
}

// refused fails unless Open fails with ErrUnavailable and says what to do.
func refused(t *testing.T, o etcd.Options, says string) error {
	t.Helper()
	store, err := etcd.Open(t.Context(), o)
	if err == nil {
		_ = store.Close()
		t.Fatal("the store was opened")
	}
	wantErr(t, err, storage.ErrUnavailable)
	for _, want := range append(o.Endpoints, says) {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	t.Logf("refused: %v", err)
	return err
}

func TestEtcdTLS(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	serverCert, serverKey := ours.leaf("server")
	clientCert, clientKey := ours.leaf("client")
	strangerCert, strangerKey := theirs.leaf("stranger")
	secure := etcdtest.Start(t, 1, etcdtest.ClientCertificates(ours.file, serverCert, serverKey)).Endpoints()
	plain := etcdtest.Start(t, 1).Endpoints()

	open := func(endpoints []string, files etcd.TLSFiles) etcd.Options {
		config, err := files.Config()
		if err != nil {
			t.Fatal(err)
		}
		return etcd.Options{Endpoints: endpoints, TLS: config}
	}
	t.Run("with a client certificate", func(t *testing.T) {
		works(t, openEtcd(t, open(secure, etcd.TLSFiles{CA: ours.file, Cert: clientCert, Key: clientKey})))
	})
	bare := []string{strings.TrimPrefix(secure[0], "https://")}
	t.Run("without a scheme", func(t *testing.T) {
		works(t, openEtcd(t, open(bare, etcd.TLSFiles{CA: ours.file, Cert: clientCert, Key: clientKey})))
	})
	for name, test := range map[string]struct {
		options etcd.Options
		says    string
	}{
		"without a client certificate":  {open(secure, etcd.TLSFiles{CA: ours.file}), "client certificate"},
		"with a stranger's certificate": {open(secure, etcd.TLSFiles{CA: ours.file, Cert: strangerCert, Key: strangerKey}), "certificate"},
		"with another CA":               {open(secure, etcd.TLSFiles{CA: theirs.file, Cert: clientCert, Key: clientKey}), "give the CA"},
		"with the system's CAs":         {open(secure, etcd.TLSFiles{}), "give the CA"},
		"in plain text":                 {open([]string{strings.Replace(secure[0], "https", "http", 1)}, etcd.TLSFiles{}), "say https://"},
		"to a server without TLS":       {open([]string{strings.Replace(plain[0], "http", "https", 1)}, etcd.TLSFiles{CA: ours.file}), "say http://"},
		"by a password, in plain text":  {withUser(open(bare, etcd.TLSFiles{}), "root", "secret"), "say https://"},
	} {
		t.Run(name, func(t *testing.T) { refused(t, test.options, test.says) })
	}
}

func withUser(o etcd.Options, name, password string) etcd.Options {
	o.Username, o.Password = name, password
	return o
}

// enableAuth gives the cluster users: root; keel, who may use the default
// prefix; and nobody, who may use another one.
func enableAuth(t *testing.T, cluster *etcdtest.Cluster) {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: cluster.Endpoints(), Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	ctx := t.Context()
	for user, prefix := range map[string]string{"root": "", "keel": "/evenkeel/", "nobody": "/other/"} {
		_, addUser := client.UserAdd(ctx, user, user+"-secret")
		_, addRole := client.RoleAdd(ctx, user)
		_, grant := client.UserGrantRole(ctx, user, user)
		if err := errors.Join(addUser, addRole, grant); err != nil {
			t.Fatal(err)
		}
		if prefix == "" {
			continue
		}
		if _, err := client.RoleGrantPermission(ctx, user, prefix, clientv3.GetPrefixRangeEnd(prefix), clientv3.PermissionType(clientv3.PermReadWrite)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.AuthEnable(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestEtcdAuth(t *testing.T) {
	cluster := etcdtest.Start(t, 1)
	options := etcd.Options{Endpoints: cluster.Endpoints()}
	works(t, openEtcd(t, withUser(options, "keel", "not needed yet")))
	before := openEtcd(t, options)
	enableAuth(t, cluster)

	works(t, openEtcd(t, withUser(options, "keel", "keel-secret")))
	works(t, openEtcd(t, withUser(options, "root", "root-secret")))
	for name, test := range map[string]struct {
		options etcd.Options
		says    string
	}{
		"with a wrong password":  {withUser(options, "keel", "wrong"), "check the user name and the password"},
		"as somebody unknown":    {withUser(options, "stranger", "keel-secret"), "check the user name and the password"},
		"without a user":         {options, "wants a user name and a password"},
		"as a user of elsewhere": {withUser(options, "nobody", "nobody-secret"), "must allow to read and write the prefix"},
	} {
		t.Run(name, func(t *testing.T) { wantErr(t, refused(t, test.options, test.says), etcd.ErrDenied) })
	}
	t.Run("enabled under a store without a user", func(t *testing.T) {
		_, err := before.Get(t.Context(), "a")
		wantErr(t, err, etcd.ErrDenied)
		_, err = before.Commit(t.Context(), storage.Create("a", nil))
		wantErr(t, err, etcd.ErrDenied)
		w := before.Watch("", 0)
		defer w.Close()
		_, err = w.Next(t.Context())
		wantErr(t, err, etcd.ErrDenied)
	})
}

// TestEtcdTokensAreRenewed: a member that restarts has forgotten the tokens it
// gave out.
func TestEtcdTokensAreRenewed(t *testing.T) {
	cluster := etcdtest.Start(t, 1)
	enableAuth(t, cluster)
	store := openEtcd(t, withUser(etcd.Options{Endpoints: cluster.Endpoints()}, "keel", "keel-secret"))
	first := mustCommit(t, store, storage.Create("a", []byte("1")))
	w := store.Watch("", first-1)
	defer w.Close()
	if _, err := w.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	cluster.Kill(0)
	cluster.Restart(0)
	last, err := replaceOnceAvailable(t.Context(), store, "a", first)
	if err != nil {
		t.Fatal(err)
	}
	batch, err := w.Next(t.Context())
	if err != nil || len(batch.Events) != 1 || batch.Events[0].Revision != last {
		t.Errorf("got %+v, error %v; want the write %d", batch, err, last)
	}
}

// TestEtcdAuthOnSeveralMembers: a token that one member gave out is used with
// others, which may not know it yet.
func TestEtcdAuthOnSeveralMembers(t *testing.T) {
	cluster := etcdtest.Start(t, 3)
	enableAuth(t, cluster)
	for range 5 {
		works(t, openEtcd(t, withUser(etcd.Options{Endpoints: cluster.Endpoints()}, "keel", "keel-secret")))
	}
}
