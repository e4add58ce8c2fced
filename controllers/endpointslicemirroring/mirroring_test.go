package endpointslicemirroring

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/events"
)

func TestMain(m *testing.M) { evenkeeltest.Main(m) }

// show is a slice in one line.
func show(s *discoveryv1.EndpointSlice) string {
	out := string(s.AddressType)
	for _, p := range s.Ports {
		out += fmt.Sprintf(" %s:%d", *p.Name, *p.Port)
	}
	for _, e := range s.Endpoints {
		out += " " + map[bool]string{true: "+", false: "-"}[*e.Conditions.Ready] + strings.Join(e.Addresses, ",")
		if e.Hostname != nil {
			out += "=" + *e.Hostname
		}
	}
	return out
}

// byHand are Endpoints that somebody wrote.
func byHand(subsets ...corev1.EndpointSubset) *corev1.Endpoints {
	return &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db", UID: "db"}, Subsets: subsets}
}

func at(ips ...string) (out []corev1.EndpointAddress) {
	for _, ip := range ips {
		out = append(out, corev1.EndpointAddress{IP: ip})
	}
	return out
}

func ports(all ...int32) (out []corev1.EndpointPort) {
	for _, n := range all {
		out = append(out, corev1.EndpointPort{Name: fmt.Sprint("p", n), Port: n, Protocol: corev1.ProtocolTCP})
	}
	return out
}

func TestSlicesOfEndpoints(t *testing.T) {
	db := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "db"}}
	selecting := &corev1.Service{Spec: corev1.ServiceSpec{Selector: map[string]string{}}}
	plain := corev1.EndpointSubset{Addresses: at("10.0.0.1"), Ports: ports(80)}
	lock, unwanted := byHand(plain), byHand(plain)
	lock.Annotations = map[string]string{leader: "me"}
	unwanted.Labels = map[string]string{discoveryv1.LabelSkipMirror: "true"}
	named := at("10.0.0.1")
	named[0].Hostname = "h"
	many := slices.Repeat(at("10.0.0.1"), 1500)
	for i := range many {
		many[i].IP = fmt.Sprintf("10.0.%d.%d", i/256, i%256)
	}
	for name, c := range map[string]struct {
		endpoints        *corev1.Endpoints
		service          *corev1.Service
		want             string
		invalid, surplus int
	}{
		"ready and not":          {byHand(corev1.EndpointSubset{Addresses: at("10.0.0.1"), NotReadyAddresses: at("10.0.0.2"), Ports: ports(80)}), db, "IPv4 p80:80 +10.0.0.1 -10.0.0.2", 0, 0},
		"two families":           {byHand(corev1.EndpointSubset{Addresses: at("10.0.0.1", "fd00:0::1"), Ports: ports(80)}), db, "IPv4 p80:80 +10.0.0.1; IPv6 p80:80 +fd00::1", 0, 0},
		"other ports":            {byHand(plain, corev1.EndpointSubset{Addresses: at("10.0.0.1"), Ports: ports(81)}), db, "IPv4 p80:80 +10.0.0.1; IPv4 p81:81 +10.0.0.1", 0, 0},
		"the same ports":         {byHand(corev1.EndpointSubset{Addresses: at("10.0.0.1"), Ports: ports(80, 81)}, corev1.EndpointSubset{Addresses: at("10.0.0.2"), Ports: ports(81, 80)}), db, "IPv4 p80:80 p81:81 +10.0.0.1 +10.0.0.2", 0, 0},
		"a name":                 {byHand(corev1.EndpointSubset{Addresses: named}), db, "IPv4 +10.0.0.1=h", 0, 0},
		"an old way to write it": {byHand(corev1.EndpointSubset{Addresses: at("010.0.0.001")}), db, "IPv4 +10.0.0.1", 0, 0},
		"no address":             {byHand(corev1.EndpointSubset{Addresses: at("db.local", "10.0.0.1")}), db, "IPv4 +10.0.0.1", 1, 0},
		"nothing":                {byHand(), db, "", 0, 0},
		"a lock":                 {lock, db, "", 0, 0},
		"those that want none":   {unwanted, db, "", 0, 0},
		"no service":             {byHand(plain), nil, "", 0, 0},
		"a service that selects": {byHand(plain), selecting, "", 0, 0},
		"too many":               {byHand(corev1.EndpointSubset{Addresses: many}), db, "1000", 0, 500},
	} {
		t.Run(name, func(t *testing.T) {
			do := decide(seen{endpoints: c.endpoints, service: c.service})
			var got []string
			for _, s := range do.Create {
				got = append(got, show(s))
			}
			text := strings.Join(got, "; ")
			if c.surplus > 0 {
				text = fmt.Sprint(len(do.Create[0].Endpoints))
			}
			if text != c.want || do.invalid != c.invalid || do.surplus != c.surplus {
				t.Errorf("slices are\n%s, invalid %d, surplus %d, want\n%s", text, do.invalid, do.surplus, c.want)
			}
		})
	}
}

func TestWhatSlicesTakeFromEndpoints(t *testing.T) {
	e := byHand(corev1.EndpointSubset{Addresses: at("10.0.0.1")})
	e.Labels = map[string]string{"team": "a"}
	e.Annotations = map[string]string{"note": "a", corev1.EndpointsLastChangeTriggerTime: "x", corev1.LastAppliedConfigAnnotation: "{}"}
	db := &corev1.Service{}
	s := decide(seen{endpoints: e, service: db}).Create[0]
	if fmt.Sprint(s.Labels) != fmt.Sprint(map[string]string{"team": "a", discoveryv1.LabelServiceName: "db", discoveryv1.LabelManagedBy: manager}) ||
		fmt.Sprint(s.Annotations) != "map[note:a]" || !metav1.IsControlledBy(s, e) {
		t.Errorf("labels %v, annotations %v, owners %v", s.Labels, s.Annotations, s.OwnerReferences)
	}
	e = e.DeepCopy()
	delete(e.Annotations, "note")
	if do := decide(seen{endpoints: e, service: db, slices: []*discoveryv1.EndpointSlice{s}}); len(do.Update) != 1 || len(do.Update[0].Annotations) != 0 {
		t.Errorf("without the annotation, it does %+v", do)
	}
}

// Whatever the Endpoints are, one plan is enough, and all their addresses are there.
func TestAPlanIsEnough(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		s := seen{service: &corev1.Service{}}
		for step := range 6 {
			s.endpoints = anyEndpoints(r)
			do := decide(s)
			for i, slice := range slices.Concat(do.Update, do.Create) {
				if slice.Name == "" {
					slice.Name = fmt.Sprint("s", step, i)
				}
				s.slices = append(s.without(slice.Name), slice)
			}
			for _, gone := range do.Remove {
				s.slices = s.without(gone.Name)
			}
			if again := decide(s); !again.None() {
				t.Fatalf("after %+v comes %+v", do, again)
			}
			if got, want := mirroredIn(s), wanted(s.endpoints); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("addresses are %v, want %v", got, want)
			}
		}
	}
}

func (s seen) without(name string) []*discoveryv1.EndpointSlice {
	return slices.DeleteFunc(slices.Clone(s.slices), func(o *discoveryv1.EndpointSlice) bool { return o.Name == name })
}

func anyEndpoints(r *rand.Rand) *corev1.Endpoints {
	e := byHand()
	for n := range r.IntN(4) {
		var all [2][]corev1.EndpointAddress
		for i := range r.IntN(5) {
			to := r.IntN(2)
			all[to] = append(all[to], at(fmt.Sprintf([]string{"10.0.0.%d", "fd00::%d"}[r.IntN(2)], i+1))...)
		}
		e.Subsets = append(e.Subsets, corev1.EndpointSubset{Addresses: all[0], NotReadyAddresses: all[1], Ports: ports(int32(n))})
	}
	return e
}

// mirroredIn has how often ports are served at addresses.
func mirroredIn(s seen) map[string]int {
	out := map[string]int{}
	for _, slice := range s.slices {
		for _, e := range slice.Endpoints {
			out[fmt.Sprint(*slice.Ports[0].Port, e.Addresses[0], *e.Conditions.Ready)]++
		}
	}
	return out
}

func wanted(e *corev1.Endpoints) map[string]int {
	out := map[string]int{}
	for _, s := range e.Subsets {
		for i, list := range [][]corev1.EndpointAddress{s.Addresses, s.NotReadyAddresses} {
			for _, a := range list {
				out[fmt.Sprint(s.Ports[0].Port, a.IP, i == 0)]++
			}
		}
	}
	return out
}

// run is a program with the controller.
func run(ctx context.Context, cfg *rest.Config) error {
	o := controller.BaseOptions{Logger: slog.New(slog.DiscardHandler)}
	o.Informers.DetectMutations = true
	base, err := controller.NewBase(cfg, o)
	if err != nil {
		return err
	}
	told := events.New(base, events.Options{Component: "endpoint-slice-mirroring-controller", Logger: o.Logger})
	if err := base.Add(New(base, told)); err != nil {
		return err
	}
	var g errgroup.Group
	g.Go(func() error { return told.Run(ctx) })
	g.Go(func() error { return base.Run(ctx) })
	return g.Wait()
}

const (
	service   = `{apiVersion: v1, kind: Service, metadata: {name: db}, spec: {ports: [{port: 80}]}}`
	endpoints = `{apiVersion: v1, kind: Endpoints, metadata: {name: db}, subsets: [{addresses: [{ip: 10.0.0.1}], ports: [{port: 80}]}]}`
)

var db = client.Key{Namespace: "default", Name: "db"}

// mirrors waits until the slices that mirror are these.
func mirrors(env *evenkeeltest.Env, want ...string) {
	evenkeeltest.EventuallyAll(env, func(all []*discoveryv1.EndpointSlice) error {
		var got []string
		for _, s := range all {
			if s.Labels[discoveryv1.LabelManagedBy] == manager && s.Labels[discoveryv1.LabelServiceName] == "db" {
				got = append(got, show(s))
			}
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("slices are %q, want %q", got, want)
		}
		return nil
	})
}

func patch[T client.Object](t *testing.T, env *evenkeeltest.Env, text string) {
	t.Helper()
	if _, err := client.Of[T](env.Conn()).Patch(t.Context(), db, client.MergePatch(text)); err != nil {
		t.Fatal(err)
	}
}

func TestSlicesFollowEndpoints(t *testing.T) {
	env := evenkeeltest.Start(t)
	env.Run(run)
	env.Apply(endpoints, service)
	mirrors(env, "IPv4 :80 +10.0.0.1")
	patch[*corev1.Endpoints](t, env, `{"subsets":[{"addresses":[{"ip":"10.0.0.2"}],"notReadyAddresses":[{"ip":"10.0.0.1"}],"ports":[{"port":81}]}]}`)
	mirrors(env, "IPv4 :81 +10.0.0.2 -10.0.0.1")
	patch[*corev1.Service](t, env, `{"spec":{"selector":{"app":"db"}}}`)
	mirrors(env)
	patch[*corev1.Service](t, env, `{"spec":{"selector":null}}`)
	mirrors(env, "IPv4 :81 +10.0.0.2 -10.0.0.1")
	patch[*corev1.Endpoints](t, env, `{"metadata":{"labels":{"endpointslice.kubernetes.io/skip-mirror":"true"}}}`)
	mirrors(env)
	patch[*corev1.Endpoints](t, env, `{"metadata":{"labels":null}}`)
	mirrors(env, "IPv4 :81 +10.0.0.2 -10.0.0.1")
	if err := client.Of[*corev1.Service](env.Conn()).Delete(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	mirrors(env)
}

func TestItIsToldThatThereAreTooMany(t *testing.T) {
	env := evenkeeltest.Start(t)
	env.Run(run)
	env.Apply(service)
	e := byHand(corev1.EndpointSubset{})
	e.UID = ""
	for i := range 1001 {
		e.Subsets[0].Addresses = append(e.Subsets[0].Addresses, at(fmt.Sprintf("10.0.%d.%d", i/250, i%250+1))...)
	}
	if _, err := client.Of[*corev1.Endpoints](env.Conn()).Create(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	evenkeeltest.EventuallyAll(env, func(all []*eventsv1.Event) error {
		for _, e := range all {
			if e.Regarding.Name == "db" && e.Reason == "TooManyAddressesToMirror" && strings.HasSuffix(e.Note, "1 addresses were skipped") {
				return nil
			}
		}
		return fmt.Errorf("of %d events none tells", len(all))
	})
}

func TestConvergesWhenTheServerGoesAway(t *testing.T) {
	for name, trouble := range map[string]func(*evenkeeltest.Env){
		"connections break":  func(env *evenkeeltest.Env) { env.Cut() },
		"the server is away": func(env *evenkeeltest.Env) { env.Restart(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			env := evenkeeltest.Start(t)
			env.Run(run)
			env.Apply(endpoints, service)
			trouble(env)
			mirrors(env, "IPv4 :80 +10.0.0.1")
			patch[*corev1.Endpoints](t, env, `{"subsets":[{"addresses":[{"ip":"10.0.0.2"}],"ports":[{"port":81}]}]}`)
			trouble(env)
			mirrors(env, "IPv4 :81 +10.0.0.2")
			trouble(env)
			if err := client.Of[*corev1.Service](env.Conn()).Delete(t.Context(), db); err != nil {
				t.Fatal(err)
			}
			mirrors(env)
		})
	}
}
