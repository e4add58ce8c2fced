package manager

import (
	"flag"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/informer"
	"github.com/even-keel/evenkeel/leader"
)

// Options say how a manager works. The zero value is right for a program on a
// developer's machine; [Options.AddFlags] lets its user choose.
type Options struct {
	// Config is the cluster to talk to; nil is the one that [client.LoadConfig]
	// finds with Cluster.
	Config  *rest.Config
	Cluster client.ConfigOptions
	// Scheme tells the kinds of Go types that do not tell theirs.
	Scheme *runtime.Scheme
	// Leader has controllers run in one process only. Nil is no election.
	Leader *leader.Options
	// Listen is the address of the HTTP server, such as ":8080"; "" is none.
	Listen string
	// Grace is how long it may take to stop: 30 s. Reconciles that run may use two
	// thirds of it before their contexts end.
	Grace time.Duration
	// StaleAfter is how long an informer may be without its watch before the program
	// is not ready: 30 s.
	StaleAfter time.Duration
	// Logger hears of what happens; the default is [slog.Default].
	Logger *slog.Logger
	// Tracer has a span for each reconcile and each request; nil is none.
	Tracer trace.TracerProvider
	// Client are further options of the connection, Informers is how informers work.
	Client    []client.Option
	Informers informer.Config
	// Stale has clients not see what they wrote until the watch tells: for tests.
	Stale bool
}

// The defaults of [Options].
const (
	DefaultGrace      = 30 * time.Second
	DefaultStaleAfter = 30 * time.Second
)

func (o Options) withDefaults() Options {
	if o.Grace <= 0 {
		o.Grace = DefaultGrace
	}
	if o.StaleAfter <= 0 {
		o.StaleAfter = DefaultStaleAfter
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

// AddFlags has a program's user choose the cluster, the address and the election.
// Call it before flag.Parse, and [New] after it.
func (o *Options) AddFlags(f *flag.FlagSet) {
	f.StringVar(&o.Cluster.Kubeconfig, "kubeconfig", o.Cluster.Kubeconfig, "the kubeconfig `file` (default: as kubectl finds it, or the local evenkeel's)")
	f.StringVar(&o.Cluster.Context, "context", o.Cluster.Context, "the `context` of the kubeconfig")
	f.StringVar(&o.Listen, "listen", o.Listen, "the `address` for health, metrics and /debug/evenkeel, such as :8080 (default: none)")
	f.DurationVar(&o.Grace, "grace", DefaultGrace, "how long it may take to stop")
	f.Func("leader", "have one of several processes lead, by the Lease `namespace/name`", func(s string) error {
		namespace, name, ok := strings.Cut(s, "/")
		if !ok || namespace == "" || name == "" {
			return fmt.Errorf("%q is not of the form namespace/name", s)
		}
		if o.Leader == nil {
			o.Leader = &leader.Options{}
		}
		o.Leader.Namespace, o.Leader.Name = namespace, name
		return nil
	})
}
