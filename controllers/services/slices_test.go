package services

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// endpoint is that of a pod; note is what may change of it.
func endpoint(pod int, note string) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{
		Addresses: []string{fmt.Sprintf("10.0.%d.%d", pod/256, pod%256)}, Zone: &note,
		TargetRef: &corev1.ObjectReference{UID: types.UID(fmt.Sprint("pod", pod))},
	}
}

// port is the ports of a group.
func port(n int32) []discoveryv1.EndpointPort {
	name, tcp := "web", corev1.ProtocolTCP
	return []discoveryv1.EndpointPort{{Name: &name, Port: &n, Protocol: &tcp}}
}

func like(labels string) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "web-", Labels: map[string]string{"is": labels}, OwnerReferences: []metav1.OwnerReference{{UID: "web"}},
	}}
}

// slice is one that exists.
func slice(name string, n int32, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	s := like("a")
	s.Name, s.AddressType, s.Ports, s.Endpoints = name, discoveryv1.AddressTypeIPv4, port(n), endpoints
	return s
}

// wants are endpoints with a port.
func wants(n int32, endpoints ...discoveryv1.Endpoint) *group {
	return &group{discoveryv1.AddressTypeIPv4, port(n), endpoints}
}

func layout(all ...*group) Layout {
	l := Layout{Max: 3, Like: like("a"), Empty: []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4}}
	for _, g := range all {
		for _, e := range g.endpoints {
			l.Add(g.kind, g.ports, e)
		}
	}
	return l
}

// show is what changes do: names of slices, new ones are +, and their pods.
func show(c Changes) string {
	out := ""
	for _, s := range slices.Concat(c.Update, c.Create) {
		name := s.Name
		if name == "" {
			name = "+"
		}
		for _, e := range s.Endpoints {
			name += " " + string(e.TargetRef.UID[len("pod"):])
		}
		out += name + "; "
	}
	for _, s := range c.Remove {
		out += "-" + s.Name + "; "
	}
	return out
}

func TestFewSlicesAreWritten(t *testing.T) {
	e := func(pods ...int) (out []discoveryv1.Endpoint) {
		for _, p := range pods {
			out = append(out, endpoint(p, ""))
		}
		return out
	}
	others := slice("z", 80, e(1)...)
	others.OwnerReferences[0].UID = "an older web"
	marked := slice("a", 80, e(1)...)
	marked.OwnerReferences = append(marked.OwnerReferences, metav1.OwnerReference{UID: "another"})
	empty := slice("a", 80)
	empty.Ports = nil
	for name, c := range map[string]struct {
		have []*discoveryv1.EndpointSlice
		want []*group
		does string
	}{
		"nothing has one slice":             {nil, nil, "+; "},
		"which stays":                       {[]*discoveryv1.EndpointSlice{empty}, nil, ""},
		"and becomes another":               {[]*discoveryv1.EndpointSlice{empty}, []*group{wants(80, e(1)...)}, "a 1; "},
		"the last to go leaves it":          {[]*discoveryv1.EndpointSlice{slice("a", 80, e(1)...)}, nil, "a; "},
		"one of several is left":            {[]*discoveryv1.EndpointSlice{slice("a", 80, e(1)...), slice("b", 81, e(2)...)}, nil, "a; -b; "},
		"new ones fill slices":              {nil, []*group{wants(80, e(1, 2, 3, 4)...)}, "+ 1 2 3; + 4; "},
		"what is so stays so":               {[]*discoveryv1.EndpointSlice{slice("a", 80, e(2, 1)...)}, []*group{wants(80, e(1, 2)...)}, ""},
		"the fullest that has room":         {[]*discoveryv1.EndpointSlice{slice("a", 80, e(1)...), slice("b", 80, e(2, 3)...)}, []*group{wants(80, e(1, 2, 3, 4)...)}, "b 2 3 4; "},
		"room for all together, or a new":   {[]*discoveryv1.EndpointSlice{slice("a", 80, e(1, 2)...), slice("b", 80, e(3, 4)...)}, []*group{wants(80, e(1, 2, 3, 4, 5, 6)...)}, "+ 5 6; "},
		"one that is written anyway":        {[]*discoveryv1.EndpointSlice{slice("a", 80, e(1, 2)...), slice("b", 80, e(3, 4)...)}, []*group{wants(80, e(1, 2, 3, 5)...)}, "b 3 5; "},
		"the same endpoint twice":           {[]*discoveryv1.EndpointSlice{slice("a", 80, e(1, 2)...), slice("b", 80, e(2, 3)...)}, []*group{wants(80, e(1, 2, 3)...)}, "b 3; "},
		"other ports, the same slice":       {[]*discoveryv1.EndpointSlice{slice("a", 80, e(1)...)}, []*group{wants(81, e(1)...)}, "a 1; "},
		"ports apart":                       {[]*discoveryv1.EndpointSlice{slice("a", 80, e(1)...)}, []*group{wants(80, e(1)...), wants(81, e(2)...)}, "+ 2; "},
		"what another owns is not made use": {[]*discoveryv1.EndpointSlice{others}, []*group{wants(80, e(1)...)}, "+ 1; -z; "},
		"a second owner does no harm":       {[]*discoveryv1.EndpointSlice{marked}, []*group{wants(80, e(1)...)}, ""},
		"too many in a slice":               {[]*discoveryv1.EndpointSlice{slice("a", 80, e(1, 2, 3, 4)...)}, []*group{wants(80, e(1, 2, 3, 4)...)}, "a 1 2 3; + 4; "},
	} {
		t.Run(name, func(t *testing.T) {
			if got := show(Arrange(c.have, layout(c.want...))); got != c.does {
				t.Errorf("it does %q, want %q", got, c.does)
			}
		})
	}
}

func TestLabelsAndAnnotationsOfSlices(t *testing.T) {
	want := layout(wants(80, endpoint(1, "")))
	s := slice("a", 80, endpoint(1, ""))
	s.Annotations = map[string]string{"mine": "yes"}
	if c := Arrange([]*discoveryv1.EndpointSlice{s}, want); !c.None() {
		t.Errorf("an annotation that nobody speaks of leads to %s", show(c))
	}
	want.Like.Labels["is"] = "b"
	if c := Arrange([]*discoveryv1.EndpointSlice{s}, want); show(c) != "a 1; " || c.Update[0].Labels["is"] != "b" || c.Update[0].Annotations["mine"] != "yes" {
		t.Errorf("another label leads to %s, %v", show(c), c.Update)
	}
	want = layout(wants(80, endpoint(1, "")))
	want.Like.Annotations = map[string]string{"other": "yes"}
	if c := Arrange([]*discoveryv1.EndpointSlice{s}, want); show(c) != "a 1; " || len(c.Update[0].Annotations) != 1 {
		t.Errorf("annotations that are given lead to %s, %v", show(c), c.Update)
	}
}

// after is what changes lead to.
func after(have []*discoveryv1.EndpointSlice, c Changes, names *int) []*discoveryv1.EndpointSlice {
	var out []*discoveryv1.EndpointSlice
	for _, s := range have {
		named := func(o *discoveryv1.EndpointSlice) bool { return o.Name == s.Name }
		if i := slices.IndexFunc(c.Update, named); i >= 0 {
			s = c.Update[i]
		}
		if !slices.ContainsFunc(c.Remove, named) {
			out = append(out, s)
		}
	}
	for _, s := range c.Create {
		*names++
		s.Name = fmt.Sprint("s", *names)
		out = append(out, s)
	}
	return out
}

// A service lives for a while; its slices have what they should have after each
// change, and no more of them are written than those that the change is about.
func TestSlicesFollowWhatIsWanted(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 15 {
		var have []*discoveryv1.EndpointSlice
		names, pods := 0, map[int]discoveryv1.Endpoint{}
		for range 60 {
			for range r.IntN(6) {
				pod := r.IntN(30)
				if _, ok := pods[pod]; ok && r.IntN(2) == 0 {
					delete(pods, pod)
				} else {
					pods[pod] = endpoint(pod, fmt.Sprint(r.IntN(3)))
				}
			}
			want := layoutOf(pods)
			c := Arrange(have, want)
			if n, most := len(c.Create)+len(c.Update)+len(c.Remove), mostWrites(have, want); n > most {
				t.Fatalf("%d slices are written for a change that is about %d: %s", n, most, show(c))
			}
			have = after(have, c, &names)
			if why := fits(have, want); why != "" {
				t.Fatalf("after %s: %s", show(c), why)
			}
			if again := Arrange(have, want); !again.None() {
				t.Fatalf("after %s comes %s", show(c), show(again))
			}
		}
	}
}

// layoutOf has pods in two groups, by their number.
func layoutOf(pods map[int]discoveryv1.Endpoint) Layout {
	groups := []*group{wants(80), wants(81)}
	for n := range 30 {
		if e, ok := pods[n]; ok {
			groups[n%2].endpoints = append(groups[n%2].endpoints, e)
		}
	}
	return layout(groups...)
}

// fits says what is wrong with slices; "" is nothing.
func fits(have []*discoveryv1.EndpointSlice, want Layout) string {
	got := map[string][]discoveryv1.Endpoint{}
	for _, s := range have {
		key := groupKey(s.AddressType, s.Ports)
		got[key] = append(got[key], s.Endpoints...)
		if len(s.Endpoints) > want.Max || len(s.Endpoints) == 0 && len(have) > 1 {
			return fmt.Sprintf("%s has %d endpoints of %d", s.Name, len(s.Endpoints), want.Max)
		}
	}
	for _, g := range want.groups {
		in := got[groupKey(g.kind, g.ports)]
		slices.SortFunc(in, func(a, b discoveryv1.Endpoint) int { return podOf(a) - podOf(b) })
		if !equality.Semantic.DeepEqual(in, g.endpoints) {
			return fmt.Sprintf("%d endpoints, want %d", len(in), len(g.endpoints))
		}
		delete(got, groupKey(g.kind, g.ports))
	}
	for key, in := range got {
		if len(in) > 0 {
			return "endpoints of " + key
		}
	}
	return ""
}

func podOf(e discoveryv1.Endpoint) (n int) {
	_, _ = fmt.Sscanf(string(e.TargetRef.UID), "pod%d", &n)
	return n
}

// mostWrites counts the slices that have something to change, and what new endpoints
// need if they find no place in these.
func mostWrites(have []*discoveryv1.EndpointSlice, want Layout) int {
	n, empty := 0, true
	placed := map[types.UID]bool{}
	all := map[types.UID]discoveryv1.Endpoint{}
	for _, g := range want.groups {
		for _, e := range g.endpoints {
			all[e.TargetRef.UID] = e
		}
		empty = empty && len(g.endpoints) == 0
	}
	for _, s := range have {
		same := len(s.Endpoints) > 0
		for _, e := range s.Endpoints {
			placed[e.TargetRef.UID] = true
			same = same && equality.Semantic.DeepEqual(all[e.TargetRef.UID], e)
		}
		if !same {
			n++
		}
	}
	for _, g := range want.groups {
		left := 0
		for _, e := range g.endpoints {
			if !placed[e.TargetRef.UID] {
				left++
			}
		}
		n += (left + want.Max - 1) / want.Max
	}
	if empty && len(have) == 0 {
		n++
	}
	return n
}

// A field that is new to endpoints is not forgotten when they are compared.
func TestEndpointsDifferByEveryField(t *testing.T) {
	yes, text := true, "x"
	full := discoveryv1.Endpoint{
		Addresses: []string{"10.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: &yes, Serving: &yes, Terminating: &yes},
		Hostname: &text, TargetRef: &corev1.ObjectReference{Name: "x"}, DeprecatedTopology: map[string]string{"x": "x"},
		NodeName: &text, Zone: &text, Hints: &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "x"}}},
	}
	check := func(of string, change func(*discoveryv1.Endpoint) reflect.Value) {
		other := full.DeepCopy()
		for i := range change(other).NumField() {
			other := full.DeepCopy()
			f := change(other).Field(i)
			if f.IsZero() {
				t.Errorf("%s has a field %s that this test does not know", of, change(other).Type().Field(i).Name)
			}
			f.SetZero()
			if sameEndpoint(full, *other) || sameEndpoint(*other, full) {
				t.Errorf("%s without %s is the same", of, change(other).Type().Field(i).Name)
			}
		}
		if !sameEndpoint(full, *other) {
			t.Errorf("a copy of %s is another", of)
		}
	}
	check("an endpoint", func(e *discoveryv1.Endpoint) reflect.Value { return reflect.ValueOf(e).Elem() })
	check("a condition", func(e *discoveryv1.Endpoint) reflect.Value { return reflect.ValueOf(&e.Conditions).Elem() })
}
