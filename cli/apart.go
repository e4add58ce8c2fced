package cli

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controllers"
	"github.com/even-keel/evenkeel/leader"
	"github.com/even-keel/evenkeel/manager"
	"github.com/even-keel/evenkeel/server/auth"
)

// apartFlags are those of parts of the control plane that run for themselves.
type apartFlags struct {
	cluster client.ConfigOptions
	listen  string
	elect   bool
	lease   time.Duration
}

// newApartFlags gives a command the flags; lease is the default of the election, zero
// for what is never elected.
func newApartFlags(f *pflag.FlagSet, elected bool) *apartFlags {
	a := &apartFlags{}
	f.StringVar(&a.cluster.Kubeconfig, "kubeconfig", "", "the kubeconfig of the cluster (default: as kubectl finds it, or the local evenkeel's)")
	f.StringVar(&a.cluster.Context, "context", "", "the context of the kubeconfig")
	if elected {
		f.StringVar(&a.listen, "listen", "", "the address for health, metrics and /debug/evenkeel, such as :8080 (default: none)")
		f.BoolVar(&a.elect, "leader-elect", true, "have one of several processes work, and the others stand by")
		f.DurationVar(&a.lease, "lease-duration", 15*time.Second, "how long the others wait for a leader that tells nothing")
	}
	return a
}

// manager returns one for a component, and the cluster that it is for.
func (a *apartFlags) manager(component string, log *slog.Logger) (*manager.Manager, *rest.Config, error) {
	config, err := client.LoadConfig(a.cluster)
	if errors.Is(err, client.ErrNoConfig) {
		return nil, nil, nextStep{err, "Start a server with 'evenkeel serve', or name a cluster with --kubeconfig."}
	}
	if err != nil {
		return nil, nil, err
	}
	config.UserAgent = component
	o := manager.Options{Config: config, Listen: a.listen, Logger: log, Grace: planeGrace}
	if a.elect {
		o.Leader = &leader.Options{Namespace: "kube-system", Name: component, LeaseDuration: a.lease}
	}
	m, err := manager.New(o)
	return m, config, err
}

func newControllers(a *app) *cobra.Command {
	var chosen []string
	cmd := &cobra.Command{
		Use:   "controllers",
		Short: "Run the built-in controllers against any cluster",
		Long: `Controllers runs the built-in controllers in a process of their own, against a
server that has none: 'evenkeel serve --controllers none', or kube-apiserver. Of
several such processes one works; when it ends, another goes on.`,
		Example: `  evenkeel controllers --kubeconfig admin.kubeconfig
  evenkeel controllers --controllers '*,-cronjob' --listen :8080`,
		Args: noArgs,
	}
	f := newApartFlags(cmd.Flags(), true)
	controllersFlag(cmd.Flags(), &chosen, controllers.Names())
	cmd.RunE = run(func(cmd *cobra.Command) error {
		names, err := controllers.Choose(chosen, controllers.Names())
		if err != nil {
			return fmt.Errorf("--controllers: %w", err)
		}
		m, config, err := f.manager("evenkeel-controllers", a.logger())
		if err != nil {
			return fmt.Errorf("controllers: %w", err)
		}
		ca, err := rootCA(config)
		if err != nil {
			return fmt.Errorf("controllers: %w", err)
		}
		if err := controllers.Add(m, names, controllers.Options{RootCA: ca}); err != nil {
			return fmt.Errorf("controllers: %w", err)
		}
		return m.Run(cmd.Context())
	})
	return cmd
}

// rootCA is what the server's certificate is checked against.
func rootCA(config *rest.Config) ([]byte, error) {
	if len(config.CAData) > 0 || config.CAFile == "" {
		return config.CAData, nil
	}
	return os.ReadFile(config.CAFile)
}

func newScheduler(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "scheduler",
		Short: "Run the scheduler against any cluster",
		Long: `Scheduler places pods on nodes, in a process of its own, for a server that has no
scheduler: 'evenkeel serve --controllers *,-scheduler', or kube-apiserver. Of
several such processes one works; when it ends, another goes on.`,
		Example: `  evenkeel scheduler --kubeconfig admin.kubeconfig`,
		Args:    noArgs,
	}
	f := newApartFlags(cmd.Flags(), true)
	cmd.RunE = run(func(cmd *cobra.Command) error {
		m, _, err := f.manager("evenkeel-scheduler", a.logger())
		if err != nil {
			return fmt.Errorf("scheduler: %w", err)
		}
		addScheduler(m, a.logger())
		return m.Run(cmd.Context())
	})
	return cmd
}

// nodeFlags are those of `evenkeel node`.
type nodeFlags struct {
	*apartFlags
	*agentFlags
	listen  string
	dataDir string
}

func newNode(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "node",
		Short: "Be one node of any cluster, or many simulated ones",
		Long: `Node registers one node or many at a server, keeps them alive and runs their pods:
simulated, so that nothing runs, or as processes of this machine, which are isolated
by nothing. The API server asks it for logs at --listen; nobody else is let in.`,
		Example: `  evenkeel node --kubeconfig admin.kubeconfig --nodes 100 --node-name sim
  evenkeel node --runtime process --listen 0.0.0.0:10250`,
		Args: noArgs,
	}
	f := &nodeFlags{apartFlags: newApartFlags(cmd.Flags(), false), agentFlags: newAgentFlags(cmd.Flags())}
	dataDir, _ := defaultDataDir(os.Getenv)
	cmd.Flags().StringVar(&f.dataDir, "data-dir", dataDir, "where pods of processes have their files")
	cmd.Flags().StringVar(&f.listen, "listen", "127.0.0.1:0", "the host and port at which the API server asks for logs; port 0 takes a free one")
	cmd.RunE = run(func(cmd *cobra.Command) error { return runNode(cmd.Context(), f, a.logger()) })
	return cmd
}

func runNode(ctx context.Context, f *nodeFlags, log *slog.Logger) error {
	if f.nodes == 0 {
		return errors.New("node: --nodes 0 is no node")
	}
	if f.dataDir == "" {
		return nextStep{errors.New("node: there is no home directory to keep pods in"), "Say where with --data-dir."}
	}
	m, _, err := f.manager("evenkeel-node", log)
	if err != nil {
		return fmt.Errorf("node: %w", err)
	}
	listener, err := net.Listen("tcp", f.listen)
	if err != nil {
		return nextStep{fmt.Errorf("node: %w", err), "Choose another address with --listen, for example --listen 127.0.0.1:0."}
	}
	defer func() { _ = listener.Close() }()
	if err := f.addTo(ctx, m, listener, log); err != nil {
		return fmt.Errorf("node: %w", err)
	}
	return m.Run(ctx)
}

// addTo has the manager run the agent, with a certificate that its nodes tell of.
func (f *nodeFlags) addTo(ctx context.Context, m *manager.Manager, l net.Listener, log *slog.Logger) error {
	listens, err := netip.ParseAddrPort(l.Addr().String())
	if err != nil {
		return err
	}
	own, err := auth.NewCredentials(auth.CredentialOptions{})
	if err != nil {
		return err
	}
	nodes, err := f.named(map[string]string{fingerprintAnnotation: fingerprintOf(own.Serving.Certificate[0])})
	if err != nil {
		return err
	}
	clients, err := clientCA(ctx, m)
	if err != nil {
		return err
	}
	address := listens.Addr()
	if address.IsUnspecified() {
		address = advertised(address)
	}
	return f.add(m, nodes, l, agentOptions{
		folder: podsFolder(f.dataDir), address: address.String(), tls: apiServerOnly(own.Serving, clients), log: log,
	})
}

// clientCA are those who vouch for the API server, which it tells to all that it
// calls.
func clientCA(ctx context.Context, m *manager.Manager) (*x509.CertPool, error) {
	key := client.Key{Namespace: "kube-system", Name: "extension-apiserver-authentication"}
	told, err := client.Of[*corev1.ConfigMap](m.Conn()).Get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("whom the API server's certificate is from: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(told.Data["client-ca-file"])) {
		return nil, fmt.Errorf("ConfigMap %s has no client-ca-file", key)
	}
	return pool, nil
}
