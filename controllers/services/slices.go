package services

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// group are endpoints that go into slices of their own: they have the same ports, and
// addresses of one type.
type group struct {
	kind      discoveryv1.AddressType
	ports     []discoveryv1.EndpointPort
	endpoints []discoveryv1.Endpoint
}

// Layout is what slices are to be like.
type Layout struct {
	// Max is how many endpoints a slice may have.
	Max int
	// Empty has a type of addresses without endpoints have one slice all the same.
	Empty []discoveryv1.AddressType
	// Like has the labels of all slices, and their annotations unless these are nil and
	// left alone; of new ones, it has the owner and the name too.
	Like *discoveryv1.EndpointSlice

	groups []*group // in the order in which new slices are made
	byKey  map[string]*group
	last   *group // to which was added last
}

// Add has an endpoint be in a slice, with others that have addresses of the same type
// and the same ports.
func (l *Layout) Add(t discoveryv1.AddressType, ports []discoveryv1.EndpointPort, e discoveryv1.Endpoint) {
	if l.last == nil || l.last.kind != t || !slices.EqualFunc(l.last.ports, ports, samePort) {
		l.last = l.group(t, ports)
	}
	l.last.endpoints = append(l.last.endpoints, e)
}

// group is that of a type and of ports, in whatever order.
func (l *Layout) group(t discoveryv1.AddressType, ports []discoveryv1.EndpointPort) *group {
	key := groupKey(t, ports)
	if g := l.byKey[key]; g != nil {
		return g
	}
	if l.byKey == nil {
		l.byKey = map[string]*group{}
	}
	g := &group{kind: t, ports: ports}
	l.byKey[key], l.groups = g, append(l.groups, g)
	return g
}

func samePort(a, b discoveryv1.EndpointPort) bool {
	return same(a.Name, b.Name) && same(a.Port, b.Port) && same(a.Protocol, b.Protocol) && same(a.AppProtocol, b.AppProtocol)
}

func same[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

// sameEndpoint is what equality is for endpoints; it is asked for all of them each time.
func sameEndpoint(a, b discoveryv1.Endpoint) bool {
	return slices.Equal(a.Addresses, b.Addresses) && same(a.TargetRef, b.TargetRef) &&
		same(a.Conditions.Ready, b.Conditions.Ready) && same(a.Conditions.Serving, b.Conditions.Serving) && same(a.Conditions.Terminating, b.Conditions.Terminating) &&
		same(a.NodeName, b.NodeName) && same(a.Zone, b.Zone) && same(a.Hostname, b.Hostname) &&
		maps.Equal(a.DeprecatedTopology, b.DeprecatedTopology) &&
		(a.Hints == nil && b.Hints == nil || equality.Semantic.DeepEqual(a.Hints, b.Hints))
}

// Changes is what is to be done about slices. What is to be updated are copies.
type Changes struct{ Create, Update, Remove []*discoveryv1.EndpointSlice }

// None reports whether nothing is to be done.
func (c Changes) None() bool { return len(c.Create)+len(c.Update)+len(c.Remove) == 0 }

// Arrange says how slices become what a layout wants with few writes: endpoints stay
// in the slice they are in; new ones go into slices that are to be written anyway,
// then all together into one that has room for them, and otherwise into new slices.
// What would be removed becomes one of those that are new. What another owner has is
// removed.
func Arrange(have []*discoveryv1.EndpointSlice, want Layout) Changes {
	a := arrangement{want: want}
	have = slices.SortedFunc(slices.Values(have), func(a, b *discoveryv1.EndpointSlice) int { return cmp.Compare(a.Name, b.Name) })
	groups := map[string][]*discoveryv1.EndpointSlice{}
	for _, s := range have {
		if !a.owns(s) {
			a.remove = append(a.remove, s)
			continue
		}
		key := groupKey(s.AddressType, s.Ports)
		groups[key] = append(groups[key], s)
	}
	for _, g := range want.groups {
		key := groupKey(g.kind, g.ports)
		a.arrange(g, groups[key])
		delete(groups, key)
	}
	for _, s := range have { // in order
		if slices.Contains(groups[groupKey(s.AddressType, s.Ports)], s) {
			a.remove = append(a.remove, s)
		}
	}
	for _, t := range want.Empty {
		a.placehold(t)
	}
	return a.changes()
}

// groupKey is the same for the same type and ports, in whatever order.
func groupKey(t discoveryv1.AddressType, ports []discoveryv1.EndpointPort) string {
	var out []string
	for _, p := range ports {
		out = append(out, fmt.Sprintf("%s/%s/%d/%s", text(p.Name), text(p.Protocol), text(p.Port), text(p.AppProtocol)))
	}
	slices.Sort(out)
	return string(t) + " " + strings.Join(out, " ")
}

func text[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// arrangement is what becomes of slices.
type arrangement struct {
	want Layout
	// keep are those that stay, with the endpoints that they are to have; was is nil for
	// new ones.
	keep   []*arranged
	remove []*discoveryv1.EndpointSlice
}

type arranged struct {
	was       *discoveryv1.EndpointSlice
	group     *group // whose type and ports it has
	endpoints []discoveryv1.Endpoint
	changed   bool
}

// identity is what makes an endpoint the same in spite of changes.
type identity struct {
	pod       types.UID
	addresses string
}

func identityOf(e *discoveryv1.Endpoint) identity {
	id := identity{addresses: strings.Join(e.Addresses, " ")}
	if e.TargetRef != nil {
		id.pod = e.TargetRef.UID
	}
	return id
}

// arrange puts the endpoints of a group into slices.
func (a *arrangement) arrange(g *group, have []*discoveryv1.EndpointSlice) {
	missing := map[identity]discoveryv1.Endpoint{}
	for _, e := range g.endpoints {
		missing[identityOf(&e)] = e
	}
	before := len(a.keep)
	for _, s := range have {
		next := &arranged{was: s, group: g}
		for i := range s.Endpoints {
			id := identityOf(&s.Endpoints[i])
			if e, ok := missing[id]; ok && len(next.endpoints) < a.want.Max {
				next.endpoints = append(next.endpoints, e)
				delete(missing, id)
			}
		}
		if len(next.endpoints) == 0 {
			a.remove = append(a.remove, s)
			continue
		}
		next.changed = a.differs(next)
		a.keep = append(a.keep, next)
	}
	var left []discoveryv1.Endpoint
	for _, e := range g.endpoints {
		if _, ok := missing[identityOf(&e)]; ok {
			left = append(left, e)
			delete(missing, identityOf(&e))
		}
	}
	a.place(g, left, a.keep[before:])
}

// place finds a place for endpoints that are in no slice yet.
func (a *arrangement) place(g *group, left []discoveryv1.Endpoint, in []*arranged) {
	in = slices.Clone(in)
	slices.SortStableFunc(in, func(x, y *arranged) int { return len(y.endpoints) - len(x.endpoints) }) // the fullest first
	for _, s := range in {
		if s.changed {
			left = a.fill(s, left)
		}
	}
	for len(left) > 0 {
		to := a.room(in, len(left))
		if to == nil {
			to = &arranged{group: g}
			a.keep = append(a.keep, to)
		}
		left = a.fill(to, left)
	}
}

// room is the fullest slice that has room for n more and is not written yet.
func (a *arrangement) room(in []*arranged, n int) *arranged {
	for _, s := range in {
		if !s.changed && len(s.endpoints)+n <= a.want.Max {
			return s
		}
	}
	return nil
}

func (a *arrangement) fill(s *arranged, with []discoveryv1.Endpoint) []discoveryv1.Endpoint {
	n := min(a.want.Max-len(s.endpoints), len(with))
	s.endpoints = append(s.endpoints, with[:n]...)
	s.changed = s.changed || n > 0
	return with[n:]
}

// placehold makes a slice without endpoints, if there is none of a type.
func (a *arrangement) placehold(t discoveryv1.AddressType) {
	if slices.ContainsFunc(a.keep, func(s *arranged) bool { return s.group.kind == t }) {
		return
	}
	next := &arranged{group: &group{kind: t}}
	// One that is like that already stays.
	i := slices.IndexFunc(a.remove, func(s *discoveryv1.EndpointSlice) bool {
		return s.AddressType == t && len(s.Endpoints) == 0 && len(s.Ports) == 0 && a.owns(s)
	})
	if i >= 0 {
		next.was = a.remove[i]
		next.changed = a.differs(next)
		a.remove = slices.Delete(a.remove, i, i+1)
	}
	a.keep = append(a.keep, next)
}

// owns reports whether the owner of new slices owns one too.
func (a *arrangement) owns(s *discoveryv1.EndpointSlice) bool {
	return slices.ContainsFunc(s.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == a.want.Like.OwnerReferences[0].UID })
}

// differs reports whether a slice that exists is not what it is to be.
func (a *arrangement) differs(s *arranged) bool {
	like := a.want.Like
	return !slices.EqualFunc(s.was.Endpoints, s.endpoints, sameEndpoint) || !labels.Equals(s.was.Labels, like.Labels) ||
		like.Annotations != nil && !labels.Equals(s.was.Annotations, like.Annotations)
}

// changes are the writes. Slices that are to be removed become new ones, as far as
// they are of the same owner: what another owned goes with that.
func (a *arrangement) changes() (out Changes) {
	for _, s := range a.keep {
		if s.was == nil {
			i := slices.IndexFunc(a.remove, func(r *discoveryv1.EndpointSlice) bool { return r.AddressType == s.group.kind && a.owns(r) })
			if i < 0 {
				out.Create = append(out.Create, a.slice(s))
				continue
			}
			s.was, s.changed = a.remove[i], true
			a.remove = slices.Delete(a.remove, i, i+1)
		}
		if s.changed {
			out.Update = append(out.Update, a.slice(s))
		}
	}
	out.Remove = a.remove
	return out
}

// slice is what is to be written.
func (a *arrangement) slice(s *arranged) *discoveryv1.EndpointSlice {
	out := a.want.Like.DeepCopy()
	if s.was != nil {
		like := out
		out = s.was.DeepCopy()
		out.Labels = like.Labels
		if like.Annotations != nil {
			out.Annotations = like.Annotations
		}
	}
	out.AddressType, out.Ports, out.Endpoints = s.group.kind, s.group.ports, s.endpoints
	return out
}
