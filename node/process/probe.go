package process

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	health "google.golang.org/grpc/health/grpc_health_v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/even-keel/evenkeel/node"
	"github.com/even-keel/evenkeel/node/remote"
)

// maxOutput is how much of an answer is told.
const maxOutput = 10 << 10

// Probe asks a container once: by a command, HTTP, TCP or gRPC.
func (r *Runtime) Probe(ctx context.Context, id node.PodID, name string, p node.Probe) error {
	c, err := r.running(id, name)
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	switch s := p.Spec; {
	case s.Exec != nil:
		return c.exec(ctx, s.Exec.Command)
	case s.HTTPGet != nil:
		return c.get(ctx, s.HTTPGet)
	case s.TCPSocket != nil:
		return c.dial(ctx, s.TCPSocket)
	case s.GRPC != nil:
		return c.grpc(ctx, s.GRPC)
	}
	return fmt.Errorf("the probe of container %s asks nothing", name)
}

// hook runs a hook of a container's life.
func (c *container) hook(ctx context.Context, h *corev1.LifecycleHandler) error {
	switch {
	case h.Exec != nil:
		return c.exec(ctx, h.Exec.Command)
	case h.HTTPGet != nil:
		return c.get(ctx, h.HTTPGet)
	case h.Sleep != nil:
		timer := time.NewTimer(time.Duration(h.Sleep.Seconds) * time.Second)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		case <-c.done:
		}
	}
	return nil
}

// exec runs a command beside the container's process, with its environment.
func (c *container) exec(ctx context.Context, command []string) error {
	t, err := c.newTask(command)
	if err != nil {
		return err
	}
	out := &bounded{left: maxOutput}
	err = t.run(ctx, remote.Streams{Stdout: out, Stderr: out})
	if exit := new(remote.ExitError); errors.As(err, &exit) {
		return complaint(out.text.String())
	}
	return err
}

// bounded keeps the beginning of what is written to it.
type bounded struct {
	mu   sync.Mutex
	text bytes.Buffer
	left int
}

func (b *bounded) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(p), b.left)
	b.left -= n
	b.text.Write(p[:n])
	return len(p), nil
}

// complaint is an answer of a container that is not well: the text, and nothing else.
type complaint string

func (c complaint) Error() string { return string(c) }
func (complaint) Unwrap() error   { return node.ErrUnhealthy }

func unhealthy(format string, args ...any) error {
	return complaint(fmt.Sprintf(format, args...))
}

// port is the number of a container's port.
func (c *container) port(p intstr.IntOrString) (string, error) {
	if p.Type == intstr.Int {
		return strconv.Itoa(p.IntValue()), nil
	}
	for _, has := range c.spec.Ports {
		if has.Name == p.StrVal {
			return strconv.Itoa(int(has.ContainerPort)), nil
		}
	}
	return "", fmt.Errorf("container %s has no port %q", c.name, p.StrVal)
}

func (c *container) host(given string) string {
	if given != "" {
		return given
	}
	return c.address
}

// get asks by HTTP. Certificates are not looked at, and other hosts not followed to.
func (c *container) get(ctx context.Context, h *corev1.HTTPGetAction) error {
	port, err := c.port(h.Port)
	if err != nil {
		return err
	}
	to, err := url.Parse(h.Path)
	if err != nil {
		return err
	}
	to.Scheme, to.Host = "http", net.JoinHostPort(c.host(h.Host), port)
	if h.Scheme == corev1.URISchemeHTTPS {
		to.Scheme = "https"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, to.String(), nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", "kube-probe/1.37")
	req.Header.Set("Accept", "*/*")
	for _, v := range h.HTTPHeaders {
		if req.Header.Add(v.Name, v.Value); http.CanonicalHeaderKey(v.Name) == "Host" {
			req.Host = v.Value
		}
	}
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // as all agents do
	client := http.Client{Transport: transport, CheckRedirect: func(next *http.Request, via []*http.Request) error {
		if next.URL.Hostname() != via[0].URL.Hostname() || len(via) > 10 {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	res, err := client.Do(req)
	if err != nil {
		return unhealthy("%v", err)
	}
	defer func() { _ = res.Body.Close() }()
	_, _ = io.CopyN(io.Discard, res.Body, maxOutput)
	if res.StatusCode < 200 || res.StatusCode >= 400 {
		return unhealthy("HTTP probe failed with statuscode: %d", res.StatusCode)
	}
	return nil
}

func (c *container) dial(ctx context.Context, t *corev1.TCPSocketAction) error {
	port, err := c.port(t.Port)
	if err != nil {
		return err
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(c.host(t.Host), port))
	if err != nil {
		return unhealthy("%v", err)
	}
	return conn.Close()
}

func (c *container) grpc(ctx context.Context, g *corev1.GRPCAction) error {
	to := net.JoinHostPort(c.address, strconv.Itoa(int(g.Port)))
	conn, err := grpc.NewClient("passthrough:///"+to, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	ask := &health.HealthCheckRequest{}
	if g.Service != nil {
		ask.Service = *g.Service
	}
	got, err := health.NewHealthClient(conn).Check(ctx, ask)
	if err != nil {
		return unhealthy("%v", err)
	}
	if got.Status != health.HealthCheckResponse_SERVING {
		return unhealthy("service unhealthy (responded with %q)", got.Status)
	}
	return nil
}
