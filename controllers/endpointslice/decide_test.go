package endpointslice

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/even-keel/evenkeel/controllers/services"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// pod is one that serves on node n1, with changes.
func pod(name string, changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}}
	p.Spec.NodeName = "n1"
	p.Spec.Containers = []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}}}}
	p.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: "10.0.0.1"}, {IP: "fd00::1"}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}
	for _, change := range changes {
		change(p)
	}
	return p
}

func notReady(p *corev1.Pod)    { p.Status.Conditions = nil }
func terminating(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: noon} }
func ended(p *corev1.Pod)       { p.Status.Phase = corev1.PodSucceeded }
func addressless(p *corev1.Pod) { p.Status.PodIPs = nil }
func portless(p *corev1.Pod)    { p.Spec.Containers[0].Ports = nil }
func elsewhere(p *corev1.Pod)   { p.Spec.NodeName = "gone" }
func hosted(p *corev1.Pod)      { p.Spec.Hostname, p.Spec.Subdomain = "h", "web" }

// web is a service with a port by name and one by number.
func web(changes ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "web", Labels: map[string]string{"team": "a"}}}
	s.Spec = corev1.ServiceSpec{
		Selector: map[string]string{"app": "web"}, ClusterIP: "10.1.0.1", IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
		Ports: []corev1.ServicePort{
			{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromString("http")},
			{Name: "admin", Port: 81, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(9090)},
		},
	}
	for _, change := range changes {
		change(s)
	}
	return s
}

func unready(s *corev1.Service)  { s.Spec.PublishNotReadyAddresses = true }
func headless(s *corev1.Service) { s.Spec.ClusterIP = corev1.ClusterIPNone }
func dual(s *corev1.Service) {
	s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol}
}

func spread(how string) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Spec.TrafficDistribution = &how }
}

// scene is a service with a node n1 in zone z1.
func scene(s *corev1.Service, pods ...*corev1.Pod) seen {
	n1 := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{corev1.LabelTopologyZone: "z1"}}}
	return seen{service: s, pods: pods, nodes: map[string]*corev1.Node{"n1": n1}}
}

// show is a slice in one line: type, ports, and endpoints with what is true of them.
func show(s *discoveryv1.EndpointSlice) string {
	out := string(s.AddressType)
	for _, p := range s.Ports {
		out += fmt.Sprintf(" %s:%d", *p.Name, *p.Port)
	}
	for _, e := range s.Endpoints {
		out += " [" + strings.Join(e.Addresses, " ")
		for _, c := range []struct {
			is   *bool
			name string
		}{{e.Conditions.Ready, "ready"}, {e.Conditions.Serving, "serving"}, {e.Conditions.Terminating, "terminating"}} {
			if *c.is {
				out += " " + c.name
			}
		}
		for _, s := range []*string{e.Hostname, e.NodeName, e.Zone} {
			if s != nil {
				out += " " + *s
			}
		}
		if e.Hints != nil {
			for _, z := range e.Hints.ForZones {
				out += " for " + z.Name
			}
			for _, n := range e.Hints.ForNodes {
				out += " for " + n.Name
			}
		}
		out += "]"
	}
	return out
}

func showAll(c services.Changes) string {
	var out []string
	for _, s := range c.Create {
		out = append(out, show(s))
	}
	return strings.Join(out, "; ")
}

func TestEndpointsOfPods(t *testing.T) {
	const both = "IPv4 http:8080 admin:9090"
	auto := func(s *corev1.Service) { s.Annotations = map[string]string{corev1.AnnotationTopologyMode: "Auto"} }
	for name, c := range map[string]struct {
		seen seen
		want string
	}{
		"one that serves":                    {scene(web(), pod("a")), both + " [10.0.0.1 ready serving n1 z1]"},
		"one that is not ready":              {scene(web(), pod("a", notReady)), both + " [10.0.0.1 n1 z1]"},
		"one that ends, and serves":          {scene(web(), pod("a", terminating)), both + " [10.0.0.1 serving terminating n1 z1]"},
		"one that ends":                      {scene(web(), pod("a", terminating, notReady)), both + " [10.0.0.1 terminating n1 z1]"},
		"all are published":                  {scene(web(unready), pod("a", terminating, notReady)), both + " [10.0.0.1 ready terminating n1 z1]"},
		"one that has ended":                 {scene(web(), pod("a", ended)), "IPv4"},
		"one without an address":             {scene(web(), pod("a", addressless)), "IPv4"},
		"one without the port":               {scene(web(), pod("a", portless), pod("b")), "IPv4 admin:9090 [10.0.0.1 ready serving n1 z1]; " + both + " [10.0.0.1 ready serving n1 z1]"},
		"on a node that is gone":             {scene(web(), pod("a", elsewhere)), "IPv4"},
		"on a node that is gone, published":  {scene(web(unready), pod("a", elsewhere)), both + " [10.0.0.1 ready serving gone]"},
		"with a name in the domain":          {scene(web(), pod("a", hosted)), both + " [10.0.0.1 ready serving h n1 z1]"},
		"with a name in another domain":      {scene(web(func(s *corev1.Service) { s.Name = "other" }), pod("a", hosted)), both + " [10.0.0.1 ready serving n1 z1]"},
		"two families":                       {scene(web(dual), pod("a")), "IPv6 http:8080 admin:9090 [fd00::1 ready serving n1 z1]; " + both + " [10.0.0.1 ready serving n1 z1]"},
		"two families, and a pod with one":   {scene(web(dual), pod("a", func(p *corev1.Pod) { p.Status.PodIPs = p.Status.PodIPs[:1] })), both + " [10.0.0.1 ready serving n1 z1]; IPv6"},
		"headless without ports":             {scene(web(headless, func(s *corev1.Service) { s.Spec.Ports = nil }), pod("a")), "IPv4 [10.0.0.1 ready serving n1 z1]"},
		"near in the zone":                   {scene(web(spread("PreferClose")), pod("a"), pod("b", notReady)), both + " [10.0.0.1 ready serving n1 z1 for z1] [10.0.0.1 n1 z1]"},
		"near on the node":                   {scene(web(spread("PreferSameNode")), pod("a")), both + " [10.0.0.1 ready serving n1 z1 for z1 for n1]"},
		"near in the zone, by an annotation": {scene(web(spread("PreferSameZone"), auto), pod("a")), both + " [10.0.0.1 ready serving n1 z1]"},
		"near in no zone":                    {scene(web(spread("PreferSameZone"), unready), pod("a", elsewhere)), both + " [10.0.0.1 ready serving gone]"},
		"a service that goes":                {scene(web(func(s *corev1.Service) { s.DeletionTimestamp = &metav1.Time{Time: noon} }), pod("a")), ""},
		"a service that selects nothing":     {scene(web(func(s *corev1.Service) { s.Spec.Selector = nil })), ""},
		"a service that is a name":           {scene(web(func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeExternalName })), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := showAll(decide(c.seen)); got != c.want {
				t.Errorf("slices are\n%s, want\n%s", got, c.want)
			}
		})
	}
}

func TestWhatASliceSaysOfItsService(t *testing.T) {
	reserved := func(s *corev1.Service) {
		s.Labels[discoveryv1.LabelManagedBy], s.Labels[corev1.IsHeadlessService] = "me", ""
	}
	s := decide(scene(web(reserved), pod("a"))).Create[0]
	want := map[string]string{"team": "a", discoveryv1.LabelServiceName: "web", discoveryv1.LabelManagedBy: manager}
	if fmt.Sprint(s.Labels) != fmt.Sprint(want) || s.GenerateName != "web-" || !metav1.IsControlledBy(s, web()) {
		t.Errorf("labels %v, name %s, owners %v", s.Labels, s.GenerateName, s.OwnerReferences)
	}
	if ref := s.Endpoints[0].TargetRef; *ref != (corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "a", UID: "a"}) {
		t.Errorf("it is about %v", ref)
	}
	s = decide(scene(web(headless), pod("a"))).Create[0]
	if v, ok := s.Labels[corev1.IsHeadlessService]; !ok || v != "" {
		t.Errorf("labels of a headless one are %v", s.Labels)
	}
}

func TestSlicesOfAServiceWithoutASelectorGo(t *testing.T) {
	s := scene(web(), pod("a"))
	s.slices = decide(s).Create
	s.service = web(func(s *corev1.Service) { s.Spec.Selector = nil })
	if do := decide(s); len(do.Remove) != 1 || len(do.Create)+len(do.Update) > 0 {
		t.Errorf("it does %+v", do)
	}
}

// Whatever there is, after one plan all pods that serve are in just one slice, and
// there is nothing left to do.
func TestAPlanIsEnough(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 30 {
		s, names := scene(web()), 0
		for range 8 {
			s.service, s.pods = anyService(r), anyPods(r)
			do := decide(s)
			s.slices = apply(s.slices, do, &names)
			if again := decide(s); !again.None() {
				t.Fatalf("after %+v comes %+v", do, again)
			}
			for _, family := range services.Families(s.service) {
				check(t, s, family)
			}
		}
	}
}

func anyService(r *rand.Rand) *corev1.Service {
	var changes []func(*corev1.Service)
	for _, c := range []func(*corev1.Service){unready, headless, dual, spread("PreferClose"), func(s *corev1.Service) { s.Spec.Ports = s.Spec.Ports[1:] }} {
		if r.IntN(3) == 0 {
			changes = append(changes, c)
		}
	}
	return web(changes...)
}

func anyPods(r *rand.Rand) (out []*corev1.Pod) {
	for i := range r.IntN(130) {
		changes := []func(*corev1.Pod){func(p *corev1.Pod) { p.Status.PodIPs[0].IP = fmt.Sprint("10.0.0.", i) }}
		for _, c := range []func(*corev1.Pod){notReady, terminating, ended, addressless, portless, elsewhere, hosted} {
			if r.IntN(8) == 0 {
				changes = append(changes, c)
			}
		}
		out = append(out, pod(fmt.Sprint(i), changes...))
	}
	return out
}

// apply is what changes lead to.
func apply(have []*discoveryv1.EndpointSlice, do services.Changes, names *int) (out []*discoveryv1.EndpointSlice) {
	for _, s := range slices.Concat(have, do.Update, do.Create) {
		if s.Name == "" {
			*names++
			s.Name = fmt.Sprint("s", *names)
		}
		named := func(o *discoveryv1.EndpointSlice) bool { return o.Name == s.Name }
		out = slices.DeleteFunc(out, named)
		if !slices.ContainsFunc(do.Remove, named) {
			out = append(out, s)
		}
	}
	return out
}

func check(t *testing.T, s seen, family corev1.IPFamily) {
	t.Helper()
	in := map[types.UID]*discoveryv1.Endpoint{}
	for _, slice := range s.slices {
		if slice.AddressType != discoveryv1.AddressType(family) {
			continue
		}
		if len(slice.Endpoints) > most {
			t.Fatalf("%s has %d endpoints", slice.Name, len(slice.Endpoints))
		}
		for i := range slice.Endpoints {
			e := &slice.Endpoints[i]
			if in[e.TargetRef.UID] != nil {
				t.Fatalf("pod %s is there twice", e.TargetRef.UID)
			}
			in[e.TargetRef.UID] = e
		}
	}
	for _, p := range s.pods {
		known := p.Spec.NodeName == "n1" || s.service.Spec.PublishNotReadyAddresses
		want := p.Status.Phase == corev1.PodRunning && len(p.Status.PodIPs) > 0 && known
		e := in[p.UID]
		if (e != nil) != want {
			t.Fatalf("pod %s is there: %v, want %v", p.UID, e != nil, want)
		}
		if e != nil && *e.Conditions.Ready != (s.service.Spec.PublishNotReadyAddresses || len(p.Status.Conditions) > 0 && p.DeletionTimestamp == nil) {
			t.Fatalf("pod %s is ready: %v", p.UID, *e.Conditions.Ready)
		}
		delete(in, p.UID)
	}
	if len(in) > 0 {
		t.Fatalf("%d endpoints are of no pod", len(in))
	}
}
