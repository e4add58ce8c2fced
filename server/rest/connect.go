package rest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/even-keel/evenkeel/server/auth"
)

// connects reports whether a request asks for a connection to a pod, which goes on for
// as long as the client wants.
func (t target) connects() bool {
	if t.gv.Group != "" || t.resource != "pods" {
		return false
	}
	return t.subresource == "exec" || t.subresource == "attach" || t.subresource == "portforward"
}

// lingers is how long a client may take to leave when its node has. To close before it
// does could cost it what it has not read.
const lingers = 30 * time.Second

// connect has a client talk to the agent of a pod's node. The two choose the protocol
// between them: once the agent has agreed, all that this server does is to pass on
// bytes.
func (c *call) connect(pod *corev1.Pod) error {
	where, query, err := c.connection(pod)
	switch {
	case err != nil:
		return err
	case pod.Spec.NodeName == "":
		return apierrors.NewBadRequest(fmt.Sprintf("pod %s does not have a host assigned", pod.Name))
	case !isUpgrade(c.r):
		return apierrors.NewBadRequest("Upgrade request required")
	}
	if err := c.mayConnect(); err != nil {
		return err
	}
	res, err := c.askNode(pod, where, query, upgradeHeaders(c.r.Header))
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusSwitchingProtocols {
		return c.complaint(res)
	}
	agent, ok := res.Body.(io.ReadWriteCloser)
	if !ok {
		return apierrors.NewInternalError(errors.New("the way to the node does not let connections be upgraded"))
	}
	return c.pass(agent, res.Header)
}

// connection is where and how the agent is asked, by the names that the kubelet has.
func (c *call) connection(pod *corev1.Pod) (where string, query url.Values, err error) {
	query = url.Values{}
	if c.target.subresource == "portforward" {
		for _, p := range c.query["ports"] {
			query.Add("port", p)
		}
		return "/" + path.Join("portForward", pod.Namespace, pod.Name), query, nil
	}
	container, err := containerOf(pod, c.query.Get("container"))
	if err != nil {
		return "", nil, err
	}
	for ours, theirs := range map[string]string{"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"} {
		if boolParam(c.query, ours) {
			query.Set(theirs, "1")
		}
	}
	if c.target.subresource == "exec" {
		query["command"] = c.query["command"]
	}
	return "/" + path.Join(c.target.subresource, pod.Namespace, pod.Name, container), query, nil
}

func isUpgrade(r *http.Request) bool {
	return r.ProtoMajor == 1 && r.Header.Get("Upgrade") != "" && strings.Contains(strings.ToLower(strings.Join(r.Header.Values("Connection"), ",")), "upgrade")
}

// mayConnect asks whether the client may create what it connects to: a WebSocket is a
// GET, and who may only read may not run commands.
func (c *call) mayConnect() error {
	a := Describe(c.r).Attributes()
	if a.Verb == "create" || c.api.authorizer == nil {
		return nil
	}
	a.Verb = "create"
	user := auth.UserOf(c.ctx())
	decision, err := c.api.authorizer.Authorize(c.ctx(), user, a)
	if err != nil || !decision.Allowed {
		return Forbidden(user, a, decision.Reason)
	}
	return nil
}

// bearerProtocol begins a WebSocket's protocol that is the token of a browser.
const bearerProtocol = "base64url.bearer.authorization.k8s.io."

// upgradeHeaders are those by which a protocol is agreed on.
func upgradeHeaders(from http.Header) http.Header {
	out := http.Header{"Connection": {"Upgrade"}}
	for _, name := range []string{"Upgrade", "X-Stream-Protocol-Version", "Sec-Websocket-Key", "Sec-Websocket-Version"} {
		if v := from.Values(name); len(v) > 0 {
			out[name] = v
		}
	}
	var protocols []string
	for _, p := range websocket.Subprotocols(&http.Request{Header: from}) {
		if !strings.HasPrefix(p, bearerProtocol) {
			protocols = append(protocols, p)
		}
	}
	if len(protocols) > 0 {
		out.Set("Sec-Websocket-Protocol", strings.Join(protocols, ", "))
	}
	return out
}

// pass connects the client to an agent, until one of them leaves or the server ends.
func (c *call) pass(agent io.ReadWriteCloser, answer http.Header) error {
	client, buffered, err := http.NewResponseController(c.w).Hijack()
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	closeBoth := func() {
		_ = client.Close()
		_ = agent.Close()
	}
	defer closeBoth()
	defer context.AfterFunc(c.ctx(), closeBoth)()
	if switchProtocols(client, answer) != nil {
		return nil // the client has gone
	}
	left := make(chan struct{})
	go func() {
		defer close(left)
		_, _ = io.Copy(agent, buffered.Reader)
		_ = agent.Close()
	}()
	_, _ = io.Copy(client, agent)
	seeOff(client, left)
	closeBoth()
	<-left
	return nil
}

// switchProtocols tells a client what its agent has agreed on.
func switchProtocols(client net.Conn, answer http.Header) error {
	_ = client.SetDeadline(time.Time{})
	w := bufio.NewWriter(client)
	_, _ = w.WriteString("HTTP/1.1 101 Switching Protocols\r\n")
	_ = answer.Write(w)
	_, _ = w.WriteString("\r\n")
	return w.Flush()
}

// seeOff says that nothing more comes, and waits for the client to leave.
func seeOff(client net.Conn, left <-chan struct{}) {
	half, ok := client.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return // it would not hear of it
	}
	late := time.NewTimer(lingers)
	defer late.Stop()
	select {
	case <-left:
	case <-late.C:
	}
}
