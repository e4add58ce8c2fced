package auth

import (
	"bytes"
	"crypto/x509"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func mustOpen(t *testing.T, dir string, o CredentialOptions) *Credentials {
	t.Helper()
	if o.Now == nil {
		o.Now = at(noon)
	}
	c, err := OpenCredentials(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func serving(t *testing.T, c *Credentials) *x509.Certificate {
	t.Helper()
	cert, err := x509.ParseCertificate(c.Serving.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func TestCredentialsAreMadeOnceAndKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "pki")
	first := mustOpen(t, dir, CredentialOptions{})
	second := mustOpen(t, dir, CredentialOptions{})
	if !bytes.Equal(first.CAPEM, second.CAPEM) || !bytes.Equal(first.AdminCertPEM, second.AdminCertPEM) ||
		!bytes.Equal(first.AdminKeyPEM, second.AdminKeyPEM) ||
		!bytes.Equal(first.Serving.Certificate[0], second.Serving.Certificate[0]) ||
		!samePublic(first.SigningKey.Public(), second.SigningKey.Public()) {
		t.Error("the second start made new credentials")
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	modes := map[string]string{}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		modes[e.Name()] = info.Mode().String()
	}
	private := "-rw-------"
	want := map[string]string{"ca.crt": private, "ca.key": private, "apiserver.crt": private, "apiserver.key": private,
		"admin.crt": private, "admin.key": private, "sa.key": private}
	if diff := cmp.Diff(want, modes); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder is %v, %v", info.Mode(), err)
	}
}

func TestServingCertificateNames(t *testing.T) {
	c := mustOpen(t, t.TempDir(), CredentialOptions{
		Hosts:     []string{"build.example.org", "192.0.2.7", "localhost", "0.0.0.0", "::", "", "127.0.0.1"},
		ServiceIP: FirstAddress(netip.MustParsePrefix("10.96.0.0/12")),
	})
	got := namesOf(serving(t, c))
	want := names{
		dns: []string{"build.example.org", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
			"kubernetes.default.svc.cluster.local", "localhost"},
		ips: []netip.Addr{netip.MustParseAddr("10.96.0.1"), netip.MustParseAddr("127.0.0.1"),
			netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("::1")},
	}
	if !want.equal(got) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	for _, name := range []string{"localhost", "127.0.0.1", "::1", "kubernetes.default.svc", "10.96.0.1"} {
		if _, err := serving(t, c).Verify(x509.VerifyOptions{DNSName: name, Roots: c.Pool(), CurrentTime: noon}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestServiceIPDefaultsToTheFirstOfTheDefaultRange(t *testing.T) {
	if got := FirstAddress(netip.MustParsePrefix("10.0.0.77/24")); got != DefaultServiceIP {
		t.Errorf("first address is %s", got)
	}
	if err := serving(t, mustCredentials(t, CredentialOptions{})).VerifyHostname("10.0.0.1"); err != nil {
		t.Error(err)
	}
}

func TestRenewal(t *testing.T) {
	tests := map[string]struct {
		later          time.Duration
		hosts          []string
		serving, admin bool // made anew
	}{
		"the next day":                  {later: 24 * time.Hour},
		"31 days before they expire":    {later: leafLife - 31*24*time.Hour},
		"29 days before they expire":    {later: leafLife - 29*24*time.Hour, serving: true, admin: true},
		"after they expired":            {later: leafLife + time.Hour, serving: true, admin: true},
		"a new name":                    {hosts: []string{"new.example.org"}, serving: true},
		"a clock that was set far back": {later: -48 * time.Hour, serving: true, admin: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			before := mustOpen(t, dir, CredentialOptions{})
			after := mustOpen(t, dir, CredentialOptions{Hosts: tt.hosts, Now: at(noon.Add(tt.later))})
			if anew := !bytes.Equal(before.Serving.Certificate[0], after.Serving.Certificate[0]); anew != tt.serving {
				t.Errorf("serving certificate made anew: %v", anew)
			}
			if anew := !bytes.Equal(before.AdminCertPEM, after.AdminCertPEM); anew != tt.admin {
				t.Errorf("admin certificate made anew: %v", anew)
			}
			if !bytes.Equal(before.CAPEM, after.CAPEM) || !bytes.Equal(before.AdminKeyPEM, after.AdminKeyPEM) {
				t.Error("the CA or a key was made anew")
			}
			again := mustOpen(t, dir, CredentialOptions{Hosts: tt.hosts, Now: at(noon.Add(tt.later))})
			if !bytes.Equal(after.Serving.Certificate[0], again.Serving.Certificate[0]) {
				t.Error("what was renewed was not kept")
			}
		})
	}
}

func TestLeavesDoNotOutliveTheCA(t *testing.T) {
	dir := t.TempDir()
	mustOpen(t, dir, CredentialOptions{})
	c := mustOpen(t, dir, CredentialOptions{Now: at(noon.Add(caLife - 100*24*time.Hour))})
	if end := serving(t, c).NotAfter; !end.Equal(c.CA.NotAfter) {
		t.Errorf("serves until %s, the CA ends at %s", end, c.CA.NotAfter)
	}
}

func TestDamagedFilesAreNamed(t *testing.T) {
	write := func(content string) func(string) error {
		return func(path string) error { return os.WriteFile(path, []byte(content), 0o600) }
	}
	other := mustCredentials(t, CredentialOptions{Now: at(noon)})
	tests := map[string]struct {
		file   string
		damage func(path string) error
		later  time.Duration
		want   string
	}{
		"a CA key that is cut off":        {file: "ca.key", damage: write("-----BEGIN PRIVATE KEY-----\nMIG"), want: "has no PEM block with a private key: restore it, or remove ca.key and ca.crt"},
		"an empty CA key":                 {file: "ca.key", damage: write(""), want: "has no PEM block with a private key"},
		"a CA key with rubbish":           {file: "ca.key", damage: write("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"), want: "has a private key that cannot be read"},
		"a CA key that has gone":          {file: "ca.key", damage: os.Remove, want: "is missing, but ca.crt is there: restore it"},
		"an empty CA certificate":         {file: "ca.crt", damage: write(""), want: "has no PEM block CERTIFICATE"},
		"another CA's certificate":        {file: "ca.crt", damage: write(string(other.CAPEM)), want: "does not belong to ca.key"},
		"a CA that has expired":           {file: "ca.crt", damage: func(string) error { return nil }, later: caLife + time.Hour, want: "has expired on 2040-05-14"},
		"a serving certificate, cut off":  {file: "apiserver.crt", damage: write("-----BEGIN"), want: "remove it to have it made again"},
		"a serving key that is no key":    {file: "apiserver.key", damage: write("hello"), want: "remove it to have it made again"},
		"an admin certificate, corrupted": {file: "admin.crt", damage: write("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), want: "remove it to have it made again"},
		"a signing key that is no key":    {file: "sa.key", damage: write("hello"), want: "tokens signed with it are then refused"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			mustOpen(t, dir, CredentialOptions{})
			path := filepath.Join(dir, tt.file)
			if err := tt.damage(path); err != nil {
				t.Fatal(err)
			}
			_, err := OpenCredentials(dir, CredentialOptions{Now: at(noon.Add(tt.later))})
			if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s %s", err, path, tt.want)
			}
		})
	}
}

// What an unfinished first start, or a crash of the machine, has left out is
// made at the next start.
func TestMissingFilesAreMadeAgain(t *testing.T) {
	leaves := []string{"apiserver.crt", "apiserver.key", "admin.crt", "admin.key"}
	for _, file := range append(leaves, "sa.key") {
		testRemade(t, file, os.Remove)
	}
	for _, file := range leaves {
		testRemade(t, file, func(path string) error { return os.Truncate(path, 0) })
	}
}

func testRemade(t *testing.T, file string, lose func(path string) error) {
	t.Helper()
	dir := t.TempDir()
	before := mustOpen(t, dir, CredentialOptions{})
	if err := lose(filepath.Join(dir, file)); err != nil {
		t.Fatal(err)
	}
	after := mustOpen(t, dir, CredentialOptions{})
	if !bytes.Equal(before.CAPEM, after.CAPEM) {
		t.Errorf("without %s, there is a new CA", file)
	}
	if _, err := serving(t, after).Verify(x509.VerifyOptions{Roots: before.Pool(), CurrentTime: noon}); err != nil {
		t.Errorf("without %s: %v", file, err)
	}
	again := mustOpen(t, dir, CredentialOptions{})
	if !bytes.Equal(after.Serving.Certificate[0], again.Serving.Certificate[0]) || !bytes.Equal(after.AdminCertPEM, again.AdminCertPEM) {
		t.Errorf("without %s: what was made again was not kept", file)
	}
}

func TestAnUnwritableFolderIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenCredentials(filepath.Join(file, "pki"), CredentialOptions{}); err == nil {
		t.Error("opened below a file")
	}
}

func TestConcurrentFirstStartsAgree(t *testing.T) {
	for range 20 {
		dir := t.TempDir()
		const starts = 8
		all := make([]*Credentials, starts)
		errs := make([]error, starts)
		var wg sync.WaitGroup
		for i := range starts {
			wg.Go(func() { all[i], errs[i] = OpenCredentials(dir, CredentialOptions{Now: at(noon)}) })
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		for _, c := range all {
			if !bytes.Equal(c.CAPEM, all[0].CAPEM) || !bytes.Equal(c.AdminKeyPEM, all[0].AdminKeyPEM) ||
				!samePublic(c.SigningKey.Public(), all[0].SigningKey.Public()) {
				t.Fatal("two starts have different CAs or keys")
			}
			if _, err := serving(t, c).Verify(x509.VerifyOptions{Roots: all[0].Pool(), CurrentTime: noon}); err != nil {
				t.Fatal(err)
			}
		}
		if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) != 0 {
			t.Fatalf("left behind: %v", left)
		}
	}
}

func BenchmarkNewCredentials(b *testing.B) {
	for b.Loop() {
		if _, err := NewCredentials(CredentialOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpenCredentials(b *testing.B) {
	for name, fresh := range map[string]bool{"first": true, "again": false} {
		b.Run(name, func(b *testing.B) {
			dir := b.TempDir()
			for i := 0; b.Loop(); i++ {
				if fresh {
					dir = filepath.Join(b.TempDir(), "x")
				}
				if _, err := OpenCredentials(dir, CredentialOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
