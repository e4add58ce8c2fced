package cli

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/even-keel/evenkeel/server/auth"
	"github.com/even-keel/evenkeel/server/rest"
)

// fingerprintAnnotation is where an agent with a certificate of its own making tells
// its SHA-256, so that the API server knows it. Who may write nodes vouches for it.
const fingerprintAnnotation = "evenkeel.dev/agent-certificate"

// apiServerUser is who the API server is for the agents of nodes.
const apiServerUser = "kube-apiserver-kubelet-client"

// findAgents returns how the API server reaches the agents of nodes: those of this
// process where here says, others where their nodes do.
func findAgents(c *auth.Credentials, here func(node string) (address string, ok bool)) (rest.Nodes, error) {
	cert, key, err := c.IssueClient(apiServerUser, auth.GroupMasters)
	if err != nil {
		return nil, err
	}
	own, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, err
	}
	trusted := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{own}, RootCAs: c.Pool()}
	return func(node *corev1.Node) (*url.URL, http.RoundTripper, error) {
		config := trusted
		address, local := here(node.Name)
		if !local {
			var err error
			if address, err = agentAddress(node); err != nil {
				return nil, nil, err
			}
			if want := node.Annotations[fingerprintAnnotation]; want != "" {
				config = pinned(trusted, want)
			}
		}
		return &url.URL{Scheme: "https", Host: address}, &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}, nil
	}, nil
}

// pinned trusts the one certificate that has this fingerprint, whoever signed it.
func pinned(config *tls.Config, fingerprint string) *tls.Config {
	config = config.Clone()
	config.InsecureSkipVerify = true // for VerifyConnection, which is stricter
	config.VerifyConnection = func(s tls.ConnectionState) error {
		if got := fingerprintOf(s.PeerCertificates[0].Raw); got != fingerprint {
			return fmt.Errorf("its certificate is %s, and its node tells of %s", got, fingerprint)
		}
		return nil
	}
	return config
}

func fingerprintOf(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// agentAddress is where a node says that its agent is.
func agentAddress(node *corev1.Node) (string, error) {
	port := node.Status.DaemonEndpoints.KubeletEndpoint.Port
	if port == 0 {
		return "", fmt.Errorf("node %q serves no logs", node.Name)
	}
	for _, kind := range []corev1.NodeAddressType{
		corev1.NodeInternalIP, corev1.NodeExternalIP, corev1.NodeInternalDNS, corev1.NodeExternalDNS, corev1.NodeHostName,
	} {
		i := slices.IndexFunc(node.Status.Addresses, func(a corev1.NodeAddress) bool { return a.Type == kind })
		if i >= 0 {
			return net.JoinHostPort(node.Status.Addresses[i].Address, strconv.Itoa(int(port))), nil
		}
	}
	return "", fmt.Errorf("node %q has no address", node.Name)
}
