package manager_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/events"
	"github.com/even-keel/evenkeel/informer"
	"github.com/even-keel/evenkeel/leader"
	"github.com/even-keel/evenkeel/manager"
)

// quiet is for managers whose log nobody reads.
var quiet = slog.New(slog.DiscardHandler)

func newManager(t *testing.T, env *evenkeeltest.Env, o manager.Options) *manager.Manager {
	t.Helper()
	o.Config = env.Config()
	if o.Logger == nil {
		o.Logger = quiet
	}
	m, err := manager.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// run runs a manager until the test ends, or until it is stopped.
func run(t *testing.T, m *manager.Manager) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() { _ = stop() })
	return stop
}

func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for late := time.After(evenkeeltest.DefaultPatience); !is(); {
		select {
		case <-late:
			t.Fatalf("it did not come true that %s", what)
		case <-time.After(time.Millisecond):
		}
	}
}

// ask asks a manager over HTTP.
func ask(t *testing.T, m *manager.Manager, path string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	m.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: data}
}

// inDefault leaves out what servers make by themselves.
var inDefault = controller.With(informer.InNamespace("default"))

// copier keeps a Secret for each ConfigMap, with an event and a count of its own
// writes in an annotation.
func copier(m *manager.Manager) *controller.Controller {
	secrets, told := client.Of[*corev1.Secret](m), m.Events("copier")
	return controller.NewTyped("copier", func(ctx context.Context, _ controller.Request, of *corev1.ConfigMap) (controller.Result, error) {
		if of == nil || of.Name == "kube-root-ca.crt" {
			return controller.Done, nil
		}
		_, outcome, err := controller.CreateOrUpdate(ctx, secrets, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: of.Name}},
			func(s *corev1.Secret) error {
				s.Data = map[string][]byte{}
				for k, v := range of.Data {
					s.Data[k] = []byte(v)
				}
				return controller.SetController(m, of, s)
			})
		if err == nil && outcome != controller.Unchanged {
			told.Event(of, events.Normal, "Copied", "to secret %s", of.Name)
		}
		return controller.Done, err
	}, controller.For[*corev1.ConfigMap](inDefault), controller.Owns[*corev1.Secret](inDefault))
}

func copied(t *testing.T, env *evenkeeltest.Env, name, key, value string) {
	t.Helper()
	evenkeeltest.Eventually(env, client.Key{Namespace: "default", Name: name}, func(s *corev1.Secret) error {
		if string(s.Data[key]) != value {
			return fmt.Errorf("%s is %q", key, s.Data[key])
		}
		return nil
	})
}

func TestAManagerRunsControllersAndTellsOfIt(t *testing.T) {
	env := evenkeeltest.Start(t)
	m := newManager(t, env, manager.Options{})
	m.Add(copier(m))
	stop := run(t, m)
	made, err := client.Of[*corev1.ConfigMap](env.Conn()).Create(t.Context(), configMap("a", map[string]string{"k": "v"}))
	if err != nil {
		t.Fatal(err)
	}
	copied(t, env, "a", "k", "v")
	evenkeeltest.EventuallyAll(env, func(all []*eventsv1.Event) error {
		for _, e := range all {
			if e.Reason == "Copied" && e.Note == "to secret a" && e.Regarding.Name == "a" && e.ReportingController == "copier" {
				return nil
			}
		}
		return errors.New("there is no event")
	})
	until(t, "it is ready", func() bool { code, _ := ask(t, m, "/readyz"); return code == http.StatusOK })
	for path, want := range map[string]string{
		"/healthz": "ok", "/livez": "ok", "/readyz": "ok",
		"/readyz?verbose": "[+]informers ok\nreadyz check passed\n", "/livez/ping": "ok",
	} {
		if code, body := ask(t, m, path); code != http.StatusOK || body != want {
			t.Errorf("%s: %d %q", path, code, body)
		}
	}
	if code, _ := ask(t, m, "/readyz/nothing"); code != http.StatusNotFound {
		t.Errorf("a check that is not there: %d", code)
	}
	testMetrics(t, m)
	testChain(t, env, testDump(t, m, made))
	if err := stop(); err != nil {
		t.Error(err)
	}
	if err := m.Run(t.Context()); !errors.Is(err, manager.ErrRan) {
		t.Error(err)
	}
}

func testMetrics(t *testing.T, m *manager.Manager) {
	_, body := ask(t, m, "/metrics")
	for _, want := range []string{
		`workqueue_depth{controller="copier",name="copier"} 0`, "workqueue_adds_total{", "workqueue_queue_duration_seconds_bucket{", "workqueue_work_duration_seconds_count{",
		"workqueue_unfinished_work_seconds{", "workqueue_longest_running_processor_seconds{", "workqueue_retries_total{",
		`controller_runtime_reconcile_total{controller="copier",result="success"}`, `controller_runtime_reconcile_total{controller="copier",result="error"} 0`,
		`controller_runtime_reconcile_total{controller="copier",result="requeue"} 0`, `controller_runtime_reconcile_total{controller="copier",result="requeue_after"} 0`,
		`controller_runtime_reconcile_errors_total{controller="copier"} 0`, `controller_runtime_reconcile_time_seconds_bucket{controller="copier",le="0.005"}`,
		`controller_runtime_reconcile_panics_total{controller="copier"} 0`, `controller_runtime_max_concurrent_reconciles{controller="copier"} 1`,
		`controller_runtime_active_workers{controller="copier"} 0`, `rest_client_requests_total{code="201",`, "rest_client_request_duration_seconds_bucket{",
		`evenkeel_informer_synced{kind="ConfigMap"} 1`, "evenkeel_informer_bytes{", "go_goroutines", `evenkeel_hot_loops{controller="copier"} 0`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the metrics have not %s", want)
		}
	}
	if t.Failed() {
		t.Log(body)
	}
}

// testChain goes from a revision to the reconcile that wrote it: the server knows.
func testChain(t *testing.T, env *evenkeeltest.Env, r controller.Reconcile) {
	body, err := env.Conn().Get(t.Context(), "/debug/evenkeel/writes")
	if err != nil {
		t.Fatal(err)
	}
	var told struct {
		Writes []struct {
			Revision                  int64
			Resource, Name, Reconcile string
		}
	}
	if err := json.Unmarshal(body, &told); err != nil {
		t.Fatal(err)
	}
	for _, w := range told.Writes {
		if strconv.FormatInt(w.Revision, 10) == r.Writes[0].Revision {
			if w.Resource != "secrets" || w.Name != "a" || w.Reconcile != r.ID {
				t.Errorf("%+v was written by %s", w, r.ID)
			}
			return
		}
	}
	t.Errorf("the server does not know of %s: %s", r.Writes[0].Revision, body)
}

func testDump(t *testing.T, m *manager.Manager, made *corev1.ConfigMap) controller.Reconcile {
	_, body := ask(t, m, "/debug/evenkeel")
	var d manager.Dump
	if err := json.Unmarshal([]byte(body), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Controllers) != 1 || len(d.Informers) != 2 || d.Informers[0].Bytes == 0 || d.Informers[0].Objects == 0 || !d.Leading || d.Events["copier"].Recorded == 0 {
		t.Errorf("%s", body)
	}
	for _, r := range d.Controllers[0].Recent {
		if r.Key == "default/a" && len(r.Writes) == 1 {
			if c := r.Causes[0]; c.Kind != "ConfigMap" || c.New != made.ResourceVersion || r.Writes[0].Kind != "secrets" || r.Writes[0].Verb != "create" || r.Writes[0].Revision == "" {
				t.Errorf("%+v", r)
			}
			return r
		}
	}
	t.Fatalf("the reconcile is not shown: %s", body)
	return controller.Reconcile{}
}

func TestReadinessNamesWhatIsMissing(t *testing.T) {
	env := evenkeeltest.Start(t)
	m := newManager(t, env, manager.Options{})
	widget := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	m.Add(copier(m), controller.New("widgets", func(context.Context, controller.Request) (controller.Result, error) { return controller.Done, nil },
		controller.For[*unstructured.Unstructured](controller.Kind(widget))))
	m.CheckReady("mood", func() error { return errors.New("sulking") })
	run(t, m)
	until(t, "the missing kind is named", func() bool {
		code, body := ask(t, m, "/readyz")
		return code == http.StatusServiceUnavailable && strings.Contains(body, "[-]informers failed: Widget.example.com") &&
			strings.Contains(body, `no matches for kind "Widget"`) && strings.Contains(body, "[-]mood failed: sulking")
	})
	if _, err := client.Of[*corev1.ConfigMap](m).Create(t.Context(), configMap("a", nil)); err != nil {
		t.Fatal(err)
	}
	copied(t, env, "a", "", "") // the other works
	if d := m.Dump(); !strings.Contains(d.Controllers[1].Lacks, "cannot watch Widget") || d.Controllers[0].Lacks != "" {
		t.Errorf("%+v", d.Controllers)
	}
	if code, _ := ask(t, m, "/livez"); code != http.StatusOK {
		t.Error("it should be restarted")
	}
}

func TestWhatIsWrongIsAnErrorOfRun(t *testing.T) {
	env := evenkeeltest.Start(t)
	nothing := func(context.Context, controller.Request) (controller.Result, error) { return controller.Done, nil }
	boom := errors.New("boom")
	for name, test := range map[string]struct {
		add  func(*manager.Manager)
		want string
	}{
		"a bad controller": {func(m *manager.Manager) { m.Add(controller.New("a", nothing)) }, "it has no source"},
		"a name twice": {func(m *manager.Manager) {
			m.Add(controller.New("a", nothing, controller.For[*corev1.Pod]()), controller.New("a", nothing, controller.For[*corev1.Secret]()))
		}, "another has that name"},
		"a task fails":            {func(m *manager.Manager) { m.Go("task", func(context.Context) error { return boom }) }, "task: boom"},
		"a task everywhere fails": {func(m *manager.Manager) { m.GoEverywhere("task", func(context.Context) error { return boom }) }, "task: boom"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newManager(t, env, manager.Options{})
			test.add(m)
			if err := m.Run(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v", err)
			}
		})
	}
	m := newManager(t, env, manager.Options{Listen: "256.0.0.1:1"})
	if err := m.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "listen for health checks") {
		t.Error(err)
	}
}

// What stands on something is stopped before it.
func TestAllStopsInOrder(t *testing.T) {
	env := evenkeeltest.Start(t)
	m := newManager(t, env, manager.Options{Grace: 3 * time.Second})
	var mu sync.Mutex
	var order []string
	ended := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, what)
	}
	at := make(chan struct{})
	var once sync.Once
	told := m.Events("slow")
	m.Add(controller.NewTyped("slow", func(ctx context.Context, _ controller.Request, of *corev1.ConfigMap) (controller.Result, error) {
		once.Do(func() { close(at) })
		<-ctx.Done() // as if it did not finish in the grace period
		ended("controller")
		told.Event(of, events.Warning, "Stopped", "in the middle")
		return controller.Done, nil
	}, controller.For[*corev1.ConfigMap](inDefault)))
	m.GoEverywhere("everywhere", func(ctx context.Context) error {
		<-ctx.Done()
		if len(m.Dump().Informers) == 0 {
			ended("caches")
		}
		ended("everywhere")
		return ctx.Err()
	})
	stop := run(t, m)
	if _, err := client.Of[*corev1.ConfigMap](env.Conn()).Create(t.Context(), configMap("a", nil)); err != nil {
		t.Fatal(err)
	}
	<-at
	if err := stop(); err != nil {
		t.Error(err)
	}
	if strings.Join(order, " ") != "controller everywhere" {
		t.Errorf("%v", order)
	}
	evenkeeltest.EventuallyAll(env, func(all []*eventsv1.Event) error { // pending events were written
		for _, e := range all {
			if e.Reason == "Stopped" {
				return nil
			}
		}
		return errors.New("the event is lost")
	})
}

func TestWhatDoesNotStopIsNamed(t *testing.T) {
	env := evenkeeltest.Start(t)
	m := newManager(t, env, manager.Options{Grace: 30 * time.Millisecond})
	at, go_on := make(chan struct{}), make(chan struct{})
	var once sync.Once
	m.Add(controller.New("stubborn", func(context.Context, controller.Request) (controller.Result, error) {
		once.Do(func() { close(at) })
		<-go_on
		return controller.Done, nil
	}, controller.For[*corev1.ConfigMap]()))
	stop := run(t, m)
	<-at
	if err := stop(); !errors.Is(err, manager.ErrGrace) || !strings.Contains(err.Error(), "controller stubborn with 1 reconciles") {
		t.Error(err)
	}
	close(go_on)
	until(t, "it has ended after all", func() bool { return m.Controllers()[0].Status().Phase == controller.Stopped })
}

func TestSpansTellOfReconcilesAndRequests(t *testing.T) {
	env := evenkeeltest.Start(t)
	spans := tracetest.NewSpanRecorder()
	provider := trace.NewTracerProvider(trace.WithSpanProcessor(spans))
	m := newManager(t, env, manager.Options{Tracer: provider})
	m.Add(copier(m))
	stop := run(t, m)
	if _, err := client.Of[*corev1.ConfigMap](env.Conn()).Create(t.Context(), configMap("a", nil)); err != nil {
		t.Fatal(err)
	}
	copied(t, env, "a", "", "")
	find := func(wants func(trace.ReadOnlySpan) bool) trace.ReadOnlySpan {
		for _, s := range spans.Ended() {
			if wants(s) {
				return s
			}
		}
		return nil
	}
	attribute := func(s trace.ReadOnlySpan, key string) string {
		for _, a := range s.Attributes() {
			if string(a.Key) == key {
				return a.Value.String()
			}
		}
		return ""
	}
	var write, caused trace.ReadOnlySpan
	until(t, "the spans are there", func() bool {
		write = find(func(s trace.ReadOnlySpan) bool { return s.Name() == "POST /api/v1/namespaces/default/secrets" })
		caused = find(func(s trace.ReadOnlySpan) bool { return len(s.Links()) > 0 })
		return write != nil && caused != nil
	})
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	first := find(func(s trace.ReadOnlySpan) bool { return s.SpanContext().SpanID() == write.Parent().SpanID() })
	if first == nil || first.Name() != "reconcile copier" || attribute(first, "key") != "default/a" || attribute(first, "result") != "success" || attribute(write, "http.response.status_code") != "201" {
		t.Errorf("%v", first)
	}
	// The reconcile that the new secret caused is linked to the one that wrote it.
	if link := caused.Links()[0]; link.SpanContext.TraceID() != first.SpanContext().TraceID() {
		t.Errorf("%+v", caused.Links())
	}
}

func TestFlags(t *testing.T) {
	var o manager.Options
	f := flag.NewFlagSet("foo", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	o.AddFlags(f)
	if err := f.Parse([]string{"-kubeconfig", "k", "-listen", ":1", "-leader", "kube-system/foo", "-grace", "5s"}); err != nil {
		t.Fatal(err)
	}
	if o.Cluster.Kubeconfig != "k" || o.Listen != ":1" || o.Leader.Namespace != "kube-system" || o.Leader.Name != "foo" || o.Grace != 5*time.Second {
		t.Errorf("%+v", o)
	}
	if err := f.Parse([]string{"-leader", "foo"}); err == nil || !strings.Contains(err.Error(), "namespace/name") {
		t.Error(err)
	}
}

// The rest is about two processes, one of which leads: the test runs itself.

const roleVariable = "EVENKEEL_MANAGER_TEST_KUBECONFIG"

func TestMain(m *testing.M) {
	if kubeconfig := os.Getenv(roleVariable); kubeconfig != "" {
		os.Exit(manage(kubeconfig))
	}
	os.Exit(m.Run())
}

// manage is a program with a manager, and prints when it leads.
func manage(kubeconfig string) int {
	m, err := manager.New(manager.Options{
		Cluster: client.ConfigOptions{Kubeconfig: kubeconfig}, Logger: quiet,
		Leader: &leader.Options{Namespace: "default", Name: "copier", LeaseDuration: time.Second},
	})
	if err == nil {
		m.Add(copier(m))
		m.Go("announce", func(context.Context) error {
			fmt.Println("leading")
			return nil
		})
		m.GoEverywhere("announce", func(ctx context.Context) error {
			if err := m.Informers().WaitForSync(ctx); err != nil {
				return err
			}
			fmt.Println("warm")
			return nil
		})
		err = m.Run(manager.Signals())
	}
	if err != nil {
		fmt.Println("error:", err)
		return 1
	}
	fmt.Println("ended")
	return 0
}

// process is a manager in a process of its own.
type process struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

func startProcess(t *testing.T, env *evenkeeltest.Env) *process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: exec.Command(exe)}
	p.cmd.Env = append(os.Environ(), roleVariable+"="+env.Kubeconfig())
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.lines = bufio.NewScanner(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
	return p
}

// says waits until the process prints a line.
func (p *process) says(t *testing.T, want string) {
	t.Helper()
	for p.lines.Scan() {
		if p.lines.Text() == want {
			return
		}
	}
	t.Fatalf("the process ended and did not say %q", want)
}

func TestAnotherTakesOverWhenTheLeaderIsKilled(t *testing.T) {
	env := evenkeeltest.Start(t)
	maps := client.Of[*corev1.ConfigMap](env.Conn())
	create := func(from, to int) {
		for i := from; i < to; i++ {
			if _, err := maps.Create(t.Context(), configMap("m"+strconv.Itoa(i), map[string]string{"i": strconv.Itoa(i)})); err != nil {
				t.Fatal(err)
			}
		}
	}
	a := startProcess(t, env)
	a.says(t, "leading")
	b := startProcess(t, env)
	b.says(t, "warm") // its caches are full, and it does not lead
	create(0, 20)
	copied(t, env, "m0", "i", "0")
	if err := a.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	create(20, 40)
	b.says(t, "leading")
	for i := range 40 {
		copied(t, env, "m"+strconv.Itoa(i), "i", strconv.Itoa(i))
	}
	// One that is asked to stop lets another lead at once.
	c := startProcess(t, env)
	c.says(t, "warm")
	if err := b.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	b.says(t, "ended")
	c.says(t, "leading")
	create(40, 41)
	copied(t, env, "m40", "i", "40")
}
