package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/even-keel/evenkeel/manager"
	"github.com/even-keel/evenkeel/node"
	"github.com/even-keel/evenkeel/node/process"
	"github.com/even-keel/evenkeel/node/simulated"
	"github.com/even-keel/evenkeel/server/auth"
)

// agentFlags say which nodes a process stands for.
type agentFlags struct {
	nodes   int
	name    string
	runtime choice
}

func newAgentFlags(f *pflag.FlagSet) *agentFlags {
	a := &agentFlags{runtime: newChoice("simulated", "simulated", "process")}
	f.IntVar(&a.nodes, "nodes", 1, "how many nodes to stand for")
	f.StringVar(&a.name, "node-name", "", "what nodes are called: simulated ones NAME-1, NAME-2... (default node), a node of processes NAME (default the host's name)")
	f.Var(&a.runtime, "runtime", "how pods run: simulated runs nothing, process runs the commands of containers on this machine, isolated by nothing")
	return a
}

// named are the nodes, with what they are registered with.
func (a *agentFlags) named(annotations map[string]string) ([]node.Node, error) {
	switch {
	case a.nodes < 0:
		return nil, fmt.Errorf("--nodes %d: there cannot be fewer than none", a.nodes)
	case a.nodes > 1 && a.runtime.value == "process":
		return nil, fmt.Errorf("--nodes %d --runtime process: this machine is one node; only simulated nodes can be many", a.nodes)
	case a.nodes > 0 && a.runtime.value == "process":
		host, err := os.Hostname()
		if err != nil && a.name == "" {
			return nil, nextStep{err, "Say what the node is called with --node-name."}
		}
		return []node.Node{{Name: cmp.Or(a.name, strings.ToLower(host)), Annotations: annotations}}, nil
	}
	nodes := make([]node.Node, a.nodes)
	for i := range nodes {
		nodes[i] = node.Node{Name: fmt.Sprintf("%s-%d", cmp.Or(a.name, "node"), i+1), Annotations: annotations}
	}
	return nodes, nil
}

// add has a manager run the agent, which answers what the API server asks at a
// listener.
func (a *agentFlags) add(m *manager.Manager, nodes []node.Node, l net.Listener, o agentOptions) error {
	rt, err := a.open(l, o)
	if err != nil {
		return err
	}
	agent := node.New(m, m.Events("kubelet"), rt, node.Options{Nodes: nodes, Logger: o.log})
	m.Add(agent.Controllers()...)
	m.Go("node agent", agent.Run)
	m.Go("node server", func(ctx context.Context) error { return serveAgent(ctx, l, o.tls, agent.Handler(), o.log) })
	return nil
}

// agentOptions are what an agent needs besides its nodes.
type agentOptions struct {
	// folder is where pods of processes have their files, address where the agent
	// is reached.
	folder  string
	address string
	tls     *tls.Config
	log     *slog.Logger
}

func (a *agentFlags) open(l net.Listener, o agentOptions) (node.Runtime, error) {
	at, err := netip.ParseAddrPort(l.Addr().String())
	if err != nil {
		return nil, err
	}
	port := int32(at.Port())
	if a.runtime.value == "process" {
		return process.Open(process.Options{Folder: o.folder, Address: o.address, Port: port, Logger: o.log})
	}
	return simulated.New(simulated.Options{Address: o.address, Port: port}), nil
}

// podsFolder is where a local node of processes keeps its pods.
func podsFolder(dataDir string) string { return filepath.Join(dataDir, "node") }

// apiServerOnly lets in API servers, which identify themselves by certificates of
// the cluster's administrators.
func apiServerOnly(serving tls.Certificate, clients *x509.CertPool) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{serving},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients,
		VerifyConnection: func(s tls.ConnectionState) error {
			if who := s.PeerCertificates[0].Subject; !slices.Contains(who.Organization, auth.GroupMasters) {
				return fmt.Errorf("%q is not an API server", who.CommonName)
			}
			return nil
		},
	}
}

// serveAgent answers until ctx ends. Streams that are open then end too.
func serveAgent(ctx context.Context, l net.Listener, config *tls.Config, h http.Handler, log *slog.Logger) error {
	s := &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		// Streams of exec and port-forward take over connections, as HTTP/2 cannot.
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(tls.NewListener(l, config)) }()
	select {
	case err := <-done:
		return fmt.Errorf("serve logs at %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	err := s.Close()
	if served := <-done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
