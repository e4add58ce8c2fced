package auth

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

func TestKubeconfigLetsClientsIn(t *testing.T) {
	c := mustCredentials(t, CredentialOptions{})
	web := tlsServer(t, c, c.now)
	path := filepath.Join(t.TempDir(), "deep", "admin.kubeconfig")
	if err := WriteKubeconfig(path, c.Kubeconfig(web.URL)); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if config.CurrentContext != "evenkeel" || len(config.Contexts) != 1 {
		t.Errorf("context is %q of %d", config.CurrentContext, len(config.Contexts))
	}
	rest, err := clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	if rest.Host != web.URL || string(rest.CAData) != string(c.CAPEM) {
		t.Errorf("host %q, CA %q", rest.Host, rest.CAData)
	}
	got, err := whoami(t, web, c, rest.CertData, rest.KeyData)
	if want := "kubernetes-admin system:masters,system:authenticated"; got != want || err != nil {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}

func TestKubeconfigIsReplacedWhole(t *testing.T) {
	c := mustCredentials(t, CredentialOptions{})
	path := filepath.Join(t.TempDir(), "config")
	for _, url := range []string{"https://one", "https://two"} {
		if err := WriteKubeconfig(path, c.Kubeconfig(url)); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(path)
		if err != nil || strings.Count(string(content), url) != 1 || strings.Count(string(content), "server:") != 1 {
			t.Errorf("%v:\n%s", err, content)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

func TestKubeconfigOfOthersStays(t *testing.T) {
	c := mustCredentials(t, CredentialOptions{})
	tests := map[string]struct {
		content string
		foreign bool
	}{
		"another cluster's":  {"apiVersion: v1\nkind: Config\ncontexts:\n- name: evenkeel\n- name: production\n", true},
		"not a kubeconfig":   {"\tdear diary", true},
		"empty":              {"", false},
		"ours, with changes": {"apiVersion: v1\nkind: Config\ncontexts:\n- name: evenkeel\n  context: {namespace: shop}\n", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "config")
			if err := os.WriteFile(path, []byte(tt.content), 0o644); err != nil {
				t.Fatal(err)
			}
			err := WriteKubeconfig(path, c.Kubeconfig("https://x"))
			if errors.Is(err, ErrForeign) != tt.foreign || err != nil && !strings.Contains(err.Error(), path) {
				t.Errorf("got %v", err)
			}
			after, readErr := os.ReadFile(path)
			if readErr != nil || (string(after) == tt.content) != tt.foreign {
				t.Errorf("the file is now, %v:\n%s", readErr, after)
			}
		})
	}
}

func TestLoadGivenFiles(t *testing.T) {
	dir := t.TempDir()
	c := mustOpen(t, dir, CredentialOptions{})
	path := func(name string) string { return filepath.Join(dir, name) }
	write := func(name string, blocks ...*pem.Block) string {
		var content []byte
		for _, b := range blocks {
			content = append(content, pem.EncodeToMemory(b)...)
		}
		if err := os.WriteFile(path(name), content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path(name)
	}
	ecDER, err := x509.MarshalECPrivateKey(c.SigningKey.(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	publicDER, err := x509.MarshalPKIXPublicKey(c.SigningKey.Public())
	if err != nil {
		t.Fatal(err)
	}
	params := &pem.Block{Type: "EC PARAMETERS", Bytes: []byte{1}} // openssl puts them first
	sec1 := write("sec1.key", params, &pem.Block{Type: "EC PRIVATE KEY", Bytes: ecDER})
	pkcs1 := write("pkcs1.key", &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(rsaKey)})
	public := write("public.pem", &pem.Block{Type: "PUBLIC KEY", Bytes: publicDER},
		&pem.Block{Type: "RSA PUBLIC KEY", Bytes: x509.MarshalPKCS1PublicKey(&rsaKey.PublicKey)})

	if _, err := LoadServing(path("apiserver.crt"), path("apiserver.key")); err != nil {
		t.Error(err)
	}
	if _, err := LoadServing(path("apiserver.crt"), path("admin.key")); err == nil || !strings.Contains(err.Error(), "admin.key") {
		t.Errorf("a key that does not fit: %v", err)
	}
	if _, err := LoadClientCA(path("ca.crt")); err != nil {
		t.Error(err)
	}
	if _, err := LoadClientCA(path("ca.key")); err == nil || !strings.Contains(err.Error(), "ca.key has no certificate") {
		t.Errorf("a CA without a certificate: %v", err)
	}
	for _, file := range []string{path("sa.key"), sec1, pkcs1} {
		if key, err := LoadSigningKey(file); err != nil || key == nil {
			t.Errorf("%s: %v", file, err)
		}
		if keys, err := LoadPublicKeys(file); err != nil || len(keys) != 1 {
			t.Errorf("%s: %d keys, %v", file, len(keys), err)
		}
	}
	if _, err := LoadSigningKey(public); err == nil || !strings.Contains(err.Error(), public+" has no PEM block with a private key") {
		t.Errorf("a public key to sign with: %v", err)
	}
	if keys, err := LoadPublicKeys(public); err != nil || len(keys) != 2 {
		t.Errorf("%d keys, %v", len(keys), err)
	}
	if keys, err := LoadPublicKeys(path("ca.crt")); err != nil || len(keys) != 1 || !samePublic(keys[0], c.CA.PublicKey) {
		t.Errorf("a certificate's key: %d keys, %v", len(keys), err)
	}
}
