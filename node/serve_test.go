package node_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/node"
	"github.com/even-keel/evenkeel/node/simulated"
)

// direct is a transport to a handler in this process, which keeps what was asked.
type direct struct {
	to   atomic.Pointer[http.Handler]
	last atomic.Pointer[http.Request]
}

func (d *direct) RoundTrip(r *http.Request) (*http.Response, error) {
	d.last.Store(r)
	h := d.to.Load()
	if h == nil {
		return nil, errors.New("nobody listens")
	}
	w := httptest.NewRecorder()
	(*h).ServeHTTP(w, r)
	return w.Result(), nil
}

func TestLogsThroughTheServer(t *testing.T) {
	way := &direct{}
	at := &url.URL{Scheme: "http", Host: "n1"}
	env := evenkeeltest.Start(t, evenkeeltest.Nodes(func(n *corev1.Node) (*url.URL, http.RoundTripper, error) {
		if n.Name != "n1" {
			return nil, nil, errors.New("which node?")
		}
		return at, way, nil
	}))
	env.Run(func(ctx context.Context, cfg *rest.Config) error {
		base, err := controller.NewBase(cfg, controller.BaseOptions{})
		if err != nil {
			return err
		}
		a := node.New(base, nil, simulated.New(simulated.Options{}), one())
		h := a.Handler()
		way.to.Store(&h)
		for _, c := range a.Controllers() {
			if err := base.Add(c); err != nil {
				return err
			}
		}
		ended := make(chan error, 1)
		go func() { ended <- a.Run(ctx) }()
		defer func() { <-ended }()
		return base.Run(ctx)
	})
	pods := client.Of[*corev1.Pod](env.Conn()).In("default")
	for _, p := range []*corev1.Pod{
		web("runs"), web("slow", annotated(simulated.StartDelay, "1h")), web("lost", func(p *corev1.Pod) { p.Spec.NodeName = "n9" }),
		web("two", func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "more", Image: "i"})
		}),
	} {
		if _, err := pods.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	evenkeeltest.Eventually(env, client.Key{Name: "n1"}, func(*corev1.Node) error { return nil }) // pods may run before
	evenkeeltest.Eventually(env, client.Key{Namespace: "default", Name: "runs"}, ready)
	evenkeeltest.Eventually(env, client.Key{Namespace: "default", Name: "slow"}, waits("ContainerCreating"))
	evenkeeltest.Eventually(env, client.Key{Namespace: "default", Name: "two"}, ready)

	for name, test := range map[string]struct {
		pod   string
		query url.Values
		want  string // of the log, or of the error
	}{
		"a log":                       {"runs", nil, "simulated: app of default/runs runs\n"},
		"some bytes of it":            {"runs", url.Values{"limitBytes": {"9"}}, "simulated"},
		"no line of it":               {"runs", url.Values{"tailLines": {"0"}}, ""},
		"one of several containers":   {"two", url.Values{"container": {"more"}}, "simulated: more of default/two runs\n"},
		"which of several":            {"two", nil, "a container name must be specified for pod two, choose one of: [app more]"},
		"a container that is not":     {"runs", url.Values{"container": {"no"}}, "container no is not valid for pod runs"},
		"one that has not started":    {"slow", nil, `container "app" in pod "slow" is waiting to start: ContainerCreating`},
		"one that was not restarted":  {"runs", url.Values{"previous": {"true"}}, `previous terminated container "app" in pod "runs" not found`},
		"what is not a number":        {"runs", url.Values{"tailLines": {"few"}}, `tailLines: "few" is not a number from 0 on`},
		"a node that does not exist":  {"lost", nil, `node "n9" of pod lost is not registered`},
		"a pod that does not exist":   {"none", nil, `pods "none" not found`},
		"an option that is not known": {"runs", url.Values{"nonsense": {"x"}}, "simulated: app of default/runs runs\n"},
	} {
		got, err := readLog(t.Context(), pods, test.pod, test.query)
		if err != nil && !strings.Contains(err.Error(), test.want) || err == nil && got != test.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, test.want)
		}
	}
	for sub, what := range map[string]string{"exec": "exec", "attach": "attach", "portforward": "port-forward"} {
		to, err := url.Parse(env.Config().Host + "/api/v1/namespaces/default/pods/runs/" + sub + "?command=true&stdout=true")
		if err != nil {
			t.Fatal(err)
		}
		e, err := remotecommand.NewSPDYExecutor(env.Config(), "POST", to)
		if err != nil {
			t.Fatal(err)
		}
		err = e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: io.Discard})
		if want := what + ` is not possible: the runtime "simulated" of node n1 runs nothing. Use one that does, such as "process"`; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", sub, err, want)
		}
	}
	if h := way.last.Load().Header; h.Get("Authorization") != "" || h.Get("Cookie") != "" {
		t.Errorf("the agent hears how the client proved who it is: %v", h)
	}
}

func readLog(ctx context.Context, pods *client.Client[*corev1.Pod], pod string, query url.Values) (string, error) {
	stream, err := pods.Stream(ctx, client.Key{Name: pod}, "log", query)
	if err != nil {
		return "", err
	}
	defer func() { _ = stream.Close() }()
	all, err := io.ReadAll(stream)
	return string(all), err
}
