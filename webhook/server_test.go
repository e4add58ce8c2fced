package webhook_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/leader"
	"github.com/even-keel/evenkeel/manager"
	"github.com/even-keel/evenkeel/webhook"
)

func allow[T client.Object](context.Context, *webhook.Request[T]) error { return nil }

func TestReviewsComeByHTTP1And2(t *testing.T) {
	env := evenkeeltest.Start(t)
	run(t, webhook.New(env.Conn(), webhook.Options{Name: "pods", Logger: quiet}, webhook.Mutate(allow[*corev1.Pod])))
	c, err := client.Of[*admissionregistrationv1.MutatingWebhookConfiguration](env.Conn()).Get(t.Context(), client.Key{Name: "pods"})
	if err != nil {
		t.Fatal(err)
	}
	at := c.Webhooks[0].ClientConfig
	for proto, http1 := range map[string]bool{"HTTP/1.1": true, "HTTP/2.0": false} {
		if resp, _ := newCaller(t, *at.URL, at.CABundle, http1).post(t, recorded(t, "pod-create")); resp.Proto != proto || resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %s %s", proto, resp.Proto, resp.Status)
		}
	}
}

func TestWhatIsTooLargeIsNotRead(t *testing.T) {
	s := webhook.New(offline(t), webhook.Options{Unregistered: true, MaxReview: 100, MaxConversion: 200, Logger: quiet},
		webhook.Mutate(allow[*corev1.Pod]), conversions())
	for path, limit := range map[string]int{"/mutate--v1-pod": 100, "/convert": 200} {
		for size, want := range map[int]int{limit: http.StatusBadRequest, limit + 1: http.StatusRequestEntityTooLarge} {
			if code, text := serve(t, s, path, []byte(strings.Repeat("x", size))); code != want {
				t.Errorf("%s, %d bytes: %d %s", path, size, code, text)
			}
		}
	}
}

func TestTheServerEndsAfterItsAnswers(t *testing.T) {
	env := evenkeeltest.Start(t)
	began, goOn := make(chan struct{}), make(chan struct{})
	s := webhook.New(env.Conn(), webhook.Options{Name: "pods", Logger: quiet},
		webhook.Mutate(func(context.Context, *webhook.Request[*corev1.Pod]) error {
			close(began)
			<-goOn
			return nil
		}))
	stop := run(t, s)
	c, body := callerOf(t, env.Conn(), "pods"), recorded(t, "pod-create")
	answered := make(chan int, 1)
	go func() {
		resp, err := c.http.Post(c.url, "application/json", bytes.NewReader(body))
		if err != nil {
			answered <- 0
			return
		}
		_ = resp.Body.Close()
		answered <- resp.StatusCode
	}()
	<-began
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		stop()
	}()
	eventually(t, func() error {
		if s.Ready() == nil {
			return errors.New("it is still ready")
		}
		return nil
	})
	select {
	case <-stopped:
		t.Error("it did not wait for the request")
	default:
	}
	close(goOn)
	if code := <-answered; code != http.StatusOK {
		t.Error(code)
	}
	<-stopped
}

func TestRequestsAreCutOffAfterTheGrace(t *testing.T) {
	env := evenkeeltest.Start(t)
	began, ended := make(chan struct{}), make(chan struct{})
	stop := run(t, webhook.New(env.Conn(), webhook.Options{Name: "pods", Grace: time.Millisecond, Logger: quiet},
		webhook.Mutate(func(ctx context.Context, _ *webhook.Request[*corev1.Pod]) error {
			close(began)
			<-ctx.Done()
			close(ended)
			return nil
		})))
	c, body := callerOf(t, env.Conn(), "pods"), recorded(t, "pod-create")
	answered := make(chan error, 1)
	go func() {
		resp, err := c.http.Post(c.url, "application/json", strings.NewReader(string(body)))
		if err == nil {
			_ = resp.Body.Close()
		}
		answered <- err
	}()
	<-began
	stop()
	<-ended
	if err := <-answered; err == nil {
		t.Error("the request was answered")
	}
}

func TestFilesAreServed(t *testing.T) {
	env := evenkeeltest.Start(t)
	source := webhook.New(env.Conn(), webhook.Options{Name: "source", Secret: client.Key{Namespace: "default", Name: "certs"}, Logger: quiet},
		webhook.Mutate(allow[*corev1.Pod]))
	run(t, source)
	secret, err := client.Of[*corev1.Secret](env.Conn()).Get(t.Context(), client.Key{Namespace: "default", Name: "certs"})
	if err != nil {
		t.Fatal(err)
	}
	cert, key := writeFile(t, secret.Data["tls.crt"]), writeFile(t, secret.Data["tls.key"])
	run(t, webhook.New(env.Conn(), webhook.Options{Name: "pods", CertFile: cert, KeyFile: key, CAFile: cert, Logger: quiet},
		webhook.Mutate(allow[*corev1.Pod])))
	if answer := callerOf(t, env.Conn(), "pods").review(t, recorded(t, "pod-create")); !answer.Allowed {
		t.Error(answer)
	}
}

// Replicas that start at once end up with the same certificates, for the service.
func TestReplicasShareCertificates(t *testing.T) {
	env := evenkeeltest.Start(t)
	options := webhook.Options{
		Name: "pods", Listen: "127.0.0.1:0", Secret: client.Key{Namespace: "default", Name: "certs"},
		Service: client.Key{Namespace: "default", Name: "hook"}, ServicePort: 8443, Logger: quiet,
	}
	var replicas []*webhook.Server
	for range 3 {
		s := webhook.New(env.Conn(), options, webhook.Mutate(allow[*corev1.Pod]))
		env.Run(func(ctx context.Context, _ *rest.Config) error { return s.Run(ctx) })
		replicas = append(replicas, s)
	}
	for _, s := range replicas {
		eventually(t, s.Ready)
	}
	c, err := client.Of[*admissionregistrationv1.MutatingWebhookConfiguration](env.Conn()).Get(t.Context(), client.Key{Name: "pods"})
	if err != nil {
		t.Fatal(err)
	}
	at := c.Webhooks[0].ClientConfig
	want := &admissionregistrationv1.ServiceReference{Namespace: "default", Name: "hook", Port: new(int32(8443)), Path: new("/mutate--v1-pod")}
	if diff := cmp.Diff(want, at.Service); diff != "" || at.URL != nil {
		t.Errorf("%v: %s", at.URL, diff)
	}
	for _, s := range replicas {
		call := newCaller(t, "https://"+s.Addr().String()+"/mutate--v1-pod", at.CABundle, false)
		call.http.Transport.(*http.Transport).TLSClientConfig.ServerName = "hook.default.svc"
		if answer := call.review(t, recorded(t, "pod-create")); !answer.Allowed {
			t.Error(answer)
		}
	}
}

func TestHooksAreRegistered(t *testing.T) {
	env := startWithBoats(t)
	ignore := webhook.Configure(func(w *admissionregistrationv1.MutatingWebhook) {
		w.FailurePolicy = new(admissionregistrationv1.Ignore)
		w.Rules[0].Resources = append(w.Rules[0].Resources, "boats/status")
		w.TimeoutSeconds = new(int32(3))
	})
	s := webhook.New(env.Conn(), webhook.Options{Name: "boat-operator", Logger: quiet},
		webhook.Mutate(allow[*Boat]), webhook.Mutate(allow[*corev1.Pod]),
		webhook.Validate(allow[*Boat], ignore, webhook.On(admissionv1.Delete)),
		webhook.Validate(allow[*policyv1.Eviction], webhook.Resource(corev1.SchemeGroupVersion.WithResource("pods/eviction"))))
	run(t, s)
	m, err := client.Of[*admissionregistrationv1.MutatingWebhookConfiguration](env.Conn()).Get(t.Context(), client.Key{Name: "boat-operator"})
	if err != nil {
		t.Fatal(err)
	}
	v, err := client.Of[*admissionregistrationv1.ValidatingWebhookConfiguration](env.Conn()).Get(t.Context(), client.Key{Name: "boat-operator"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range m.Webhooks {
		got = append(got, fmt.Sprint(w.Name, " ", w.Rules[0].Operations, w.Rules[0].Resources, *w.FailurePolicy, " ", *w.SideEffects, " ", *w.TimeoutSeconds, " ", *w.ClientConfig.URL))
	}
	for _, w := range v.Webhooks {
		got = append(got, fmt.Sprint(w.Name, " ", w.Rules[0].Operations, w.Rules[0].Resources, *w.FailurePolicy, " ", *w.SideEffects, " ", *w.TimeoutSeconds, " ", *w.ClientConfig.URL))
	}
	at := "https://" + s.Addr().String()
	want := []string{
		"mutate.boat.v1.example.com.boat-operator [CREATE UPDATE] [boats]Fail None 10 " + at + "/mutate-example-com-v1-boat",
		"mutate.pod.v1.boat-operator [CREATE UPDATE] [pods]Fail None 10 " + at + "/mutate--v1-pod",
		"validate.boat.v1.example.com.boat-operator [DELETE] [boats boats/status]Ignore None 3 " + at + "/validate-example-com-v1-boat",
		"validate.eviction.v1.policy.boat-operator [CREATE UPDATE] [pods/eviction]Fail None 10 " + at + "/validate-policy-v1-eviction",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A kind that does not exist yet keeps the server waiting, and nobody else.
func TestAKindThatComesLaterIsRegistered(t *testing.T) {
	env := evenkeeltest.Start(t)
	s := webhook.New(env.Conn(), webhook.Options{Name: "boats", Logger: quiet}, webhook.Validate(allow[*Boat]), conversions())
	env.Run(func(ctx context.Context, _ *rest.Config) error { return s.Run(ctx) })
	eventually(t, func() error {
		if err := s.Ready(); err == nil || !strings.Contains(err.Error(), "Boat") {
			return fmt.Errorf("it says: %v", err)
		}
		return nil
	})
	applyDefinition(t, env.Conn())
	eventually(t, s.Ready)
	checkConversion(t, env.Conn())
}

func TestAManagerRunsWebhooksOnStandbys(t *testing.T) {
	env := evenkeeltest.Start(t)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "l"}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: new("another"), LeaseDurationSeconds: new(int32(3600)), RenewTime: &metav1.MicroTime{Time: time.Now()},
	}}
	if _, err := client.Of[*coordinationv1.Lease](env.Conn()).Create(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	mgr, err := manager.New(manager.Options{Config: env.Config(), Logger: quiet, Leader: &leader.Options{Namespace: "default", Name: "l"}})
	if err != nil {
		t.Fatal(err)
	}
	s := webhook.New(mgr, webhook.Options{Name: "pods", Logger: quiet}, webhook.Mutate(allow[*corev1.Pod]))
	s.AddTo(mgr)
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		mgr.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code, w.Body.String()
	}
	if code, text := get("/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(text, "[-]webhooks failed: not listening") {
		t.Errorf("%d %s", code, text)
	}
	env.Run(func(ctx context.Context, _ *rest.Config) error { return mgr.Run(ctx) })
	eventually(t, func() error {
		if code, text := get("/readyz/webhooks"); code != http.StatusOK {
			return fmt.Errorf("%d %s", code, text)
		}
		return nil
	})
	callerOf(t, env.Conn(), "pods").review(t, recorded(t, "pod-create"))
	eventually(t, func() error {
		_, text := get("/metrics")
		for _, line := range []string{
			`controller_runtime_webhook_requests_total{code="200",webhook="/mutate--v1-pod"} 1`,
			`controller_runtime_webhook_requests_in_flight{webhook="/mutate--v1-pod"} 0`,
			`controller_runtime_webhook_latency_seconds_count{webhook="/mutate--v1-pod"} 1`,
			`controller_runtime_webhook_panics_total 0`,
		} {
			if !strings.Contains(text, line) {
				return fmt.Errorf("no %s", line)
			}
		}
		return nil
	})
	if mgr.Leading() {
		t.Error("it leads")
	}
}

// A connection that comes before there is a certificate is refused, and no more.
func TestConnectionsBeforeCertificatesAreRefused(t *testing.T) {
	s := webhook.New(offline(t), webhook.Options{Unregistered: true, CertFile: "none", KeyFile: "none", Logger: quiet})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	eventually(t, func() error {
		if s.Addr() == nil {
			return errors.New("it does not listen")
		}
		return nil
	})
	if c, err := tls.Dial("tcp", s.Addr().String(), &tls.Config{InsecureSkipVerify: true}); err == nil {
		t.Error("there was a handshake")
		_ = c.Close()
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
