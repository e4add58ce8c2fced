package rest

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/even-keel/evenkeel/server/watch"
	"github.com/even-keel/evenkeel/storage"
)

// page is what a list answers.
type page struct {
	objects   []*watch.Object
	revision  storage.Revision
	next      string // a continue token
	remaining *int64
}

// list answers a list or, if it is asked for, a watch.
func (c *call) list() error {
	o, err := c.listOptions()
	if err != nil {
		return err
	}
	sel, err := c.selector(o)
	if err != nil {
		return err
	}
	if o.Watch {
		return c.watch(o, sel)
	}
	p, err := c.page(o, sel)
	if err != nil {
		return err
	}
	return c.answerList(p)
}

func (c *call) selector(o internalversion.ListOptions) (*selector, error) {
	f := o.FieldSelector
	if c.target.name != "" { // a watch of one object by its own path
		own := fields.OneTermEqualSelector("metadata.name", c.target.name)
		if f != nil && !f.Matches(fields.Set{"metadata.name": c.target.name, "metadata.namespace": c.target.namespace}) {
			return nil, apierrors.NewBadRequest("fieldSelector metadata.name doesn't match requested name")
		}
		if f != nil && !f.Empty() {
			own = fields.AndSelectors(f, own)
		}
		f = own
	}
	return newSelector(c.res, c.target.namespace, "", o.LabelSelector, f)
}

// page reads the objects that a list is about.
func (c *call) page(o internalversion.ListOptions, sel *selector) (page, error) {
	if o.ResourceVersion == "0" {
		o.Limit = 0 // who takes any state gets it whole
	}
	if o.Continue != "" {
		return c.nextPage(o, sel)
	}
	rev, err := revision(o.ResourceVersion)
	if err != nil {
		return page{}, apierrors.NewBadRequest(fmt.Sprintf("invalid resource version: %v", err))
	}
	exact := o.ResourceVersionMatch == metav1.ResourceVersionMatchExact ||
		o.ResourceVersionMatch == "" && o.Limit > 0 && rev > 0
	if exact {
		p, err := c.pageAt(rev, "", o.Limit, sel)
		if errors.Is(err, storage.ErrCompacted) {
			return p, expired("The resourceVersion for the provided list is too old.")
		}
		return p, err
	}
	if err := c.fresh(o.ResourceVersion); err != nil {
		return page{}, err
	}
	return c.pageNow(c.res.objects.Snapshot(), "", o.Limit, sel)
}

// nextPage goes on with a list where its token says.
func (c *call) nextPage(o internalversion.ListOptions, sel *selector) (page, error) {
	t, err := parseToken(o.Continue)
	if err != nil {
		return page{}, err
	}
	if o.ResourceVersion != "" && o.ResourceVersion != "0" {
		return page{}, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
	}
	if t.Revision == anyRevision {
		if err := c.fresh(""); err != nil {
			return page{}, err
		}
		return c.pageNow(c.res.objects.Snapshot(), t.Start, o.Limit, sel)
	}
	p, err := c.pageAt(t.at(), t.Start, o.Limit, sel)
	if errors.Is(err, storage.ErrCompacted) {
		return page{}, continueExpired(t)
	}
	return p, err
}

func continueExpired(t token) error {
	err := expired("The provided continue parameter is too old to display a consistent list result. " +
		"You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. " +
		"Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.")
	t.Revision = anyRevision
	if next, encodeErr := t.encode(); encodeErr == nil {
		err.ErrStatus.ListMeta.Continue = next
	}
	return err
}

// pageNow cuts a page from a snapshot.
func (c *call) pageNow(s watch.Snapshot, start string, limit int64, sel *selector) (page, error) {
	b := &pageBuilder{limit: limit, sel: sel, page: page{revision: s.Revision}}
	s.Scan(sel.namespace, max(start, sel.scopeKey()), b.add)
	return b.finish()
}

// pageAt cuts a page from a state of the past. It is taken from memory if
// nothing has changed since.
func (c *call) pageAt(rev storage.Revision, start string, limit int64, sel *selector) (page, error) {
	if err := c.waitFor(rev); err != nil {
		return page{}, err
	}
	if s, ok := c.res.objects.SnapshotAt(rev); ok {
		s.Revision = rev
		return c.pageNow(s, start, limit, sel)
	}
	prefix := watch.Prefix(c.res.storage)
	r := storage.Range{Prefix: prefix, Revision: rev, Limit: 1000}
	if sel.namespace != "" {
		r.Prefix += storage.Key(sel.namespace + "/")
	}
	if from := max(start, sel.scopeKey()); from != "" {
		r.Start = prefix + storage.Key(from)
	}
	b := &pageBuilder{limit: limit, sel: sel, page: page{revision: rev}}
	for {
		got, err := c.api.store.Scan(c.ctx(), r)
		if err != nil {
			return page{}, err
		}
		for _, e := range got.Entries {
			o, err := watch.NewObject(e.Key, e.Value, e.Revision)
			if err != nil {
				return page{}, err
			}
			b.add(o)
		}
		if !got.More {
			return b.finish()
		}
		r.Start = got.Next
	}
}

// pageBuilder collects the objects of a page and counts those past it.
type pageBuilder struct {
	page
	limit int64
	sel   *selector
	rest  int64
	after *watch.Object // the first past the page
	err   error
}

func (b *pageBuilder) add(o *watch.Object) bool {
	ok, err := b.sel.matches(o)
	if err != nil {
		b.err = err
		return false
	}
	if !ok {
		return true
	}
	if b.limit > 0 && int64(len(b.objects)) >= b.limit {
		if b.after == nil {
			b.after = o
		}
		b.rest++
		return !b.sel.selective() // without a selector the rest is counted
	}
	b.objects = append(b.objects, o)
	return true
}

func (b *pageBuilder) finish() (page, error) {
	if b.err != nil {
		return page{}, b.err
	}
	if b.after != nil {
		next, err := token{Revision: int64(b.revision), Start: b.after.Namespace + "/" + b.after.Name}.encode()
		if err != nil {
			return page{}, err
		}
		b.next = next
		if !b.sel.selective() {
			b.remaining = &b.rest
		}
	}
	return b.page, nil
}

func (p page) listMeta() metav1.ListMeta {
	return metav1.ListMeta{
		ResourceVersion: fmt.Sprint(p.revision), Continue: p.next, RemainingItemCount: p.remaining,
	}
}

// answerList sends a page in the form that the client wants.
func (c *call) answerList(p page) error {
	if c.out.as == "PartialObjectMetadata" {
		return notAcceptable(fmt.Sprintf("you requested PartialObjectMetadata, but the requested object is a list (*%s.%sList)", kindGroupName(c.res.kind.GVK.Group), c.res.kind.GVK.Kind))
	}
	asStored, err := c.allAsStored(p.objects)
	if err != nil {
		return err
	}
	if c.out.as == "" && !c.out.pretty {
		switch {
		case c.out.media == mediaJSON && asStored && c.res.custom != nil:
			return c.sendCustomList(http.StatusOK, p)
		case c.out.media == mediaJSON && asStored:
			return c.sendJSONList(http.StatusOK, p)
		case c.out.media == mediaProto:
			return c.sendProtoList(p)
		}
	}
	obj, err := c.typedList(p)
	if err != nil {
		return err
	}
	return c.sendObject(http.StatusOK, obj)
}
