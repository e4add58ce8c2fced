package endpoints

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// pod is one that serves at 10.0.0.n, with changes.
func pod(n int, changes ...func(*corev1.Pod)) *corev1.Pod {
	name := fmt.Sprint("p", n)
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}}
	p.Spec.NodeName = "n1"
	p.Spec.Containers = []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}}}}
	p.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: fmt.Sprintf("10.0.%d.%d", n/256, n%256)}, {IP: "fd00::1"}},
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
func hosted(p *corev1.Pod)      { p.Spec.Hostname, p.Spec.Subdomain = "h", "web" }

// web is a service with a port by name and one by number.
func web(changes ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "web", Labels: map[string]string{"team": "a"}}}
	s.Spec = corev1.ServiceSpec{
		Selector: map[string]string{"app": "web"}, ClusterIP: "10.1.0.1", IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol},
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
func noPorts(s *corev1.Service)  { s.Spec.Ports = nil }
func onlyNamed(s *corev1.Service) {
	s.Spec.Ports = s.Spec.Ports[:1]
}
func external(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeExternalName }
func free(s *corev1.Service)     { s.Spec.Selector = nil }

// show is Endpoints in one line.
func show(e *corev1.Endpoints) string {
	if e == nil {
		return "nothing"
	}
	var out []string
	for _, s := range e.Subsets {
		text := ""
		for _, p := range s.Ports {
			text += fmt.Sprintf("%s:%d ", p.Name, p.Port)
		}
		for i, list := range [][]corev1.EndpointAddress{s.Addresses, s.NotReadyAddresses} {
			for _, a := range list {
				text += []string{"+", "-"}[i] + a.IP
				if a.Hostname != "" {
					text += "=" + a.Hostname
				}
				text += " "
			}
		}
		out = append(out, strings.TrimSpace(text))
	}
	return strings.Join(out, "; ")
}

func TestAddressesOfPods(t *testing.T) {
	const both = "admin:9090 http:8080 "
	for name, c := range map[string]struct {
		service *corev1.Service
		pods    []*corev1.Pod
		want    string
	}{
		"those that serve, and that do not": {web(), []*corev1.Pod{pod(2), pod(3, notReady), pod(1)}, both + "+10.0.0.1 +10.0.0.2 -10.0.0.3"},
		"one that ends":                     {web(), []*corev1.Pod{pod(1, terminating)}, ""},
		"all are published":                 {web(unready), []*corev1.Pod{pod(1, terminating), pod(2, notReady)}, both + "+10.0.0.1 +10.0.0.2"},
		"one that has ended":                {web(unready), []*corev1.Pod{pod(1, ended)}, ""},
		"one without an address":            {web(), []*corev1.Pod{pod(1, addressless)}, ""},
		"one without a port":                {web(), []*corev1.Pod{pod(1, portless), pod(2)}, "admin:9090 +10.0.0.1; " + both + "+10.0.0.2"},
		"one without any port":              {web(onlyNamed), []*corev1.Pod{pod(1, portless), pod(2)}, "http:8080 +10.0.0.2"},
		"a service without ports":           {web(headless, noPorts), []*corev1.Pod{pod(1)}, "+10.0.0.1"},
		"a name in the domain":              {web(), []*corev1.Pod{pod(1, hosted)}, both + "+10.0.0.1=h"},
		"a service without a selector":      {web(free), nil, "nothing"},
		"a service that is a name":          {web(external), []*corev1.Pod{pod(1)}, "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := show(decide(seen{service: c.service, pods: c.pods}).write); got != c.want {
				t.Errorf("endpoints are %q, want %q", got, c.want)
			}
		})
	}
}

func TestWhatEndpointsSayOfTheirService(t *testing.T) {
	e := decide(seen{service: web(headless), pods: []*corev1.Pod{pod(1)}}).write
	want := map[string]string{"team": "a", managedBy: manager, corev1.IsHeadlessService: ""}
	if fmt.Sprint(e.Labels) != fmt.Sprint(want) || e.Name != "web" || e.Namespace != "default" {
		t.Errorf("labels %v, name %s/%s", e.Labels, e.Namespace, e.Name)
	}
	a := e.Subsets[0].Addresses[0]
	if *a.NodeName != "n1" || *a.TargetRef != (corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "p1", UID: "p1"}) {
		t.Errorf("address %v", a)
	}
	e = decide(seen{service: web(), endpoints: e, pods: []*corev1.Pod{pod(1)}}).write
	if _, ok := e.Labels[corev1.IsHeadlessService]; ok {
		t.Errorf("labels of one that is not headless are %v", e.Labels)
	}
}

func TestEndpointsThatAreNotTouched(t *testing.T) {
	lock := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: map[string]string{leader: "me"}}}
	own := decide(seen{service: web()}).write
	for name, c := range map[string]struct {
		seen seen
		want plan
	}{
		"a lock":                         {seen{endpoints: lock, service: web(), pods: []*corev1.Pod{pod(1)}}, plan{}},
		"a lock without a service":       {seen{endpoints: lock}, plan{}},
		"of a service without selector":  {seen{endpoints: own, service: web(free)}, plan{}},
		"of a service that is gone":      {seen{endpoints: own}, plan{remove: true}},
		"none, of a service that is not": {seen{}, plan{}},
	} {
		if got := decide(c.seen); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestTooManyAddresses(t *testing.T) {
	for name, c := range map[string]struct {
		ready, not, other int // other are ready, with fewer ports
		want              [3]int
		over              bool
	}{
		"room for all":         {600, 400, 0, [3]int{600, 400, 0}, false},
		"those that are ready": {600, 900, 0, [3]int{600, 400, 0}, true},
		"not even those":       {1500, 10, 0, [3]int{1000, 0, 0}, true},
		"each has its share":   {900, 0, 300, [3]int{750, 0, 250}, true},
		"rounded up":           {1000, 0, 1, [3]int{999, 0, 1}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := seen{service: web()}
			for i := range c.ready + c.not + c.other {
				var changes []func(*corev1.Pod)
				if i >= c.ready && i < c.ready+c.not {
					changes = append(changes, notReady)
				}
				if i >= c.ready+c.not {
					changes = append(changes, portless)
				}
				s.pods = append(s.pods, pod(i, changes...))
			}
			e := decide(s).write
			var got [3]int
			for _, subset := range e.Subsets {
				if len(subset.Ports) == 1 {
					got[2] += len(subset.Addresses)
				} else {
					got[0], got[1] = len(subset.Addresses), len(subset.NotReadyAddresses)
				}
			}
			if got != c.want || (e.Annotations[corev1.EndpointsOverCapacity] == "truncated") != c.over {
				t.Errorf("%v, %v, want %v", got, e.Annotations, c.want)
			}
			s.endpoints = e
			if again := decide(s); again != (plan{}) {
				t.Errorf("it is written again: %v", again.write.Annotations)
			}
			s.pods = s.pods[:1]
			if e := decide(s).write; len(e.Subsets) != 1 || e.Annotations[corev1.EndpointsOverCapacity] != "" {
				t.Errorf("with one left, %d subsets, %v", len(e.Subsets), e.Annotations)
			}
		})
	}
}

// That there is room for all again is told even if the addresses are the same.
func TestTheOneTooManyGoes(t *testing.T) {
	s := seen{service: web()}
	for i := range capacity + 1 {
		s.pods = append(s.pods, pod(i))
	}
	s.endpoints = decide(s).write
	shown := map[string]bool{}
	for _, a := range s.endpoints.Subsets[0].Addresses {
		shown[a.TargetRef.Name] = true
	}
	s.pods = slices.DeleteFunc(s.pods, func(p *corev1.Pod) bool { return !shown[p.Name] })
	if e := decide(s).write; e == nil || isOver(e) || len(s.pods) != capacity {
		t.Errorf("of %d pods, it is %v", len(s.pods), e)
	}
}

// Whatever there is, one write is enough, and each pod that serves is there with the
// ports that it has.
func TestAPlanIsEnough(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		var s seen
		for range 5 {
			s.service = web([][]func(*corev1.Service){nil, {unready}, {headless}, {onlyNamed}}[r.IntN(4)]...)
			s.pods = anyPods(r)
			if e := decide(s).write; e != nil {
				s.endpoints = e
			}
			if again := decide(s); again != (plan{}) {
				t.Fatalf("it is written again: %s", show(again.write))
			}
			check(t, s)
		}
	}
}

func anyPods(r *rand.Rand) (out []*corev1.Pod) {
	for _, i := range r.Perm(r.IntN(20)) {
		var changes []func(*corev1.Pod)
		for _, c := range []func(*corev1.Pod){notReady, terminating, ended, addressless, portless, hosted} {
			if r.IntN(5) == 0 {
				changes = append(changes, c)
			}
		}
		out = append(out, pod(i, changes...))
	}
	return out
}

func check(t *testing.T, s seen) {
	t.Helper()
	got := map[string]string{}
	for _, subset := range s.endpoints.Subsets {
		for i, list := range [][]corev1.EndpointAddress{subset.Addresses, subset.NotReadyAddresses} {
			for _, a := range list {
				got[a.TargetRef.Name] += fmt.Sprint(i == 0, len(subset.Ports))
			}
		}
	}
	for _, p := range s.pods {
		all, want := s.service.Spec.PublishNotReadyAddresses, ""
		ports := len(s.service.Spec.Ports)
		if len(p.Spec.Containers[0].Ports) == 0 {
			ports--
		}
		if p.Status.Phase == corev1.PodRunning && len(p.Status.PodIPs) > 0 && (all || p.DeletionTimestamp == nil) && ports > 0 {
			want = fmt.Sprint(all || len(p.Status.Conditions) > 0, ports)
		}
		if got[p.Name] != want {
			t.Fatalf("pod %s is %q, want %q, in %s", p.Name, got[p.Name], want, show(s.endpoints))
		}
		delete(got, p.Name)
	}
	if len(got) > 0 {
		t.Fatalf("of no pod are %v", got)
	}
}
