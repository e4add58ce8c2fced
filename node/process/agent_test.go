//go:build unix

package process_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/node"
	"github.com/even-keel/evenkeel/node/process"
)

const programVariable = "EVENKEEL_TEST_PROGRAM"

// program is what the container of the test runs: a small server that greets as it
// is told, ends badly when it is asked to, and well when it gets a signal.
func program() {
	greeting, err := os.ReadFile(os.Getenv("EVENKEEL_ROOT") + "/etc/app/greeting")
	if err != nil {
		fmt.Println("no greeting:", err)
		os.Exit(1)
	}
	fmt.Printf("%s from %s\n", greeting, os.Getenv("POD"))
	http.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {})
	http.HandleFunc("/crash", func(http.ResponseWriter, *http.Request) {
		fmt.Fprintln(os.Stderr, "asked to crash")
		os.Exit(3)
	})
	go func() { _ = http.ListenAndServe(os.Getenv("LISTEN"), nil) }()
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)
	<-told
	fmt.Println("bye")
}

// agent runs one, and hands over its handler.
func agent(r *process.Runtime, serve func(http.Handler)) func(context.Context, *rest.Config) error {
	return func(ctx context.Context, cfg *rest.Config) error {
		quiet := slog.New(slog.DiscardHandler)
		base, err := controller.NewBase(cfg, controller.BaseOptions{Logger: quiet})
		if err != nil {
			return err
		}
		a := node.New(base, nil, r, node.Options{Nodes: []node.Node{{Name: "n1"}}, Logger: quiet})
		serve(a.Handler())
		for _, c := range a.Controllers() {
			if err := base.Add(c); err != nil {
				return err
			}
		}
		var work sync.WaitGroup
		defer work.Wait()
		work.Go(func() { _ = a.Run(ctx) })
		return base.Run(ctx)
	}
}

func freePort(t *testing.T) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// greeter is a pod that runs the program.
func greeter(t *testing.T, port int) *corev1.Pod {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	field := &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"}}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "greeter"},
		Spec: corev1.PodSpec{
			NodeName: "n1",
			Volumes: []corev1.Volume{{Name: "conf", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: "settings"},
			}}}},
			Containers: []corev1.Container{{
				Name: "app", Image: "none", Command: []string{self},
				Env: []corev1.EnvVar{
					{Name: programVariable, Value: "1"}, {Name: "PORT", Value: fmt.Sprint(port)}, {Name: "LISTEN", Value: "127.0.0.1:$(PORT)"}, {Name: "POD", ValueFrom: field},
				},
				VolumeMounts: []corev1.VolumeMount{{Name: "conf", MountPath: "/etc/app"}},
				ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
					HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt(port)},
				}},
			}},
		},
	}
}

func TestAProgramRunsInAPod(t *testing.T) {
	var handler atomic.Value
	kubelet := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.Load().(http.Handler).ServeHTTP(w, r) }))
	defer kubelet.Close()
	at, err := url.Parse(kubelet.URL)
	if err != nil {
		t.Fatal(err)
	}
	env := evenkeeltest.Start(t, evenkeeltest.Nodes(func(*corev1.Node) (*url.URL, http.RoundTripper, error) { return at, kubelet.Client().Transport, nil }))
	r := open(t, t.TempDir())
	env.Run(agent(r, func(h http.Handler) { handler.Store(h) }))
	registered(env)
	env.Apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {greeting: ahoy}\n")
	pods, port := client.Of[*corev1.Pod](env.Conn()), freePort(t)
	if _, err := pods.Create(t.Context(), greeter(t, port)); err != nil {
		t.Fatal(err)
	}
	key := client.Key{Namespace: "default", Name: "greeter"}
	p := evenkeeltest.Eventually(env, key, evenkeeltest.Condition[*corev1.Pod]("Ready", "True"))
	id := node.PodID{Key: key, UID: p.UID}
	waitForLine(t, r, id, "app", "ahoy from greeter")
	logs := func(query url.Values) string {
		t.Helper()
		return logOf(t, pods, key, query)
	}
	if got := logs(url.Values{"tailLines": {"1"}, "limitBytes": {"4"}}); got != "ahoy" {
		t.Errorf("its log is %q", got)
	}
	follow, err := pods.Stream(t.Context(), key, "log", url.Values{"follow": {"true"}}) // it has begun when this returns
	if err != nil {
		t.Fatal(err)
	}
	followed := make(chan string, 1)
	go func() { followed <- remainder(t, follow) }()
	if p.Status.PodIP != "127.0.0.1" || !strings.HasPrefix(p.Status.ContainerStatuses[0].ContainerID, "process://") {
		t.Errorf("it is %+v", p.Status)
	}

	if res, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/crash", port)); err == nil {
		_ = res.Body.Close()
	}
	p = evenkeeltest.Eventually(env, key, func(p *corev1.Pod) error {
		if c := p.Status.ContainerStatuses[0]; c.RestartCount != 1 || !c.Ready {
			return fmt.Errorf("it is %+v", c)
		}
		return nil
	})
	if last := p.Status.ContainerStatuses[0].LastTerminationState.Terminated; last == nil || last.ExitCode != 3 || last.Reason != "Error" {
		t.Errorf("the last is %+v", last)
	}
	for name, got := range map[string]string{"what was followed": <-followed, "the log of the last": logs(url.Values{"previous": {"true"}})} {
		if got != "ahoy from greeter\nasked to crash\n" {
			t.Errorf("%s is %q", name, got)
		}
	}
	if _, err := pods.Stream(t.Context(), key, "log", url.Values{"container": {"none"}}); err == nil || !strings.Contains(err.Error(), "container none is not valid for pod greeter") {
		t.Errorf("the error is %v", err)
	}

	if err := pods.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	evenkeeltest.EventuallyGone[*corev1.Pod](env, key)
	if left := r.Pods(); len(left) != 0 {
		t.Errorf("the runtime still has %v", left)
	}
	http.DefaultClient.CloseIdleConnections()
}

// logOf reads a log through the API server, to its end.
func logOf(t *testing.T, pods *client.Client[*corev1.Pod], key client.Key, query url.Values) string {
	t.Helper()
	stream, err := pods.Stream(t.Context(), key, "log", query)
	if err != nil {
		t.Error(err)
		return ""
	}
	return remainder(t, stream)
}

// remainder reads a stream to its end.
func remainder(t *testing.T, stream io.ReadCloser) string {
	t.Helper()
	defer func() { _ = stream.Close() }()
	all, err := io.ReadAll(stream)
	if err != nil {
		t.Error(err)
	}
	return string(all)
}
