package cli

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// served is an `evenkeel serve` that runs in the test.
type served struct {
	dataDir        string
	stdout, stderr bytes.Buffer
	cancel         context.CancelFunc
	code           chan int
}

// startServe runs serve on a free port until it has said where it serves.
func startServe(t *testing.T, args ...string) *served {
	t.Helper()
	s := &served{dataDir: t.TempDir(), code: make(chan int, 1)}
	s.run(t, args...)
	t.Cleanup(s.cancel)
	return s
}

func (s *served) run(t *testing.T, args ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	args = append([]string{"serve", "--data-dir", s.dataDir, "--listen", "127.0.0.1:0"}, args...)
	announced := make(chan struct{})
	out := &announceWriter{to: &s.stdout, announced: announced}
	go func() { s.code <- Execute(ctx, args, nil, out, &s.stderr) }()
	select {
	case <-announced:
	case code := <-s.code:
		t.Fatalf("serve ended with %d: %s", code, &s.stderr)
	}
}

func (s *served) stop(t *testing.T) {
	t.Helper()
	s.cancel()
	if code := <-s.code; code != ExitOK {
		t.Errorf("serve ended with %d: %s", code, &s.stderr)
	}
}

// announceWriter tells when something has been written.
type announceWriter struct {
	to        *bytes.Buffer
	announced chan struct{}
}

func (w *announceWriter) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	select {
	case <-w.announced:
	default:
		close(w.announced)
	}
	return n, err
}

// dial returns a client and the address of the server that a kubeconfig names.
func dial(t *testing.T, kubeconfig string) (*http.Client, string) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return c, config.Host
}

func status(t *testing.T, c *http.Client, method, url, body string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	return res.StatusCode
}

func TestServeTellsHowToReachIt(t *testing.T) {
	s := startServe(t)
	kubeconfig := filepath.Join(s.dataDir, adminKubeconfig)
	want := regexp.MustCompile(`^Serving the Kubernetes API at https://127\.0\.0\.1:\d+\n\n  export KUBECONFIG=` + regexp.QuoteMeta(kubeconfig) + "\n")
	if !want.MatchString(s.stdout.String()) {
		t.Errorf("it says:\n%s", &s.stdout)
	}
	if info, err := os.Stat(kubeconfig); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the kubeconfig: %v, %v", info, err)
	}
	c, host := dial(t, kubeconfig)
	if code := status(t, c, http.MethodGet, host+"/api/v1/namespaces/default", ""); code != http.StatusOK {
		t.Errorf("the administrator gets %d", code)
	}
	s.stop(t)
}

func TestServeKeepsItsDataAndItsCertificates(t *testing.T) {
	s := startServe(t)
	kubeconfig := filepath.Join(s.dataDir, adminKubeconfig)
	c, host := dial(t, kubeconfig)
	const made = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"kept"}}`
	if code := status(t, c, http.MethodPost, host+"/api/v1/namespaces/default/configmaps", made); code != http.StatusCreated {
		t.Fatalf("create gives %d", code)
	}
	s.stop(t)
	before, err := os.ReadFile(filepath.Join(s.dataDir, "pki", "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}

	s.run(t)
	defer s.stop(t)
	c, host = dial(t, kubeconfig)
	if code := status(t, c, http.MethodGet, host+"/api/v1/namespaces/default/configmaps/kept", ""); code != http.StatusOK {
		t.Errorf("after a restart the object gives %d", code)
	}
	if after, err := os.ReadFile(filepath.Join(s.dataDir, "pki", "ca.crt")); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the CA has changed (%v)", err)
	}
}

func TestServeWritesTheKubeconfigWhereItIsWanted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "with space", "config")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	s := startServe(t, "--storage", "memory", "--kubeconfig", path)
	defer s.stop(t)
	if !strings.Contains(s.stdout.String(), "export KUBECONFIG='"+path+"'\n") {
		t.Errorf("it says:\n%s", &s.stdout)
	}
	c, host := dial(t, path)
	if code := status(t, c, http.MethodGet, host+"/readyz", ""); code != http.StatusOK {
		t.Errorf("readyz gives %d", code)
	}
}

func TestServeLetsTokensIn(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens.csv")
	if err := os.WriteFile(tokens, []byte("secret,ann,1,\"system:masters\"\nother,bob,2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startServe(t, "--storage", "memory", "--token-auth-file", tokens)
	defer s.stop(t)
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(s.dataDir, adminKubeconfig))
	if err != nil {
		t.Fatal(err)
	}
	for token, want := range map[string]int{"secret": 200, "other": 403, "unknown": 401, "": 403} {
		with := rest.AnonymousClientConfig(config)
		with.BearerToken = token
		c, err := rest.HTTPClientFor(with)
		if err != nil {
			t.Fatal(err)
		}
		if code := status(t, c, http.MethodGet, config.Host+"/api/v1/nodes", ""); code != want {
			t.Errorf("token %q gets %d, not %d", token, code, want)
		}
	}
}

func TestServeSaysWhyItCannot(t *testing.T) {
	s := startServe(t)
	defer s.stop(t)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("a,b"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		args []string
		want string
	}{
		"address taken":    {[]string{"--listen", "127.0.0.1:x"}, "--listen"},
		"directory in use": {[]string{"--listen", "127.0.0.1:0", "--data-dir", s.dataDir}, "in use"},
		"bad token file":   {[]string{"--listen", "127.0.0.1:0", "--data-dir", t.TempDir(), "--token-auth-file", file}, file},
		"no etcd":          {[]string{"--listen", "127.0.0.1:0", "--data-dir", t.TempDir(), "--storage", "etcd", "--etcd-endpoints", "http://127.0.0.1:1"}, "127.0.0.1:1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			code := Execute(t.Context(), append([]string{"serve"}, tt.args...), nil, &bytes.Buffer{}, &stderr)
			if code != ExitFailure || !strings.Contains(stderr.String(), tt.want) {
				t.Errorf("exit code %d, stderr %q", code, stderr.String())
			}
		})
	}
}
