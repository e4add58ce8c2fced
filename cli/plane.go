package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/controllers"
	"github.com/even-keel/evenkeel/leader"
	"github.com/even-keel/evenkeel/manager"
	"github.com/even-keel/evenkeel/node"
	"github.com/even-keel/evenkeel/scheduler"
	"github.com/even-keel/evenkeel/server/auth"
)

// schedulerName is the scheduler's in the list of what a control plane runs.
const schedulerName = "scheduler"

// planeGrace is how long controllers and nodes may take to end.
const planeGrace = 20 * time.Second

// planeFlags say what `evenkeel serve` runs beside the API server.
type planeFlags struct {
	controllers []string
	agent       *agentFlags
}

func newPlaneFlags(f *pflag.FlagSet) *planeFlags {
	p := &planeFlags{agent: newAgentFlags(f)}
	controllersFlag(f, &p.controllers, planeNames())
	return p
}

// planeNames is all that --controllers of serve knows.
func planeNames() []string {
	names := append(controllers.Names(), schedulerName)
	slices.Sort(names)
	return names
}

func controllersFlag(f *pflag.FlagSet, to *[]string, known []string) {
	f.StringSliceVar(to, "controllers", []string{"*"}, "which controllers run, of "+strings.Join(known, ", ")+"; * is all, -NAME leaves one out, none is none")
}

// plane is what one process runs beside its API server.
type plane struct {
	names []string // of controllers
	nodes []node.Node
	agent *agentFlags
	// at is where the agent listens, if there are nodes.
	at       net.Listener
	elect    bool
	log      *slog.Logger
	managers []*manager.Manager
	// local is the manager that the nodes are on.
	local *manager.Manager
}

// open finds out what there is to run. It takes a port, and sends nothing.
func (f *planeFlags) open(elect bool, log *slog.Logger) (*plane, error) {
	names, err := controllers.Choose(f.controllers, planeNames())
	if err != nil {
		return nil, fmt.Errorf("--controllers: %w", err)
	}
	p := &plane{names: names, agent: f.agent, elect: elect, log: log}
	if p.nodes, err = f.agent.named(nil); err != nil || len(p.nodes) == 0 {
		return p, err
	}
	p.at, err = net.Listen("tcp", "127.0.0.1:0")
	return p, err
}

// close gives the port back, if nobody has run.
func (p *plane) close() {
	if p.at != nil {
		_ = p.at.Close()
	}
}

// here tells where the agent of a node listens, if it is this process's.
func (p *plane) here(name string) (string, bool) {
	if p.local == nil || !p.local.Leading() || !slices.ContainsFunc(p.nodes, func(n node.Node) bool { return n.Name == name }) {
		return "", false
	}
	return p.at.Addr().String(), true
}

// build makes the managers of all that there is to run.
func (p *plane) build(c *auth.Credentials, config *rest.Config, folder string) error {
	if len(p.names)+len(p.nodes) == 0 {
		return nil
	}
	m, err := p.manager(config, p.elect)
	if err != nil {
		return err
	}
	names := p.names
	if i := slices.Index(names, schedulerName); i >= 0 {
		names = slices.Delete(slices.Clone(names), i, i+1)
		addScheduler(m, p.log)
	}
	if err := controllers.Add(m, names, controllers.Options{RootCA: c.CAPEM}); err != nil || len(p.nodes) == 0 {
		return err
	}
	// This machine is a node wherever the leader is; simulated nodes are where it is.
	if p.local = m; p.elect && p.agent.runtime.value == "process" {
		if p.local, err = p.manager(config, false); err != nil {
			return err
		}
	}
	return p.agent.add(p.local, p.nodes, p.at, agentOptions{
		folder: podsFolder(folder), tls: apiServerOnly(c.Serving, c.Pool()), log: p.log,
	})
}

func addScheduler(m *manager.Manager, log *slog.Logger) {
	s := scheduler.New(m.Base, m.Events("default-scheduler"), scheduler.Options{Logger: log})
	m.Go("scheduler", s.Run)
}

func (p *plane) manager(config *rest.Config, elect bool) (*manager.Manager, error) {
	o := manager.Options{Config: config, Logger: p.log, Grace: planeGrace}
	if elect {
		o.Leader = &leader.Options{Namespace: "kube-system", Name: "evenkeel"}
	}
	m, err := manager.New(o)
	if err == nil {
		p.managers = append(p.managers, m)
	}
	return m, err
}

// run runs all until ctx ends, which is not an error, or until one fails.
func (p *plane) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, len(p.managers))
	for _, m := range p.managers {
		go func() { done <- m.Run(ctx) }()
	}
	if len(p.managers) == 0 {
		<-ctx.Done()
	}
	var err error
	for range p.managers {
		err = errors.Join(err, <-done)
		stop()
	}
	return err
}

// inProcess is how controllers reach the API server of their own process.
func inProcess(c *auth.Credentials, url string) *rest.Config {
	return &rest.Config{
		Host: url, UserAgent: "evenkeel",
		TLSClientConfig: rest.TLSClientConfig{CAData: c.CAPEM, CertData: c.AdminCertPEM, KeyData: c.AdminKeyPEM},
	}
}
