package cache

import (
	"slices"
	"sync/atomic"
)

// Group lets several stores be read at one point in time. All of them publish
// under one atomic pointer, so that a View is a state that they were in
// together. The zero Group is ready; a store joins by its Options, and goes by
// [Store.Leave].
type Group struct {
	state atomic.Pointer[View]
}

// View is the state of all stores of a group at one point in time.
// [Store.At] reads one of them.
type View struct {
	roots []published
}

// published is what a member last published.
type published struct {
	by   *member
	root *root
}

// member is a store as its group knows it. It remembers its place in the list,
// which is right until another member leaves.
type member struct {
	place atomic.Int32
}

// View returns the present state. It takes no lock and copies nothing.
func (g *Group) View() *View {
	if v := g.state.Load(); v != nil {
		return v
	}
	return &View{}
}

// root returns what a member had published, or nil.
func (v *View) root(m *member) *root {
	if i := int(m.place.Load()); i < len(v.roots) && v.roots[i].by == m {
		return v.roots[i].root
	}
	if i := v.find(m); i >= 0 {
		m.place.Store(int32(i))
		return v.roots[i].root
	}
	return nil
}

func (v *View) find(m *member) int {
	return slices.IndexFunc(v.roots, func(p published) bool { return p.by == m })
}

// publish makes a root the present one of a member.
func (g *Group) publish(m *member, r *root) {
	g.swap(func(v *View) {
		if i := v.find(m); i >= 0 {
			v.roots[i].root = r
		} else {
			v.roots = append(v.roots, published{m, r})
		}
	})
}

func (g *Group) remove(m *member) {
	g.swap(func(v *View) {
		v.roots = slices.DeleteFunc(v.roots, func(p published) bool { return p.by == m })
	})
}

// swap replaces the view by a changed copy. Members publish at the same time,
// and none may undo another's change.
func (g *Group) swap(change func(*View)) {
	for {
		old := g.state.Load()
		next := &View{}
		if old != nil {
			next.roots = slices.Clone(old.roots)
		}
		if change(next); g.state.CompareAndSwap(old, next) {
			return
		}
	}
}
