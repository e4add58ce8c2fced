package main

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/examples/internal/program"
)

func TestMain(m *testing.M) { evenkeeltest.Main(m) }

const shopNamespace = "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}"

type podClient = *client.Client[*corev1.Pod]

func makePod(t *testing.T, c podClient, name string) *corev1.Pod {
	t.Helper()
	pod, err := c.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

func setPhase(t *testing.T, c podClient, name string, phase corev1.PodPhase) {
	t.Helper()
	patch := client.MergePatch(map[string]any{"status": map[string]any{"phase": phase}})
	if _, err := client.Sub[*corev1.Pod](c, "status").Patch(t.Context(), client.Key{Name: name}, patch); err != nil {
		t.Fatal(err)
	}
}

func deletePod(t *testing.T, c podClient, name string) {
	t.Helper()
	if err := c.Delete(t.Context(), client.Key{Name: name}, client.Grace(0)); err != nil {
		t.Fatal(err)
	}
}

// begin starts a server with a namespace, and podwatch on it.
func begin(t *testing.T, args ...string) (podClient, *program.Program) {
	t.Helper()
	env := evenkeeltest.Start(t)
	env.Apply(shopNamespace)
	kubeconfig, conn := env.Kubeconfig(), env.Conn()
	args = append([]string{"--kubeconfig", kubeconfig}, args...)
	p := program.Run(t, func(ctx context.Context, p *program.Program) error { return run(ctx, args, &p.Out, &p.Err) })
	return client.Of[*corev1.Pod](conn).In("shop"), p
}

func TestBothWaysPrintWhatBecomesOfPods(t *testing.T) {
	for _, mode := range []string{"plain", "informer"} {
		t.Run(mode, func(t *testing.T) {
			pods, p := begin(t, mode)
			makePod(t, pods, "web")
			p.Out.Expect(t, "added shop/web Pending")
			setPhase(t, pods, "web", corev1.PodRunning)
			p.Out.Expect(t, "updated shop/web Running")
			deletePod(t, pods, "web")
			p.Out.Expect(t, "deleted shop/web")
			makePod(t, pods, "db")
			p.Out.Expect(t, "added shop/db Pending")
			if got := strings.Count(p.Out.String(), "\n"); got != 4 {
				t.Errorf("%d lines are printed, for four changes", got)
			}
		})
	}
}

func TestWorkThatFailsIsTriedFiveTimesAgainAndDropped(t *testing.T) {
	pods, p := begin(t, "--fail", "broken", "--backoff", "1ms")
	makePod(t, pods, "broken")
	p.Err.Expect(t, `level=ERROR msg=dropped pod=shop/broken retries=5 error="told to fail by --fail"`)
	for _, retry := range []string{"1", "2", "3", "4", "5"} {
		p.Err.Expect(t, `msg="trying again" pod=shop/broken retry=`+retry+" of=5")
	}
	makePod(t, pods, "web")
	p.Out.Expect(t, "added shop/web")
	if text := p.Out.String() + p.Err.String(); strings.Contains(text, "shop/broken Pending") || strings.Contains(text, "retry=6") {
		t.Errorf("a pod that was dropped is worked on:\n%s", text)
	}
}

// forgetful answers the first watches with 410, in the ways that servers have.
func forgetful(meanwhile func()) evenkeeltest.Handle {
	const gone = `{"kind":"Status","code":410,"reason":"Expired","message":"too old resource version"}`
	var watches atomic.Int32
	return func(w http.ResponseWriter, r *http.Request, server http.Handler) {
		if r.URL.Query().Get("watch") == "" {
			server.ServeHTTP(w, r)
			return
		}
		switch watches.Add(1) {
		case 1:
			meanwhile()
			w.WriteHeader(http.StatusGone)
			_, _ = w.Write([]byte(gone))
		case 2:
			_, _ = w.Write([]byte(`{"type":"ERROR","object":` + gone + "}\n"))
		default:
			server.ServeHTTP(w, r)
		}
	}
}

func TestPlainBeginsAnewWhenTheServerHasForgotten(t *testing.T) {
	env := evenkeeltest.Start(t)
	env.Apply(shopNamespace)
	pods := client.Of[*corev1.Pod](env.Conn()).In("shop")
	makePod(t, pods, "web")
	through := env.InFront(t, forgetful(func() { // what happens now, no watch tells
		deletePod(t, pods, "web")
		makePod(t, pods, "db")
	}))
	p := program.Run(t, func(ctx context.Context, p *program.Program) error {
		return plain(ctx, through, "shop", &p.Out, &p.Err)
	})
	p.Out.Expect(t, "added shop/web Pending")
	p.Out.Expect(t, "added shop/db Pending")
	p.Out.Expect(t, "deleted shop/web")
	setPhase(t, pods, "db", corev1.PodRunning) // and the third watch is a good one
	p.Out.Expect(t, "updated shop/db Running")
}

func TestErrorsTellTheNextStep(t *testing.T) {
	lost := program.Unreachable(t)
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBECONFIG", "")
	t.Setenv("XDG_DATA_HOME", "")
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"no server, plain":    {[]string{"--kubeconfig", lost, "plain"}, []string{"connection refused", "make run"}},
		"no server, informer": {[]string{"--kubeconfig", lost}, []string{"connection refused", "make run"}},
		"no configuration":    {nil, []string{"no cluster is configured", "--kubeconfig"}},
		"another mode":        {[]string{"quickly"}, []string{"neither plain nor informer", "--help"}},
		"flags at the end":    {[]string{"plain", "--fail", "x"}, []string{"flags go first"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := run(t.Context(), test.args, &out, &out)
			for _, want := range test.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("the error %v does not say %q", err, want)
				}
			}
		})
	}
}

func TestHelpHasExamples(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"--help"}, &out, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Usage:", "Examples:", "podwatch --namespace shop plain", "-kubeconfig file"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the help does not have %q:\n%s", want, out.String())
		}
	}
}
