package webhook

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// writePair writes a certificate for a host, and its key, to a folder.
func writePair(t *testing.T, dir, host string) {
	t.Helper()
	pair, err := newPair(host, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	data, err := encodePairs([]tls.Certificate{pair})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range data {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func filesIn(dir string, log *slog.Logger) *files {
	return &files{cert: filepath.Join(dir, "tls.crt"), key: filepath.Join(dir, "tls.key"), log: log}
}

func TestFilesAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		var said strings.Builder
		f := filesIn(dir, slog.New(slog.NewTextHandler(&said, nil)))
		shows := func(want string) {
			t.Helper()
			cert, err := f.get(nil)
			if err != nil || cert.Leaf.DNSNames[0] != want {
				t.Fatalf("%v, %v; want %s", cert, err, want)
			}
		}
		if _, err := f.refresh(t.Context()); err == nil {
			t.Error("there are no files yet")
		}
		if _, err := f.get(nil); err != errNoCertificate {
			t.Error(err)
		}
		writePair(t, dir, "first")
		time.Sleep(fileCheck)
		shows("first")
		writePair(t, dir, "second")
		shows("first") // it is not read for each connection
		time.Sleep(fileCheck)
		shows("second")
		if err := os.WriteFile(f.key, []byte("nonsense"), 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(fileCheck)
		shows("second")
		if !strings.Contains(said.String(), "cannot be read") {
			t.Errorf("nobody is told: %s", said.String())
		}
		writePair(t, dir, "third")
		time.Sleep(fileCheck)
		shows("third")
	})
}

func TestFilesNameTheirAuthority(t *testing.T) {
	dir := t.TempDir()
	writePair(t, dir, "a")
	f := filesIn(dir, nil)
	if bundle, err := f.refresh(t.Context()); bundle != nil || err != nil {
		t.Errorf("%s, %v", bundle, err)
	}
	f.ca = f.cert
	want, err := os.ReadFile(f.cert)
	if err != nil {
		t.Fatal(err)
	}
	if bundle, err := f.refresh(t.Context()); !bytes.Equal(bundle, want) || err != nil {
		t.Errorf("%s, %v", bundle, err)
	}
}

// A client that learns of a bundle up to 23 hours late trusts every certificate that
// is shown, for three years.
func TestCertificatesAreTrustedWheneverTheyAreShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &selfMade{host: "hook.default.svc"}
		if _, err := m.get(nil); err != errNoCertificate {
			t.Error(err)
		}
		known, err := m.refresh(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for range 3 * 365 {
			bundle, err := m.refresh(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			mustTrust(t, m, bundle, seen)
			time.Sleep(23 * time.Hour)
			mustTrust(t, m, known, seen)
			known = bundle
			if n := bytes.Count(bundle, []byte("BEGIN")); n > 2 {
				t.Fatalf("%d certificates are trusted", n)
			}
			time.Sleep(time.Hour)
		}
		if len(seen) != 6 {
			t.Errorf("%d certificates in three years", len(seen))
		}
	})
}

// mustTrust has a client with a bundle look at what is shown.
func mustTrust(t *testing.T, m *selfMade, bundle []byte, seen map[string]bool) {
	t.Helper()
	shown, err := m.get(nil)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	if _, err := shown.Leaf.Verify(x509.VerifyOptions{DNSName: m.host, Roots: roots, CurrentTime: time.Now()}); err != nil {
		t.Fatalf("at %s: %v", time.Now(), err)
	}
	seen[fmt.Sprint(shown.Leaf.SerialNumber)] = true
}

func TestCertificatesOfAnotherHostAreReplaced(t *testing.T) {
	m := &selfMade{host: "127.0.0.1"}
	if _, err := m.refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.host = "127.0.0.2"
	bundle, err := m.refresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if shown, err := m.get(nil); err != nil || shown.Leaf.VerifyHostname("127.0.0.2") != nil || bytes.Count(bundle, []byte("BEGIN")) != 1 {
		t.Errorf("%v, %v", shown, err)
	}
}

func TestPairsAreReadAsTheyWereWritten(t *testing.T) {
	a, errA := newPair("a", time.Now())
	b, errB := newPair("b", time.Now())
	both, err := encodePairs([]tls.Certificate{a, b})
	if err != nil || errA != nil || errB != nil {
		t.Fatal(err, errA, errB)
	}
	got, err := parsePairs(both)
	if err != nil || len(got) != 2 || !got[0].Leaf.Equal(a.Leaf) || !got[1].Leaf.Equal(b.Leaf) {
		t.Errorf("%v, %v", got, err)
	}
	one, err := encodePairs([]tls.Certificate{b})
	if err != nil {
		t.Fatal(err)
	}
	for name, broken := range map[string]map[string][]byte{
		"keys are missing": {"tls.crt": both["tls.crt"]},
		"keys of another":  {"tls.crt": both["tls.crt"], "tls.key": one["tls.key"]},
		"nonsense":         {"tls.crt": []byte("x"), "tls.key": both["tls.key"]},
	} {
		if got, err := parsePairs(broken); err == nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}
