package informer

import (
	"context"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/even-keel/evenkeel/cache"
	"github.com/even-keel/evenkeel/client"
)

// Layer is a [client.Layer] over an informer: its clients read from the cache,
// and see what they have written before the watch does. It holds no more than the
// writes that the watch has yet to tell.
//
// A write is over when the cache has it, or something later. Until then it is
// shown in place of what the cache has: an object that was deleted is gone, one
// that no longer fits the informer's selections is too, and one that fits is
// there, also in lists. Fields that only the server can judge count as fitting.
//
// Reads wait until the informer has synced. Objects of other namespaces than the
// informer's are read from the server; a list of all namespaces is of those that
// the informer has. Fields are looked up in the index of
// that name. What the cache cannot answer (a revision, a field without an index)
// is answered by the server.
type Layer[T client.Object] struct {
	in *Informer[T]

	mu    sync.Mutex
	wrote map[client.Key]own[T]
	// mine are the last revisions that were written, next is the place of the
	// following.
	mine []cache.Revision
	next int
}

// own is what a client wrote.
type own[T client.Object] struct {
	obj T
	// hidden says that there is nothing to be seen of the object, deleted that this
	// is because it is gone.
	hidden, deleted bool
	uid             types.UID
	// revision is that of the write, or the last one that is known of a deleted
	// object.
	revision cache.Revision
}

// ownRevisions is how many revisions of one's own are remembered.
const ownRevisions = 4096

// NewLayer returns a layer over an informer.
func NewLayer[T client.Object](in *Informer[T]) *Layer[T] {
	return &Layer[T]{in: in, wrote: map[client.Key]own[T]{}}
}

// Informer returns the informer that is read.
func (l *Layer[T]) Informer() *Informer[T] { return l.in }

// WaitForRevision is [Informer.WaitForRevision].
func (l *Layer[T]) WaitForRevision(ctx context.Context, r cache.Revision) error {
	return l.in.WaitForRevision(ctx, r)
}

// Wrote shows what a client has written to those who read.
func (l *Layer[T]) Wrote(w client.Write) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.wrote) > 64 {
		l.sweepLocked()
	}
	obj, told := w.Object.(T)
	told = told && w.Object != nil
	if told {
		l.remember(cache.Revision(obj.GetResourceVersion()))
	}
	if w.Delete && (!told || !endures(obj)) {
		l.goneLocked(w)
		return
	}
	if !told || l.knowsLaterLocked(w.Key, obj) {
		return
	}
	e := own[T]{uid: obj.GetUID(), revision: cache.Revision(obj.GetResourceVersion())}
	if l.fits(obj) {
		e.obj = l.prepared(obj)
	} else {
		e.hidden = true
	}
	l.wrote[w.Key] = e
}

// knowsLaterLocked reports whether what is known of an object is later than an answer:
// answers to several writers come in any order.
func (l *Layer[T]) knowsLaterLocked(key client.Key, obj T) bool {
	e, known := l.wrote[key]
	return known && (e.deleted && e.uid == obj.GetUID() || e.revision.Includes(cache.Revision(obj.GetResourceVersion())))
}

// endures reports whether an object exists beyond its deletion.
func endures(obj client.Object) bool {
	grace := obj.GetDeletionGracePeriodSeconds()
	return obj.GetDeletionTimestamp() != nil && (len(obj.GetFinalizers()) > 0 || grace != nil && *grace > 0)
}

// goneLocked hides the object that is known by a name, unless it is another than the
// one that was deleted: a watch may be faster than an answer. If none is known, there
// is nothing to hide.
func (l *Layer[T]) goneLocked(w client.Write) {
	e, known := l.wrote[w.Key]
	if !known {
		cached, ok := l.in.Get(w.Key.Namespace, w.Key.Name)
		if !ok {
			return
		}
		e = own[T]{uid: cached.GetUID(), revision: cache.Revision(cached.GetResourceVersion())}
	}
	if w.UID == "" || w.UID == e.uid {
		l.wrote[w.Key] = own[T]{hidden: true, deleted: true, uid: e.uid, revision: e.revision}
	}
}

// prepared is what the cache would have made of an object. It is a copy: the
// object is its writer's.
func (l *Layer[T]) prepared(obj T) T {
	out := obj.DeepCopyObject().(T)
	if !l.in.of.config.keepManaged {
		out.SetManagedFields(nil)
	}
	if l.in.of.transform != nil {
		out = l.in.of.transform(out)
	}
	return out
}

// Shares reports whether two layers are over one cache.
func (l *Layer[T]) Shares(other *Layer[T]) bool { return l.in.of == other.in.of }

func (l *Layer[T]) remember(r cache.Revision) {
	if len(l.mine) < ownRevisions {
		l.mine = append(l.mine, r)
		return
	}
	l.mine[l.next] = r
	l.next = (l.next + 1) % ownRevisions
}

// Mine reports whether a revision is one that a client of this layer wrote, not
// too long ago. A handler can so tell its own changes from those of others.
func (l *Layer[T]) Mine(r cache.Revision) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return r != "" && slices.Contains(l.mine, r)
}

// Covers reports whether the informer watches a namespace, "" being all of them,
// and whether it does so whole: without selectors. What it does not cover is read
// from the server.
func (l *Layer[T]) Covers(namespace string) (covers, whole bool) {
	selected := l.in.of.selected.Load()
	if selected == nil {
		return false, false
	}
	for _, s := range *selected {
		if s.Namespace != "" && s.Namespace != namespace {
			continue
		}
		covers, whole = true, whole || s.Labels == "" && s.Fields == ""
	}
	return covers, whole
}

// Has reports whether all objects that fit some options, as the server has them, are
// among those that the informer watches: it watches them without selectors, or what
// its selectors ask for is asked for by the options too.
func (l *Layer[T]) Has(o client.ReadOptions) bool {
	selected := l.in.of.selected.Load()
	return selected != nil && slices.ContainsFunc(*selected, func(s Selection) bool {
		return (s.Namespace == "" || s.Namespace == o.Namespace) && s.narrows(o)
	})
}

// narrows reports whether options ask for no more than a selection does.
func (s Selection) narrows(o client.ReadOptions) bool {
	if s.Labels != "" {
		wants, err := labels.ParseToRequirements(s.Labels)
		if err != nil || o.Labels == nil {
			return false
		}
		asked, _ := o.Labels.Requirements()
		for _, w := range wants {
			if !slices.ContainsFunc(asked, func(a labels.Requirement) bool { return a.String() == w.String() }) {
				return false
			}
		}
	}
	if s.Fields == "" {
		return true
	}
	wants, err := fields.ParseSelector(s.Fields)
	if err != nil || o.Fields == nil {
		return false
	}
	for _, w := range wants.Requirements() {
		if !slices.Contains(o.Fields.Requirements(), w) {
			return false
		}
	}
	return true
}

// Pending is how many writes the cache has yet to see.
func (l *Layer[T]) Pending() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweepLocked()
	return len(l.wrote)
}

func (l *Layer[T]) sweepLocked() {
	now := l.in.Snapshot()
	for key, e := range l.wrote {
		if over(now, key, e) {
			delete(l.wrote, key)
		}
	}
}

// over reports whether a state of the cache has a write, or something later. A
// cache that has seen an object's last known revision and does not have it has
// seen its deletion.
func over[T client.Object](now cache.Snapshot[T], key client.Key, e own[T]) bool {
	cached, there := now.Get(key.Namespace, key.Name)
	switch {
	case !there:
		return now.Revision().Includes(e.revision)
	case e.deleted && cached.GetUID() == e.uid:
		return false
	}
	return cache.Revision(cached.GetResourceVersion()).Includes(e.revision)
}

// fits reports whether an object may be in the informer.
func (l *Layer[T]) fits(obj T) bool {
	of := l.in.of
	of.turn.Lock()
	defer of.turn.Unlock()
	if !of.scoped {
		return true
	}
	return slices.ContainsFunc(of.parts, func(p *part[T]) bool { return p.selection.fits(obj) })
}

// fits reports whether a selection may have an object. Fields that only the
// server knows count as fitting.
func (s Selection) fits(obj client.Object) bool {
	if s.Namespace != "" && s.Namespace != obj.GetNamespace() {
		return false
	}
	if s.Labels != "" {
		if l, err := labels.Parse(s.Labels); err == nil && !l.Matches(labels.Set(obj.GetLabels())) {
			return false
		}
	}
	if s.Fields == "" {
		return true
	}
	f, err := fields.ParseSelector(s.Fields)
	if err != nil {
		return true
	}
	for _, r := range f.Requirements() {
		value, known := nameField(obj, r.Field)
		if known && (value == r.Value) != (r.Operator != "!=") {
			return false
		}
	}
	return true
}

func nameField(obj client.Object, name string) (value string, known bool) {
	switch name {
	case "metadata.name":
		return obj.GetName(), true
	case "metadata.namespace":
		return obj.GetNamespace(), true
	}
	return "", false
}

// Get returns the object of a name: as it was last written, or as the cache has
// it.
func (l *Layer[T]) Get(ctx context.Context, key client.Key) (client.Object, error) {
	if covers, _ := l.Covers(key.Namespace); !covers {
		return nil, client.ErrUncached
	}
	if err := l.in.WaitForSync(ctx); err != nil {
		return nil, err
	}
	now, e, ok := l.written(key)
	if ok {
		if e.hidden {
			return nil, l.notFound(ctx, key)
		}
		return e.obj, nil
	}
	obj, ok := now.Get(key.Namespace, key.Name)
	if !ok {
		return nil, l.notFound(ctx, key)
	}
	return obj, nil
}

// written returns the state of the cache, and a write of which that does not know.
// The state is taken with the lock: to who has an older one, a write that others
// have found to be over would be lost.
func (l *Layer[T]) written(key client.Key) (now cache.Snapshot[T], e own[T], ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now = l.in.Snapshot()
	if e, ok = l.wrote[key]; ok && over(now, key, e) {
		delete(l.wrote, key)
		ok = false
	}
	return now, e, ok
}

func (l *Layer[T]) notFound(ctx context.Context, key client.Key) error {
	r, err := l.in.of.client.Resource(ctx)
	if err != nil {
		return err
	}
	return apierrors.NewNotFound(r.GroupResource(), key.Name)
}
