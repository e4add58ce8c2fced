//go:build unix

package process_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/client-go/util/exec"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/node/process"
)

// cluster is a server with an agent, and with a client's view of both.
type cluster struct {
	*evenkeeltest.Env
	t       *testing.T
	runtime *process.Runtime
	pods    *client.Client[*corev1.Pod]
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	var handler atomic.Pointer[http.Handler]
	kubelet := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*handler.Load()).ServeHTTP(w, r) }))
	t.Cleanup(kubelet.Close)
	at, err := url.Parse(kubelet.URL)
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, runtime: open(t, t.TempDir())}
	c.Env = evenkeeltest.Start(t, evenkeeltest.Nodes(func(*corev1.Node) (*url.URL, http.RoundTripper, error) { return at, kubelet.Client().Transport, nil }))
	served := make(chan struct{})
	c.Run(agent(c.runtime, func(h http.Handler) {
		handler.Store(&h)
		close(served)
	}))
	<-served
	registered(c.Env)
	c.pods = client.Of[*corev1.Pod](c.Conn()).In("default")
	return c
}

// registered waits until the server knows the node: pods may run before.
func registered(env *evenkeeltest.Env) {
	evenkeeltest.Eventually(env, client.Key{Name: "n1"}, func(*corev1.Node) error { return nil })
}

// box runs a pod of one container.
func (c *cluster) box(name, script string, change ...func(*corev1.Container)) *corev1.Pod {
	c.t.Helper()
	none := int64(1)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: corev1.PodSpec{
			NodeName: "n1", RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: &none,
			Containers: []corev1.Container{{Name: "app", Image: "none", Command: []string{"sh", "-c", script}}},
		},
	}
	for _, f := range change {
		f(&p.Spec.Containers[0])
	}
	if _, err := c.pods.Create(c.t.Context(), p); err != nil {
		c.t.Fatal(err)
	}
	return evenkeeltest.Eventually(c.Env, client.Key{Namespace: "default", Name: name}, evenkeeltest.Condition[*corev1.Pod]("Ready", "True"))
}

// idle is a script that ends by itself, should the test not.
const idle = "exec sleep 60"

func (c *cluster) url(pod, sub string, query url.Values) *url.URL {
	c.t.Helper()
	u, err := url.Parse(c.Config().Host + "/api/v1/namespaces/default/pods/" + pod + "/" + sub + "?" + query.Encode())
	if err != nil {
		c.t.Fatal(err)
	}
	return u
}

// dialect is a way to run a command.
type dialect func(cfg *rest.Config, to *url.URL) (remotecommand.Executor, error)

func overSPDY(cfg *rest.Config, to *url.URL) (remotecommand.Executor, error) {
	return remotecommand.NewSPDYExecutor(cfg, "POST", to)
}

func overSocket(protocols ...string) dialect {
	return func(cfg *rest.Config, to *url.URL) (remotecommand.Executor, error) {
		return remotecommand.NewWebSocketExecutorForProtocols(cfg, "GET", to.String(), protocols...)
	}
}

// both are the ways by which input can end.
var both = map[string]dialect{"SPDY": overSPDY, "WebSocket": overSocket("v5.channel.k8s.io")}

// stream runs a command, or attaches without one.
func (c *cluster) stream(ctx context.Context, way dialect, pod string, command []string, o remotecommand.StreamOptions) error {
	c.t.Helper()
	q, sub := url.Values{"command": command}, "exec"
	if command == nil {
		sub = "attach"
	}
	for name, is := range map[string]bool{"stdin": o.Stdin != nil, "stdout": o.Stdout != nil, "stderr": o.Stderr != nil, "tty": o.Tty} {
		q.Set(name, strconv.FormatBool(is))
	}
	e, err := way(c.Config(), c.url(pod, sub, q))
	if err != nil {
		c.t.Fatal(err)
	}
	return e.StreamWithContext(ctx, o)
}

func TestExec(t *testing.T) {
	c := newCluster(t)
	c.box("box", idle, func(app *corev1.Container) {
		app.Env = []corev1.EnvVar{{Name: "GREETING", Value: "ahoy"}}
	})
	for name, way := range map[string]dialect{
		"SPDY": overSPDY, "WebSocket": overSocket("v5.channel.k8s.io"),
		"an old WebSocket": overSocket("v4.channel.k8s.io"), "a choice": overSocket("v9.channel.k8s.io", "v4.channel.k8s.io"),
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			err := c.stream(t.Context(), way, "box", []string{"sh", "-c", "echo $GREETING; echo no >&2; exit 7"}, remotecommand.StreamOptions{Stdout: &out, Stderr: &errs})
			var exit exec.CodeExitError
			if !errors.As(err, &exit) || exit.Code != 7 {
				t.Errorf("it ended with %v", err)
			}
			if out.String() != "ahoy\n" || errs.String() != "no\n" {
				t.Errorf("it wrote %q and %q", out.String(), errs.String())
			}
			if err := c.stream(t.Context(), way, "box", []string{"true"}, remotecommand.StreamOptions{Stdout: &out}); err != nil {
				t.Errorf("one that ends well: %v", err)
			}
			err = c.stream(t.Context(), way, "box", []string{"evenkeel-no-such-command"}, remotecommand.StreamOptions{Stdout: &out})
			if err == nil || !strings.Contains(err.Error(), `error executing command in container: exec: "evenkeel-no-such-command": executable file not found in $PATH`) {
				t.Errorf("one that is not there: %v", err)
			}
		})
	}
}

func TestExecPassesLargeInputAndOutput(t *testing.T) {
	c := newCluster(t)
	c.box("box", idle)
	data := make([]byte, 5<<20+1)
	_, _ = rand.Read(data)
	for name, way := range both {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := c.stream(t.Context(), way, "box", []string{"cat"}, remotecommand.StreamOptions{Stdin: bytes.NewReader(data), Stdout: &out}); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(out.Bytes(), data) {
				t.Errorf("%d bytes came back as %d, or others", len(data), out.Len())
			}
		})
	}
}

// endless is input that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestExecEndsThoughItsInputDoesNot(t *testing.T) {
	c := newCluster(t)
	c.box("box", idle)
	for name, way := range both {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			err := c.stream(ctx, way, "box", []string{"sh", "-c", "head -c 100000 | wc -c; echo end"}, remotecommand.StreamOptions{Stdin: endless{}, Stdout: &out})
			if err != nil || strings.TrimSpace(out.String()) != "100000\nend" {
				t.Errorf("it wrote %q: %v", out.String(), err)
			}
		})
	}
}

// lines hands on whole lines of what is written to it.
type lines struct {
	text strings.Builder
	to   chan string
}

func newLines() *lines { return &lines{to: make(chan string, 100)} }

func (l *lines) Write(p []byte) (int, error) {
	l.text.Write(p)
	for {
		line, rest, whole := strings.Cut(l.text.String(), "\n")
		if !whole {
			return len(p), nil
		}
		l.text.Reset()
		l.text.WriteString(rest)
		l.to <- strings.TrimSuffix(line, "\r")
	}
}

// next waits for a line.
func (l *lines) next(t *testing.T) string {
	t.Helper()
	select {
	case line := <-l.to:
		return line
	case <-time.After(30 * time.Second):
		t.Fatal("no line came")
		return ""
	}
}

func ended(pid int) func() bool {
	return func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
}

func (l *lines) pid(t *testing.T) int {
	t.Helper()
	pid, err := strconv.Atoi(l.next(t))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func TestExecIsKilledWhenItsClientLeaves(t *testing.T) {
	c := newCluster(t)
	c.box("box", idle)
	for name, way := range both {
		for what, in := range map[string]io.Reader{"is silent": nil, "does not take its input": endless{}} {
			if name == "SPDY" && in != nil {
				continue // client-go's own Close waits until what it sends is taken
			}
			t.Run(name+", while it "+what, func(t *testing.T) {
				t.Parallel()
				ctx, leave := context.WithCancel(t.Context())
				out, left := newLines(), make(chan struct{})
				go func() {
					defer close(left)
					_ = c.stream(ctx, way, "box", []string{"sh", "-c", "echo $$; " + idle}, remotecommand.StreamOptions{Stdin: in, Stdout: out})
				}()
				pid := out.pid(t)
				leave()
				<-left
				until(t, "it ends", ended(pid))
			})
		}
	}
}

func TestExecIsKilledWithItsContainer(t *testing.T) {
	c := newCluster(t)
	c.box("box", idle)
	out := newLines()
	result := make(chan error, 1)
	go func() {
		result <- c.stream(t.Context(), overSPDY, "box", []string{"sh", "-c", "echo $$; " + idle}, remotecommand.StreamOptions{Stdout: out})
	}()
	pid := out.pid(t)
	if err := c.pods.Delete(t.Context(), client.Key{Name: "box"}); err != nil {
		t.Fatal(err)
	}
	var exit exec.CodeExitError
	if err := <-result; !errors.As(err, &exit) || exit.Code != 137 {
		t.Errorf("it ended with %v", err)
	}
	until(t, "it ends", ended(pid))
}

// sizes are those of a terminal, in turn.
type sizes chan remotecommand.TerminalSize

func (s sizes) Next() *remotecommand.TerminalSize {
	size, more := <-s
	if !more {
		return nil
	}
	return &size
}

func TestExecOnATerminal(t *testing.T) {
	needsTerminal(t)
	c := newCluster(t)
	c.box("box", idle)
	for name, way := range both {
		t.Run(name, func(t *testing.T) {
			out, size := newLines(), make(sizes, 1)
			size <- remotecommand.TerminalSize{Width: 100, Height: 40}
			in, keys := io.Pipe()
			result := make(chan error, 1)
			go func() {
				result <- c.stream(t.Context(), way, "box", []string{"sh", "-c", `
					stty -echo; tty >/dev/null && echo terminal
					until [ "$(stty size)" = "40 100" ]; do sleep 0.01; done; echo sized
					until [ "$(stty size)" = "20 50" ]; do sleep 0.01; done; echo resized
					read line; echo "got $line"; cat; echo over; exit 3`},
					remotecommand.StreamOptions{Stdin: in, Stdout: out, Tty: true, TerminalSizeQueue: size})
			}()
			for _, want := range []string{"terminal", "sized"} {
				if got := out.next(t); got != want {
					t.Fatalf("it wrote %q, want %q", got, want)
				}
			}
			size <- remotecommand.TerminalSize{Width: 50, Height: 20}
			close(size)
			if got := out.next(t); got != "resized" {
				t.Fatalf("it wrote %q", got)
			}
			_, _ = io.WriteString(keys, "hello\n")
			if got := out.next(t); got != "got hello" {
				t.Fatalf("it wrote %q", got)
			}
			_ = keys.Close()
			if got := out.next(t); got != "over" {
				t.Fatalf("it wrote %q", got)
			}
			var exit exec.CodeExitError
			if err := <-result; !errors.As(err, &exit) || exit.Code != 3 {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}

func TestAttach(t *testing.T) {
	for name, way := range both {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.box("box", `while read line; do echo "out $line"; echo "err $line" >&2; done; echo end`, func(app *corev1.Container) {
				app.Stdin, app.StdinOnce = true, true
			})
			var work sync.WaitGroup
			defer work.Wait()
			attach := func(out, errs *lines) io.WriteCloser {
				in, keys := io.Pipe()
				work.Go(func() {
					if err := c.stream(t.Context(), way, "box", nil, remotecommand.StreamOptions{Stdin: in, Stdout: out, Stderr: errs}); err != nil {
						t.Errorf("attached: %v", err)
					}
				})
				return keys
			}
			hears := func(l *lines, want string) {
				t.Helper()
				if got := l.next(t); got != want {
					t.Errorf("it wrote %q, want %q", got, want)
				}
			}
			out, errs := newLines(), newLines()
			keys := attach(out, errs)
			_, _ = io.WriteString(keys, "one\n")
			hears(out, "out one")
			hears(errs, "err one")
			out2, errs2 := newLines(), newLines()
			keys2 := attach(out2, errs2)
			_, _ = io.WriteString(keys2, "two\n")
			for _, l := range []*lines{out, out2} {
				hears(l, "out two")
			}
			_ = keys2.Close() // and with it the container's input
			for _, l := range []*lines{out, out2} {
				hears(l, "end")
			}
			_ = keys.Close()
			evenkeeltest.Eventually(c.Env, client.Key{Namespace: "default", Name: "box"}, func(p *corev1.Pod) error {
				if p.Status.Phase != corev1.PodSucceeded {
					return fmt.Errorf("it is %s", p.Status.Phase)
				}
				return nil
			})
			if got := logOf(t, client.Of[*corev1.Pod](c.Conn()), client.Key{Namespace: "default", Name: "box"}, url.Values{"stream": {"Stderr"}}); got != "err one\nerr two\n" {
				t.Errorf("the log is %q", got)
			}
		})
	}
}

func TestAttachToATerminal(t *testing.T) {
	needsTerminal(t)
	c := newCluster(t)
	c.box("box", `stty -echo; read line; echo "got $line"; until [ "$(stty size)" = "20 50" ]; do sleep 0.01; done; echo sized; exit 0`, func(app *corev1.Container) {
		app.Stdin, app.TTY = true, true
	})
	out, size := newLines(), make(sizes, 1)
	in, keys := io.Pipe()
	result := make(chan error, 1)
	go func() {
		result <- c.stream(t.Context(), overSocket("v5.channel.k8s.io"), "box", nil, remotecommand.StreamOptions{Stdin: in, Stdout: out, Tty: true, TerminalSizeQueue: size})
	}()
	_, _ = io.WriteString(keys, "hello\n")
	for got := ""; got != "got hello"; got = out.next(t) { // the terminal may have shown what was typed
		t.Logf("it shows %q", got)
	}
	size <- remotecommand.TerminalSize{Width: 50, Height: 20}
	close(size)
	if got := out.next(t); got != "sized" {
		t.Errorf("it wrote %q", got)
	}
	if err := <-result; err != nil {
		t.Error(err)
	}
	_ = keys.Close()
}

// refused is a request that is answered with an error before any upgrade.
func (c *cluster) refused(u *url.URL, header http.Header) (int, string) {
	c.t.Helper()
	cfg := c.Config()
	cfg.NextProtos = []string{"http/1.1"} // which alone knows upgrades
	transport, err := rest.TransportFor(cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	res, err := transport.RoundTrip(&http.Request{Method: "GET", URL: u, Header: header})
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var status metav1.Status
	if err := json.NewDecoder(res.Body).Decode(&status); err != nil {
		c.t.Fatal(err)
	}
	return res.StatusCode, status.Message
}

func TestWhatCannotBeConnectedTo(t *testing.T) {
	c := newCluster(t)
	c.box("box", idle)
	for _, p := range []*corev1.Pod{
		{ObjectMeta: metav1.ObjectMeta{Name: "waits"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "i"}}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "lost"}, Spec: corev1.PodSpec{NodeName: "n9", Containers: []corev1.Container{{Name: "app", Image: "i"}}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "several"}, Spec: corev1.PodSpec{NodeName: "n1",
			InitContainers: []corev1.Container{{Name: "first", Image: "i", Command: []string{"sleep", "60"}}},
			Containers:     []corev1.Container{{Name: "a", Image: "i"}, {Name: "b", Image: "i"}}}},
	} {
		if _, err := c.pods.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	run, socket := url.Values{"command": {"true"}, "stdout": {"true"}}, http.Header{
		"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"MDEyMzQ1Njc4OWFiY2RlZg=="},
	}
	with := func(base http.Header, name, value string) http.Header {
		out := base.Clone()
		out.Set(name, value)
		return out
	}
	for name, test := range map[string]struct {
		pod, sub string
		query    url.Values
		header   http.Header
		code     int
		want     string
	}{
		"a pod that is not":             {"none", "exec", run, socket, 404, `pods "none" not found`},
		"a pod that is not placed":      {"waits", "exec", run, socket, 400, "pod waits does not have a host assigned"},
		"a pod whose node is not":       {"lost", "attach", run, socket, 500, `node "n9" of pod lost is not registered`},
		"a container that is not":       {"box", "exec", url.Values{"container": {"x"}}, socket, 400, "container x is not valid for pod box"},
		"which of several":              {"several", "exec", run, socket, 400, "a container name must be specified for pod several, choose one of: [a b] or one of the init containers: [first]"},
		"a container that does not run": {"several", "attach", url.Values{"container": {"a"}, "stdout": {"1"}}, socket, 400, `container not found ("a")`},
		"without an upgrade":            {"box", "exec", run, nil, 400, "Upgrade request required"},
		"without a stream":              {"box", "exec", url.Values{"command": {"true"}}, socket, 400, "you must specify at least 1 of stdin, stdout, stderr"},
		"without a command":             {"box", "exec", url.Values{"stdout": {"true"}}, socket, 400, "you must specify at least one command for the container"},
		"in a protocol that nobody speaks": {"box", "exec", run, with(socket, "Sec-Websocket-Protocol", "v9.channel.k8s.io"), 400,
			"unable to upgrade: requested protocol(s) are not supported: [v9.channel.k8s.io]"},
		"in a version that nobody speaks": {"box", "portforward", nil, http.Header{"Connection": {"Upgrade"}, "Upgrade": {"SPDY/3.1"}, "X-Stream-Protocol-Version": {"v9"}}, 400,
			"unable to upgrade: unable to negotiate protocol: client supports [v9], server accepts [portforward.k8s.io]"},
		"by something else":   {"box", "exec", run, with(socket, "Upgrade", "h2c"), 400, "unable to upgrade: this is neither a WebSocket nor SPDY/3.1"},
		"a port that is none": {"box", "portforward", url.Values{"ports": {"http"}}, socket, 400, `unable to upgrade: "http" is not a port`},
		"without any port":    {"box", "portforward", nil, socket, 400, `unable to upgrade: "" is not a port`},
	} {
		code, got := c.refused(c.url(test.pod, test.sub, test.query), test.header)
		if code != test.code || !strings.Contains(got, test.want) {
			t.Errorf("%s: %d %q, want %d %q", name, code, got, test.code, test.want)
		}
	}
}

// forward opens a way to a port of a pod, and returns the local one.
func (c *cluster) forward(dialer httpstream.Dialer, port int) (local uint16, end func()) {
	c.t.Helper()
	stop, ready := make(chan struct{}), make(chan struct{})
	f, err := portforward.NewOnAddressesForStreaming(dialer, []string{"127.0.0.1"}, []string{fmt.Sprint("0:", port)}, stop, ready, io.Discard, io.Discard)
	if err != nil {
		c.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- f.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-ended:
		c.t.Fatalf("the port is not forwarded: %v", err)
	}
	all, err := f.GetPorts()
	if err != nil {
		c.t.Fatal(err)
	}
	return all[0].Local, func() {
		close(stop)
		if err := <-ended; err != nil {
			c.t.Errorf("the port was forwarded until %v", err)
		}
	}
}

// dialers are the ways to ports of a pod.
func (c *cluster) dialers(pod string) map[string]httpstream.Dialer {
	c.t.Helper()
	to := c.url(pod, "portforward", nil)
	trip, upgrader, err := spdy.RoundTripperFor(c.Config())
	if err != nil {
		c.t.Fatal(err)
	}
	tunnel, err := portforward.NewSPDYOverWebsocketDialerForStreaming(to, c.Config())
	if err != nil {
		c.t.Fatal(err)
	}
	return map[string]httpstream.Dialer{
		"SPDY": spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: trip}, "POST", to), "WebSocket": tunnel,
	}
}

func TestPortForward(t *testing.T) {
	c := newCluster(t)
	c.box("box", idle)
	large := strings.Repeat("0123456789", 50_000)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s %s", r.URL.Path, body)
	}))
	defer web.Close()
	for name, dialer := range c.dialers("box") {
		t.Run(name, func(t *testing.T) {
			local, end := c.forward(dialer, web.Listener.Addr().(*net.TCPAddr).Port)
			defer end()
			var work sync.WaitGroup
			for i := range 8 {
				work.Go(func() {
					own := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
					res, err := own.Post(fmt.Sprintf("http://127.0.0.1:%d/%d", local, i), "text/plain", strings.NewReader(large))
					if err != nil {
						t.Error(err)
						return
					}
					if got, want := remainder(t, res.Body), fmt.Sprintf("/%d %s", i, large); got != want {
						t.Errorf("%d bytes came back, want %d", len(got), len(want))
					}
				})
			}
			work.Wait()
		})
	}
}

func TestPortForwardToAPortThatIsClosed(t *testing.T) {
	c := newCluster(t)
	c.box("box", idle)
	port := freePort(t)
	for name, dialer := range c.dialers("box") {
		t.Run(name, func(t *testing.T) {
			conn, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			create := func(kind string) httpstream.Stream {
				header := http.Header{}
				header.Set(corev1.StreamType, kind)
				header.Set(corev1.PortHeader, strconv.Itoa(port))
				header.Set(corev1.PortForwardRequestIDHeader, "1")
				s, err := conn.CreateStream(header)
				if err != nil {
					t.Fatal(err)
				}
				return s
			}
			fault, data := create(corev1.StreamTypeError), create(corev1.StreamTypeData)
			got, err := io.ReadAll(fault)
			if want := fmt.Sprintf("error forwarding port %d to pod box: dial tcp 127.0.0.1:%d: connect: connection refused", port, port); err != nil || string(got) != want {
				t.Errorf("it says %q, %v; want %q", got, err, want)
			}
			if got, err := io.ReadAll(data); err != nil || len(got) > 0 {
				t.Errorf("there came %q: %v", got, err)
			}
		})
	}
}
