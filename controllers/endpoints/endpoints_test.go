package endpoints

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/controllers/podstest"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/events"
)

func TestMain(m *testing.M) { evenkeeltest.Main(m) }

// run is a program with the controller.
func run(ctx context.Context, cfg *rest.Config) error {
	o := controller.BaseOptions{Logger: slog.New(slog.DiscardHandler)}
	o.Informers.DetectMutations = true
	base, err := controller.NewBase(cfg, o)
	if err != nil {
		return err
	}
	told := events.New(base, events.Options{Component: "endpoint-controller", Logger: o.Logger})
	if err := base.Add(New(base, told)); err != nil {
		return err
	}
	var g errgroup.Group
	g.Go(func() error { return told.Run(ctx) })
	g.Go(func() error { return base.Run(ctx) })
	return g.Wait()
}

const webService = `
apiVersion: v1
kind: Service
metadata: {name: web, labels: {team: a}}
spec:
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: http}]
`

func key(name string) client.Key { return client.Key{Namespace: "default", Name: name} }

// are waits until the Endpoints of a name are these.
func are(env *evenkeeltest.Env, name, want string) *corev1.Endpoints {
	return evenkeeltest.Eventually(env, key(name), func(e *corev1.Endpoints) error {
		if got := show(e); got != want || !mine(e) {
			return fmt.Errorf("endpoints are %q, %v, want %q", got, e.Labels, want)
		}
		return nil
	})
}

func change(t *testing.T, env *evenkeeltest.Env, patch string) {
	t.Helper()
	if _, err := client.Of[*corev1.Service](env.Conn()).Patch(t.Context(), key("web"), client.MergePatch(patch)); err != nil {
		t.Fatal(err)
	}
}

func remove[T client.Object](t *testing.T, env *evenkeeltest.Env, name string, opts ...client.DeleteOption) {
	t.Helper()
	if err := client.Of[T](env.Conn()).Delete(t.Context(), key(name), opts...); err != nil {
		t.Fatal(err)
	}
}

func TestEndpointsFollowPodsAndServices(t *testing.T) {
	env := evenkeeltest.Start(t)
	env.Run(run)
	env.Apply(webService)
	are(env, "web", "")
	podstest.AddPod(t, env, "a", "web", "n1", "10.0.0.1")
	podstest.AddPod(t, env, "b", "web", "n1", "10.0.0.2")
	podstest.AddPod(t, env, "other", "shop", "n1", "10.0.0.9")
	are(env, "web", "http:8080 +10.0.0.1 +10.0.0.2")
	podstest.SetReady(t, env, "a", false)
	are(env, "web", "http:8080 +10.0.0.2 -10.0.0.1")
	remove[*corev1.Pod](t, env, "b")
	are(env, "web", "http:8080 -10.0.0.1")
	change(t, env, `{"metadata":{"labels":{"team":"b"}},"spec":{"publishNotReadyAddresses":true}}`)
	e := are(env, "web", "http:8080 +10.0.0.1 +10.0.0.2")
	if e.Labels["team"] != "b" || e.Annotations[corev1.EndpointsLastChangeTriggerTime] != "" {
		t.Errorf("labels %v, annotations %v", e.Labels, e.Annotations)
	}
	remove[*corev1.Endpoints](t, env, "web")
	are(env, "web", "http:8080 +10.0.0.1 +10.0.0.2")
	// Without a selector they are for people to write, and stay. That it is gone is known
	// once a service that comes after is.
	change(t, env, `{"spec":{"selector":null}}`)
	env.Apply(`{apiVersion: v1, kind: Service, metadata: {name: last}, spec: {selector: {app: web}, ports: [{port: 80}]}}`)
	are(env, "last", ":80 -10.0.0.1")
	_, err := client.Of[*corev1.Endpoints](env.Conn()).Patch(t.Context(), key("web"), client.MergePatch(`{"subsets":[{"addresses":[{"ip":"10.9.9.9"}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	podstest.SetReady(t, env, "a", true)
	are(env, "last", ":80 +10.0.0.1")
	are(env, "web", "+10.9.9.9")
	remove[*corev1.Service](t, env, "web")
	evenkeeltest.EventuallyGone[*corev1.Endpoints](env, key("web"))
}

// Endpoints go with their service whoever wrote them, and those without a service are
// left to whom they belong.
func TestEndpointsGoWithTheirService(t *testing.T) {
	env := evenkeeltest.Start(t)
	const byHand = "{apiVersion: v1, kind: Endpoints, metadata: {name: %s, labels: %s}, subsets: [{addresses: [{ip: 10.9.9.9}]}]}"
	env.Apply(fmt.Sprintf(byHand, "alone", "{}"), fmt.Sprintf(byHand, "left", "{endpoints.kubernetes.io/managed-by: endpoint-controller}"),
		`{apiVersion: v1, kind: Service, metadata: {name: free}, spec: {ports: [{port: 80}]}}`, fmt.Sprintf(byHand, "free", "{}"))
	env.Run(run)
	evenkeeltest.EventuallyGone[*corev1.Endpoints](env, key("left"))
	remove[*corev1.Service](t, env, "free")
	evenkeeltest.EventuallyGone[*corev1.Endpoints](env, key("free"))
	if _, err := client.Of[*corev1.Endpoints](env.Conn()).Get(t.Context(), key("alone")); err != nil {
		t.Error(err)
	}
}

func TestConvergesWhenTheServerGoesAway(t *testing.T) {
	for name, trouble := range map[string]func(*evenkeeltest.Env){
		"connections break":  func(env *evenkeeltest.Env) { env.Cut() },
		"the server is away": func(env *evenkeeltest.Env) { env.Restart(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			env := evenkeeltest.Start(t)
			env.Run(run)
			env.Apply(webService)
			podstest.AddPod(t, env, "a", "web", "n1", "10.0.0.1")
			trouble(env)
			podstest.AddPod(t, env, "b", "web", "n1", "10.0.0.2")
			are(env, "web", "http:8080 +10.0.0.1 +10.0.0.2")
			podstest.SetReady(t, env, "a", false)
			trouble(env)
			are(env, "web", "http:8080 +10.0.0.2 -10.0.0.1")
			trouble(env)
			remove[*corev1.Service](t, env, "web")
			evenkeeltest.EventuallyGone[*corev1.Endpoints](env, key("web"))
		})
	}
}
