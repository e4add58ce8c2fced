package endpointslice

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/controllers/garbage"
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
	told := events.New(base, events.Options{Component: "endpoint-slice-controller", Logger: o.Logger})
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

// stage is a server with the controller, a node and a service that selects app=web.
func stage(t *testing.T) *evenkeeltest.Env {
	t.Helper()
	env := evenkeeltest.Start(t)
	env.Run(run)
	podstest.AddNode(t, env, "n1", "z1")
	env.Apply(webService)
	return env
}

func key(name string) client.Key { return client.Key{Namespace: "default", Name: name} }

// slicesAre waits until the slices of a service are these, in any order, and returns
// them.
func slicesAre(env *evenkeeltest.Env, service string, want ...string) (out []*discoveryv1.EndpointSlice) {
	slices.Sort(want)
	evenkeeltest.EventuallyAll(env, func(all []*discoveryv1.EndpointSlice) error {
		var got []string
		out = nil
		for _, s := range all {
			if s.Labels[discoveryv1.LabelServiceName] == service && s.Labels[discoveryv1.LabelManagedBy] == manager {
				got, out = append(got, show(s)), append(out, s)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("slices of %s are\n%s\nwant\n%s", service, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		return nil
	})
	return out
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func change[T client.Object](t *testing.T, env *evenkeeltest.Env, name, patch string) T {
	t.Helper()
	k := key(name)
	if _, ok := any(*new(T)).(*corev1.Node); ok {
		k.Namespace = ""
	}
	return must(client.Of[T](env.Conn()).Patch(t.Context(), k, client.MergePatch(patch)))(t)
}

func TestSlicesFollowPods(t *testing.T) {
	env := stage(t)
	first := slicesAre(env, "web", "IPv4")[0]
	podstest.AddPod(t, env, "a", "web", "n1", "10.0.0.1")
	podstest.AddPod(t, env, "other", "shop", "n1", "10.0.0.9")
	s := slicesAre(env, "web", "IPv4 http:8080 [10.0.0.1 ready serving n1 z1]")[0]
	if s.Name != first.Name {
		t.Errorf("slice %s is new, and %s was there", s.Name, first.Name)
	}
	if service := must(client.Of[*corev1.Service](env.Conn()).Get(t.Context(), key("web")))(t); !metav1.IsControlledBy(s, service) || s.Labels["team"] != "a" {
		t.Errorf("owners %v, labels %v", s.OwnerReferences, s.Labels)
	}
	podstest.SetReady(t, env, "a", false)
	slicesAre(env, "web", "IPv4 http:8080 [10.0.0.1 n1 z1]")
	podstest.SetReady(t, env, "a", true)
	slicesAre(env, "web", "IPv4 http:8080 [10.0.0.1 ready serving n1 z1]")
	if err := client.Of[*corev1.Pod](env.Conn()).Delete(t.Context(), key("a")); err != nil {
		t.Fatal(err)
	}
	slicesAre(env, "web", "IPv4 http:8080 [10.0.0.1 serving terminating n1 z1]")
	if err := client.Of[*corev1.Pod](env.Conn()).Delete(t.Context(), key("a"), client.Grace(0)); err != nil {
		t.Fatal(err)
	}
	slicesAre(env, "web", "IPv4")
}

func TestSlicesTellWhenTheirChangeBegan(t *testing.T) {
	env := stage(t)
	podstest.AddPod(t, env, "a", "web", "n1", "10.0.0.1")
	slicesAre(env, "web", "IPv4 http:8080 [10.0.0.1 ready serving n1 z1]")
	_, err := client.Of[*corev1.Pod](env.Conn()).Status().Patch(t.Context(), key("a"), client.MergePatch(
		`{"status":{"conditions":[{"type":"Ready","status":"False","lastTransitionTime":"2101-01-01T00:00:00Z"}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	s := slicesAre(env, "web", "IPv4 http:8080 [10.0.0.1 n1 z1]")[0]
	if got := s.Annotations[corev1.EndpointsLastChangeTriggerTime]; got != "2101-01-01T00:00:00Z" {
		t.Errorf("it began at %q", got)
	}
}

func TestSlicesFollowTheirService(t *testing.T) {
	env := stage(t)
	podstest.AddPod(t, env, "a", "web", "n1", "10.0.0.1")
	slicesAre(env, "web", "IPv4 http:8080 [10.0.0.1 ready serving n1 z1]")
	change[*corev1.Service](t, env, "web", `{"metadata":{"labels":{"team":"b"}},"spec":{"ports":[{"name":"admin","port":81,"targetPort":9090}],"trafficDistribution":"PreferSameZone"}}`)
	s := slicesAre(env, "web", "IPv4 admin:9090 [10.0.0.1 ready serving n1 z1 for z1]")[0]
	if s.Labels["team"] != "b" {
		t.Errorf("labels are %v", s.Labels)
	}
	change[*corev1.Service](t, env, "web", `{"spec":{"selector":null}}`)
	slicesAre(env, "web")
	change[*corev1.Service](t, env, "web", `{"spec":{"selector":{"app":"web"}}}`)
	slicesAre(env, "web", "IPv4 admin:9090 [10.0.0.1 ready serving n1 z1 for z1]")
}

func TestSlicesFollowNodes(t *testing.T) {
	env := stage(t)
	podstest.AddPod(t, env, "a", "web", "n2", "10.0.0.1")
	podstest.AddPod(t, env, "b", "web", "n1", "10.0.0.2")
	slicesAre(env, "web", "IPv4 http:8080 [10.0.0.2 ready serving n1 z1]")
	podstest.AddNode(t, env, "n2", "z2")
	slicesAre(env, "web", "IPv4 http:8080 [10.0.0.2 ready serving n1 z1] [10.0.0.1 ready serving n2 z2]")
	change[*corev1.Node](t, env, "n2", `{"metadata":{"labels":{"topology.kubernetes.io/zone":"z3"}}}`)
	slicesAre(env, "web", "IPv4 http:8080 [10.0.0.2 ready serving n1 z1] [10.0.0.1 ready serving n2 z3]")
}

func TestSlicesAreMendedAndThoseOfOthersLeftAlone(t *testing.T) {
	env := stage(t)
	podstest.AddPod(t, env, "a", "web", "n1", "10.0.0.1")
	const want = "IPv4 http:8080 [10.0.0.1 ready serving n1 z1]"
	s := slicesAre(env, "web", want)[0]
	env.Apply(`
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: mine, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
endpoints: [{addresses: [10.9.9.9]}]
`)
	change[*discoveryv1.EndpointSlice](t, env, s.Name, `{"endpoints":[],"metadata":{"labels":{"team":"mine"}}}`)
	slicesAre(env, "web", want)
	if err := client.Of[*discoveryv1.EndpointSlice](env.Conn()).Delete(t.Context(), key(s.Name)); err != nil {
		t.Fatal(err)
	}
	slicesAre(env, "web", want)
	change[*corev1.Service](t, env, "web", `{"spec":{"selector":null}}`)
	slicesAre(env, "web")
	mine := must(client.Of[*discoveryv1.EndpointSlice](env.Conn()).Get(t.Context(), key("mine")))(t)
	if mine.Generation != 1 || len(mine.Endpoints) != 1 {
		t.Errorf("the slice of another is %v", mine)
	}
}

func TestSlicesGoWithTheirService(t *testing.T) {
	env := stage(t)
	env.Run(func(ctx context.Context, cfg *rest.Config) error {
		base, err := controller.NewBase(cfg, controller.BaseOptions{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			return err
		}
		if err := base.Add(garbage.New(base, nil)); err != nil {
			return err
		}
		return base.Run(ctx)
	})
	podstest.AddPod(t, env, "a", "web", "n1", "10.0.0.1")
	slicesAre(env, "web", "IPv4 http:8080 [10.0.0.1 ready serving n1 z1]")
	if err := client.Of[*corev1.Service](env.Conn()).Delete(t.Context(), key("web")); err != nil {
		t.Fatal(err)
	}
	slicesAre(env, "web")
	env.Apply(webService) // another of the same name
	slicesAre(env, "web", "IPv4 http:8080 [10.0.0.1 ready serving n1 z1]")
}

// Of many pods, a change of one is a write of one slice.
func TestManyPods(t *testing.T) {
	env := evenkeeltest.Start(t)
	podstest.AddNode(t, env, "n1", "z1")
	env.Apply(webService)
	var all [250]string
	for i := range all {
		all[i] = fmt.Sprintf("p%03d", i)
		podstest.AddPod(t, env, all[i], "web", "n1", fmt.Sprintf("10.0.0.%d", i+1))
	}
	env.Run(run)
	before := revisions(env, len(all))
	podstest.SetReady(t, env, all[17], false)
	now := revisions(env, len(all)-1)
	same := 0
	for name, revision := range now {
		if before[name] == revision {
			same++
		}
	}
	if len(now) != 3 || same != 2 {
		t.Errorf("of %d slices %d are the same", len(now), same)
	}
}

// revisions waits until so many endpoints are ready, and returns the slices.
func revisions(env *evenkeeltest.Env, ready int) map[string]string {
	out := map[string]string{}
	evenkeeltest.EventuallyAll(env, func(all []*discoveryv1.EndpointSlice) error {
		n := 0
		clear(out)
		for _, s := range all {
			for _, e := range s.Endpoints {
				if *e.Conditions.Ready && e.TargetRef != nil {
					n++
				}
			}
			if s.Labels[discoveryv1.LabelServiceName] == "web" {
				out[s.Name] = s.ResourceVersion
			}
		}
		if n != ready {
			return fmt.Errorf("%d are ready, want %d", n, ready)
		}
		return nil
	})
	return out
}

func TestConvergesWhenTheServerGoesAway(t *testing.T) {
	for name, trouble := range map[string]func(*evenkeeltest.Env){
		"connections break":  func(env *evenkeeltest.Env) { env.Cut() },
		"the server is away": func(env *evenkeeltest.Env) { env.Restart(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			env := stage(t)
			podstest.AddPod(t, env, "a", "web", "n1", "10.0.0.1")
			trouble(env)
			podstest.AddPod(t, env, "b", "web", "n1", "10.0.0.2")
			slicesAre(env, "web", "IPv4 http:8080 [10.0.0.1 ready serving n1 z1] [10.0.0.2 ready serving n1 z1]")
			podstest.SetReady(t, env, "a", false)
			trouble(env)
			slicesAre(env, "web", "IPv4 http:8080 [10.0.0.1 n1 z1] [10.0.0.2 ready serving n1 z1]")
			trouble(env)
			if err := client.Of[*corev1.Pod](env.Conn()).Delete(t.Context(), key("b"), client.Grace(0)); err != nil {
				t.Fatal(err)
			}
			slicesAre(env, "web", "IPv4 http:8080 [10.0.0.1 n1 z1]")
		})
	}
}
