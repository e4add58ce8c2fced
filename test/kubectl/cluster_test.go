package kubectl

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
	corev1 "k8s.io/api/core/v1"

	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/node"
	runtime "github.com/even-keel/evenkeel/node/process"
)

// cluster runs a server in the test's own process, with the node n1, whose pods are
// processes. $WEB is the port of a server that greets.
func cluster(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg)
	if len(args) != 0 {
		ts.Fatalf("usage: cluster")
	}
	greeter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ahoy\n") }))
	ts.Defer(greeter.Close)
	at, err := url.Parse(greeter.URL)
	ts.Check(err)
	ts.Setenv("WEB", at.Port())

	agents := http.NewServeMux()
	kubelet := httptest.NewServer(agents)
	ts.Defer(kubelet.Close)
	to, err := url.Parse(kubelet.URL)
	ts.Check(err)
	s, err := evenkeeltest.Open(evenkeeltest.Nodes(func(*corev1.Node) (*url.URL, http.RoundTripper, error) { return to, kubelet.Client().Transport, nil }))
	ts.Check(err)
	ts.Defer(func() { ts.Check(s.Close()) })
	runAgent(ts, s, agents)
	kubeconfig := ts.Getenv("KUBECONFIG")
	ts.Check(os.MkdirAll(filepath.Dir(kubeconfig), 0o755))
	ts.Check(s.WriteKubeconfig(kubeconfig))
}

// runAgent runs the agent of n1 until the script ends.
func runAgent(ts *testscript.TestScript, s *evenkeeltest.Server, serve *http.ServeMux) {
	quiet := slog.New(slog.DiscardHandler)
	rt, err := runtime.Open(runtime.Options{Folder: ts.MkAbs("node"), Address: "127.0.0.1", Logger: quiet})
	ts.Check(err)
	base, err := controller.NewBase(s.Config(), controller.BaseOptions{Logger: quiet})
	ts.Check(err)
	a := node.New(base, nil, rt, node.Options{Nodes: []node.Node{{Name: "n1"}}, Logger: quiet})
	serve.Handle("/", a.Handler())
	for _, c := range a.Controllers() {
		ts.Check(base.Add(c))
	}
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() { _ = a.Run(ctx) })
	work.Go(func() { _ = base.Run(ctx) })
	ts.Defer(func() {
		cancel()
		work.Wait()
	})
}

// fetch gets a page, which is stdout then.
func fetch(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg)
	if len(args) != 1 {
		ts.Fatalf("usage: fetch url")
	}
	own := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := own.Get(args[0])
	ts.Check(err)
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	ts.Check(err)
	if !strings.HasPrefix(res.Status, "200") {
		ts.Fatalf("%s: %s", res.Status, body)
	}
	_, _ = ts.Stdout().Write(body)
}
