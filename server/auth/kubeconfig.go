package auth

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// contextName is the name of all that is in an admin kubeconfig.
const contextName = "evenkeel"

// Kubeconfig is what a client needs to reach a server as an administrator.
type Kubeconfig struct {
	// Server is the URL, such as https://127.0.0.1:6443.
	Server string
	// CAPEM verifies the server; CertPEM and KeyPEM identify the client.
	CAPEM, CertPEM, KeyPEM []byte
}

// Kubeconfig is the administrator's, for a server at a URL.
func (c *Credentials) Kubeconfig(server string) Kubeconfig {
	return Kubeconfig{Server: server, CAPEM: c.CAPEM, CertPEM: c.AdminCertPEM, KeyPEM: c.AdminKeyPEM}
}

// The parts of the file that are ours; see k8s.io/client-go/tools/clientcmd.
type (
	configFile struct {
		APIVersion string         `json:"apiVersion"`
		Kind       string         `json:"kind"`
		Clusters   []clusterEntry `json:"clusters"`
		Users      []userEntry    `json:"users"`
		Contexts   []contextEntry `json:"contexts"`
		Current    string         `json:"current-context"`
	}
	clusterEntry struct {
		Name    string  `json:"name"`
		Cluster cluster `json:"cluster"`
	}
	cluster struct {
		CA     []byte `json:"certificate-authority-data"`
		Server string `json:"server"`
	}
	userEntry struct {
		Name string     `json:"name"`
		User clientAuth `json:"user"`
	}
	clientAuth struct {
		Cert []byte `json:"client-certificate-data"`
		Key  []byte `json:"client-key-data"`
	}
	contextEntry struct {
		Name    string            `json:"name"`
		Context map[string]string `json:"context"`
	}
)

// Encode returns the file, YAML.
func (k Kubeconfig) Encode() ([]byte, error) {
	return yaml.Marshal(configFile{
		APIVersion: "v1",
		Kind:       "Config",
		Clusters:   []clusterEntry{{contextName, cluster{k.CAPEM, k.Server}}},
		Users:      []userEntry{{contextName, clientAuth{k.CertPEM, k.KeyPEM}}},
		Contexts:   []contextEntry{{contextName, map[string]string{"cluster": contextName, "user": contextName}}},
		Current:    contextName,
	})
}

// WriteKubeconfig replaces a file, whole or not at all, with mode 0600; it makes
// the folder if need be. A file with contexts other than evenkeel's is somebody
// else's: it stays as it is, and the error wraps ErrForeign.
func WriteKubeconfig(path string, k Kubeconfig) error {
	content, err := k.Encode()
	if err != nil {
		return fmt.Errorf("write kubeconfig %s: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	if err := refuseForeign(path); err != nil {
		return fmt.Errorf("write kubeconfig %s: %w", path, err)
	}
	if err := writeFile(path, content, lasting); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}

func refuseForeign(path string) error {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var there struct {
		Contexts []struct {
			Name string `json:"name"`
		} `json:"contexts"`
	}
	if err := yaml.Unmarshal(content, &there); err != nil {
		return fmt.Errorf("%w, and not YAML: name another file", ErrForeign)
	}
	for _, c := range there.Contexts {
		if c.Name != contextName {
			return fmt.Errorf("it has the context %q: %w: name another file", c.Name, ErrForeign)
		}
	}
	return nil
}
