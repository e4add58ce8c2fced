package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/even-keel/evenkeel/server"
	"github.com/even-keel/evenkeel/server/auth"
)

// echo is an agent that agrees to every upgrade. It greets, says back what it hears,
// and leaves at "bye".
type echo struct {
	asked chan *http.Request
	left  chan error // why it ended
}

func (e *echo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.asked <- r
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		e.left <- err
		return
	}
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nahoy\n")
	for {
		line, err := buffered.ReadString('\n')
		if err != nil || line == "bye\n" {
			e.left <- err
			return
		}
		_, _ = io.WriteString(conn, line)
	}
}

// withEcho starts a server with a pod on a node of such an agent.
func withEcho(t *testing.T, adjust func(*server.Config)) (*running, *echo) {
	t.Helper()
	agent := &echo{asked: make(chan *http.Request, 1), left: make(chan error, 1)}
	at := httptest.NewServer(agent)
	t.Cleanup(at.Close)
	to, err := url.Parse(at.URL)
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, memoryStore(t), func(c *server.Config) {
		c.Nodes = func(*corev1.Node) (*url.URL, http.RoundTripper, error) { return to, at.Client().Transport, nil }
		if adjust != nil {
			adjust(c)
		}
	})
	for path, body := range map[string]string{
		"/api/v1/nodes": `{"metadata":{"name":"n"}}`, pods: `{"metadata":{"name":"p"},"spec":{"nodeName":"n","containers":[{"name":"c","image":"i"}]}}`,
	} {
		if got := r.do("POST", path, body); got.code != 201 {
			t.Fatalf("%d %s", got.code, got.body)
		}
	}
	return r, agent
}

// upgrade asks for a connection, and returns it with the answer.
func (r *running) upgrade(path, token string, header ...string) (net.Conn, *bufio.Reader, *http.Response) {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.address)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close() })
	_, _ = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\nAuthorization: Bearer %s\r\n%s\r\n", path, token, strings.Join(header, ""))
	from := bufio.NewReader(conn)
	res, err := http.ReadResponse(from, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return conn, from, res
}

func expectLine(t *testing.T, from *bufio.Reader, want string) {
	t.Helper()
	if got, err := from.ReadString('\n'); got != want {
		t.Fatalf("it says %q, %v; want %q", got, err, want)
	}
}

func TestAConnectionIsPassedOnToTheNode(t *testing.T) {
	r, agent := withEcho(t, nil)
	conn, from, res := r.upgrade(pods+"/p/exec?command=a&command=b+c&stdin=true&stderr=1&tty=false&stdout=0&nonsense=x", master,
		"Cookie: x=y\r\n", "Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.c2VjcmV0, v4.channel.k8s.io\r\n", "X-Stream-Protocol-Version: v4\r\n")
	if res.StatusCode != 101 || res.Header.Get("Upgrade") != "echo" {
		t.Fatalf("the answer is %s with %v", res.Status, res.Header)
	}
	asked := <-agent.asked
	if got, want := asked.URL.String(), "/exec/default/p/c?command=a&command=b+c&error=1&input=1"; got != want {
		t.Errorf("the agent was asked for %s, want %s", got, want)
	}
	h := asked.Header
	if h.Get("Sec-Websocket-Protocol") != "v4.channel.k8s.io" || h.Get("X-Stream-Protocol-Version") != "v4" || h.Get("Authorization") != "" || h.Get("Cookie") != "" {
		t.Errorf("the agent hears %v", h)
	}
	expectLine(t, from, "ahoy\n")
	_, _ = io.WriteString(conn, "hello\n")
	expectLine(t, from, "hello\n")
	_, _ = io.WriteString(conn, "bye\n")
	if _, err := from.ReadByte(); err != io.EOF {
		t.Errorf("when the node has left, the client reads %v", err)
	}
}

func TestANodeHearsThatAClientLeft(t *testing.T) {
	r, agent := withEcho(t, nil)
	conn, from, _ := r.upgrade(pods+"/p/portforward?ports=80&ports=81", master)
	if got, want := (<-agent.asked).URL.String(), "/portForward/default/p?port=80&port=81"; got != want {
		t.Errorf("the agent was asked for %s, want %s", got, want)
	}
	expectLine(t, from, "ahoy\n")
	_ = conn.Close()
	if err := <-agent.left; err == nil {
		t.Error("it was told to leave")
	}
}

func TestConnectionsEndWithTheServer(t *testing.T) {
	r, agent := withEcho(t, nil)
	_, from, _ := r.upgrade(pods+"/p/attach?stdout=1", master)
	<-agent.asked
	expectLine(t, from, "ahoy\n")
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := from.ReadByte(); err == nil {
		t.Error("the client is still connected")
	}
	<-agent.left
}

// A WebSocket is a GET, but to run a command is more than to read.
func TestToConnectIsToCreate(t *testing.T) {
	r, agent := withEcho(t, func(c *server.Config) {
		masters := c.Authorizer
		c.Authorizer = auth.AuthorizerFunc(func(ctx context.Context, u auth.User, a auth.Attributes) (auth.Decision, error) {
			if a.Verb == "get" {
				return auth.Decision{Allowed: true}, nil
			}
			return masters.Authorize(ctx, u, a)
		})
	})
	_, _, res := r.upgrade(pods+"/p/exec?command=a&stdout=1", nobody)
	body, _ := io.ReadAll(res.Body)
	if want := `User \"somebody\" cannot create resource \"pods/exec\" in API group \"\" in the namespace \"default\"`; res.StatusCode != 403 || !strings.Contains(string(body), want) {
		t.Errorf("the answer is %s: %s", res.Status, body)
	}
	if len(agent.asked) > 0 {
		t.Error("the agent was asked")
	}
}
