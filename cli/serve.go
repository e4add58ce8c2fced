package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/even-keel/evenkeel/server"
	"github.com/even-keel/evenkeel/server/auth"
	"github.com/even-keel/evenkeel/server/bootstrap"
	"github.com/even-keel/evenkeel/storage"
	"github.com/even-keel/evenkeel/storage/embedded"
	"github.com/even-keel/evenkeel/storage/etcd"
)

// serveFlags are what `evenkeel serve` can be told.
type serveFlags struct {
	dataDir    string
	listen     string
	kubeconfig string
	storage    choice
	etcd       etcd.Options
	etcdFiles  etcd.TLSFiles
	compact    time.Duration
	tokenFile  string
	plane      *planeFlags
}

func newServe(a *app) *cobra.Command {
	f := &serveFlags{storage: newChoice("embedded", "embedded", "memory", "etcd")}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the control plane",
		Long: `Serve runs the control plane in one process: the Kubernetes API on the built-in
kinds and on custom resources, the controllers, the scheduler, and nodes. It makes
its certificates on the first start, writes a kubeconfig for its administrator, and
prints how to use it.

Nodes are simulated: pods go through their life, and nothing runs. With --runtime
process this machine is the node, and containers' commands run on it as processes,
with your rights: they need no image, and are isolated by nothing.`,
		Example: `  evenkeel serve                                   data in ` + "~/.local/share/evenkeel" + `
  evenkeel serve --nodes 500                       a large cluster, simulated
  evenkeel serve --runtime process                 pods are processes of this machine
  evenkeel serve --controllers '*,-cronjob'        all controllers but one
  evenkeel serve --controllers none --nodes 0      the API alone
  evenkeel serve --storage memory --listen 127.0.0.1:0
  evenkeel serve --storage etcd --etcd-endpoints https://10.0.0.5:2379 --etcd-cafile ca.pem`,
		Args: noArgs,
		RunE: run(func(cmd *cobra.Command) error { return serve(cmd.Context(), a.logger(), cmd.OutOrStdout(), f) }),
	}
	flags := cmd.Flags()
	dataDir, _ := defaultDataDir(os.Getenv) // without one the flag must be given
	flags.StringVar(&f.dataDir, "data-dir", dataDir, "where certificates, kubeconfig and the embedded store are kept")
	flags.StringVar(&f.listen, "listen", "127.0.0.1:6443", "the host and port to listen on; port 0 takes a free one")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "where to write the administrator's kubeconfig (default DATA-DIR/"+adminKubeconfig+")")
	flags.Var(&f.storage, "storage", "where objects are kept")
	flags.StringSliceVar(&f.etcd.Endpoints, "etcd-endpoints", nil, "URLs of the etcd cluster, with --storage etcd")
	flags.StringVar(&f.etcd.Prefix, "etcd-prefix", "", "what all keys in etcd begin with (default /evenkeel/)")
	flags.StringVar(&f.etcdFiles.CA, "etcd-cafile", "", "the CA that etcd's certificates are checked against")
	flags.StringVar(&f.etcdFiles.Cert, "etcd-certfile", "", "the client certificate for etcd")
	flags.StringVar(&f.etcdFiles.Key, "etcd-keyfile", "", "the key of the client certificate for etcd")
	flags.DurationVar(&f.compact, "etcd-compaction-interval", 5*time.Minute, "how often older revisions are dropped from etcd; 0 leaves that to etcd")
	flags.StringVar(&f.tokenFile, "token-auth-file", "", "a CSV file of token,user,uid,\"group1,group2\"")
	f.plane = newPlaneFlags(flags)
	return cmd
}

// gcPercent is how much garbage a server lets lie before it collects, unless GOGC
// says otherwise: a good part of what a write costs is to collect what it left.
const gcPercent = 200

// serve runs the control plane until ctx ends.
func serve(ctx context.Context, log *slog.Logger, out io.Writer, f *serveFlags) (err error) {
	started := time.Now()
	if os.Getenv("GOGC") == "" {
		defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	}
	if f.dataDir == "" {
		return nextStep{errors.New("serve: there is no home directory to keep data in"), "Say where with --data-dir."}
	}
	plane, err := f.plane.open(f.storage.value == "etcd", log)
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	defer plane.close()
	listener, err := net.Listen("tcp", f.listen)
	if err != nil {
		return nextStep{fmt.Errorf("serve: %w", err), "Is another server running? Choose another address with --listen, for example --listen 127.0.0.1:0."}
	}
	defer func() { _ = listener.Close() }()
	store, err := f.openStore(ctx, log)
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()

	config, credentials, err := f.config(listener, log)
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	if err := plane.build(credentials, inProcess(credentials, urlOf(listener)), f.dataDir); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	if config.Nodes, err = findAgents(credentials, plane.here); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	config.Store = store
	if f.storage.value == "etcd" {
		config.CompactEvery = f.compact
	}
	release := func() {
		runtime.GC() // twice in all: pools keep what they hold through one collection
		debug.FreeOSMemory()
		if err := releaseProgram(); err != nil {
			log.Debug("memory that starting took was kept", "error", err)
		}
	}
	return runAll(ctx, server.New(config), plane, release, func() {
		if err := f.announce(out, listener, credentials); err != nil {
			log.Error("the kubeconfig was not written", "error", err)
		}
		log.Info("ready", "address", listener.Addr().String(), "storage", f.storage.value, "took", time.Since(started).Round(time.Millisecond).String())
	})
}

// settleAfter is when what starting took is given back: controllers have begun then.
const settleAfter = 2 * time.Second

// runAll runs the server, and the rest once it is ready, until ctx ends or one fails.
// The server outlives the rest, which still writes while it ends.
func runAll(ctx context.Context, s *server.Server, p *plane, release, ready func()) error {
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	done := make(chan error, 1)
	go func() { done <- s.Run(serving) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		stop()
		return <-done
	case <-s.Ready():
	}
	ready()
	release()
	settled := time.NewTimer(settleAfter)
	defer settled.Stop()
	ctx, end := context.WithCancel(ctx)
	defer end()
	planned := make(chan error, 1)
	go func() { planned <- p.run(ctx) }()
	for {
		select {
		case <-settled.C:
			release()
		case err := <-done: // the rest has nobody left to talk to
			end()
			<-planned
			return err
		case err := <-planned:
			stop()
			return errors.Join(err, <-done)
		}
	}
}

func (f *serveFlags) openStore(ctx context.Context, log *slog.Logger) (storage.Store, error) {
	switch f.storage.value {
	case "memory":
		return embedded.Open(embedded.Options{Memory: true, Logger: log})
	case "etcd":
		if len(f.etcd.Endpoints) == 0 {
			return nil, nextStep{errors.New("--storage etcd needs to know where etcd is"), "Say so with --etcd-endpoints, for example --etcd-endpoints http://127.0.0.1:2379."}
		}
		var err error
		if f.etcd.TLS, err = f.etcdFiles.Config(); err != nil {
			return nil, err
		}
		return etcd.Open(ctx, f.etcd)
	}
	return embedded.Open(embedded.Options{Dir: filepath.Join(f.dataDir, "store"), Logger: log})
}

// config says who is let in, and what is there from the start.
func (f *serveFlags) config(listener net.Listener, log *slog.Logger) (server.Config, *auth.Credentials, error) {
	listens, err := netip.ParseAddrPort(listener.Addr().String())
	if err != nil {
		return server.Config{}, nil, err
	}
	credentials, err := auth.OpenCredentials(filepath.Join(f.dataDir, "pki"), auth.CredentialOptions{Hosts: []string{listens.Addr().String()}})
	if err != nil {
		return server.Config{}, nil, err
	}
	tokens, err := auth.NewTokenIssuer(auth.IssuerOptions{Key: credentials.SigningKey})
	if err != nil {
		return server.Config{}, nil, err
	}
	checkers := []auth.TokenChecker{tokens}
	if f.tokenFile != "" {
		static, err := auth.ReadTokenFile(f.tokenFile)
		if err != nil {
			return server.Config{}, nil, err
		}
		checkers = append([]auth.TokenChecker{static}, checkers...)
	}
	first := bootstrap.All(bootstrap.Options{
		ClientCA: credentials.CAPEM, RootCA: credentials.CAPEM,
		AdvertiseAddress: advertised(listens.Addr()), Port: int32(listens.Port()),
	})
	documents, err := openID(tokens, listener)
	return server.Config{
		Listener:      listener,
		TLS:           auth.ServerTLS(credentials.Serving, credentials.Pool()),
		Authenticator: auth.Union(auth.ClientCertificates(time.Now), auth.BearerTokens(checkers...)),
		Authorizer:    auth.MastersOnly(),
		Tokens:        tokens,
		ReviewToken:   auth.Review(tokens, checkers...),
		Documents:     documents,
		Bootstrap:     first,
		Version:       readVersion().Info,
		Logger:        log,
	}, credentials, err
}

// advertised is where other machines reach an address that is listened on; the
// zero address if they cannot.
func advertised(listens netip.Addr) netip.Addr {
	if !listens.IsUnspecified() {
		if listens.IsLoopback() {
			return netip.Addr{}
		}
		return listens.Unmap()
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return netip.Addr{}
	}
	for _, a := range addresses {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().IsGlobalUnicast() {
			return p.Addr().Unmap()
		}
	}
	return netip.Addr{}
}

// openID returns the documents by which others verify our tokens.
func openID(tokens *auth.TokenIssuer, listener net.Listener) (map[string][]byte, error) {
	const keysPath = "/openid/v1/jwks"
	keys, err := tokens.JWKS()
	if err != nil {
		return nil, err
	}
	configuration, err := tokens.OpenIDConfiguration("https://" + listener.Addr().String() + keysPath)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{keysPath: keys, "/.well-known/openid-configuration": configuration}, nil
}

// announce writes the kubeconfig and says how to use it.
func (f *serveFlags) announce(out io.Writer, listener net.Listener, credentials *auth.Credentials) error {
	path := f.kubeconfig
	if path == "" {
		path = filepath.Join(f.dataDir, adminKubeconfig)
	}
	url := urlOf(listener)
	if err := auth.WriteKubeconfig(path, credentials.Kubeconfig(url)); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "Serving the Kubernetes API at %s\n\n  export KUBECONFIG=%s\n  kubectl get namespaces\n\n", url, quoted(path))
	return err
}

// urlOf is that of the server which listens.
func urlOf(l net.Listener) string { return "https://" + reachable(l.Addr().String()) }

// reachable turns the address of all interfaces into one that can be dialled.
func reachable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// quoted is a path as a shell wants it.
func quoted(path string) string {
	if strings.ContainsAny(path, " '\"$&;()*?") {
		return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	return path
}
