package client

import (
	"fmt"
	"net/url"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// ReadOption narrows or changes a Get, a List or a Watch.
type ReadOption interface{ read(*ReadOptions) }

// WriteOption changes a Create, an Update, a Patch or an Apply.
type WriteOption interface{ write(*writeOptions) }

// DeleteOption changes a Delete or a DeleteCollection.
type DeleteOption interface{ remove(*deleteOptions) }

// ReadOptions are the options of a read, put together. A [Layer] gets them.
type ReadOptions struct {
	// Namespace is "" for all.
	Namespace string
	// Labels and Fields are nil for everything.
	Labels labels.Selector
	Fields fields.Selector
	// Revision and Match are the resourceVersion and how it is meant.
	Revision string
	Match    metav1.ResourceVersionMatch
	// Chunk is how many objects the server may send at once; 0 is all.
	Chunk int64
	// Bookmarks, InitialEvents and Timeout are for watches.
	Bookmarks, InitialEvents bool
	Timeout                  time.Duration

	err error
}

// readOptions puts options together.
func readOptions(namespace string, opts []ReadOption) (ReadOptions, error) {
	o := ReadOptions{Namespace: namespace}
	for _, opt := range opts {
		opt.read(&o)
	}
	return o, o.err
}

type readOption func(*ReadOptions)

func (f readOption) read(o *ReadOptions) { f(o) }

// Selection narrows a read or a DeleteCollection. Several of them must all fit.
type Selection func(*ReadOptions)

func (f Selection) read(o *ReadOptions)     { f(o) }
func (f Selection) remove(o *deleteOptions) { f(&o.which) }

// Label selects objects by the value of a label.
func Label(key, value string) Selection {
	return Selector(labels.SelectorFromSet(labels.Set{key: value}))
}

// Labels selects objects by an expression such as "app=web,tier in (a,b),!old".
func Labels(expression string) Selection {
	s, err := labels.Parse(expression)
	if err != nil {
		return func(o *ReadOptions) { o.err = fmt.Errorf("label selector %q: %w", expression, err) }
	}
	return Selector(s)
}

// Selector selects objects by their labels.
func Selector(s labels.Selector) Selection {
	return func(o *ReadOptions) {
		if o.Labels == nil {
			o.Labels = s
			return
		}
		more, selectable := s.Requirements()
		if !selectable {
			o.Labels = s // nothing
			return
		}
		o.Labels = o.Labels.Add(more...)
	}
}

// Field selects objects by the value of a field, of those that the kind allows:
// metadata.name and metadata.namespace, for pods spec.nodeName and others.
func Field(path, value string) Selection {
	return addFields(fields.OneTermEqualSelector(path, value))
}

// Fields selects objects by an expression such as "status.phase!=Running".
func Fields(expression string) Selection {
	s, err := fields.ParseSelector(expression)
	if err != nil {
		return func(o *ReadOptions) { o.err = fmt.Errorf("field selector %q: %w", expression, err) }
	}
	return addFields(s)
}

func addFields(s fields.Selector) Selection {
	return func(o *ReadOptions) {
		if o.Fields != nil {
			s = fields.AndSelectors(o.Fields, s)
		}
		o.Fields = s
	}
}

// Chunk has lists come in pages of n objects, all of one revision.
func Chunk(n int) ReadOption { return readOption(func(o *ReadOptions) { o.Chunk = int64(n) }) }

// At reads the state at exactly a revision.
func At(revision string) ReadOption {
	return readOption(func(o *ReadOptions) { o.Revision, o.Match = revision, metav1.ResourceVersionMatchExact })
}

// NotOlderThan reads any state that is not older than a revision. With "0", it
// may be any at all, which is the cheapest for some servers. Without it, reads
// return the newest state.
func NotOlderThan(revision string) ReadOption {
	return readOption(func(o *ReadOptions) { o.Revision, o.Match = revision, metav1.ResourceVersionMatchNotOlderThan })
}

// From has a watch begin after a revision: that of a list, or of the last event
// that was seen. Without it, a watch begins with an Added for each object that
// there is.
func From(revision string) ReadOption {
	return readOption(func(o *ReadOptions) { o.Revision, o.Match = revision, "" })
}

// Bookmarks has a watch tell now and then up to which revision it is complete.
func Bookmarks() ReadOption { return readOption(func(o *ReadOptions) { o.Bookmarks = true }) }

// InitialEvents has a watch send the present state first, as Added, and then a
// bookmark with [Event.InitialEnd]. It does what a list and a watch do, in one.
// Servers that cannot do it answer with an error of which [IsInvalid] is true.
func InitialEvents() ReadOption {
	return readOption(func(o *ReadOptions) { o.InitialEvents, o.Bookmarks = true, true })
}

// Timeout has the server end a watch after a time.
func Timeout(d time.Duration) ReadOption { return readOption(func(o *ReadOptions) { o.Timeout = d }) }

// Options gives options that have been put together before.
func Options(all ReadOptions) ReadOption {
	return readOption(func(o *ReadOptions) {
		namespace := o.Namespace
		*o = all
		if all.Namespace == "" {
			o.Namespace = namespace
		}
	})
}

// selection is the part of a query that lists and collections share.
func (o ReadOptions) selection() url.Values {
	q := url.Values{}
	if o.Labels != nil && !o.Labels.Empty() {
		q.Set("labelSelector", o.Labels.String())
	}
	if o.Fields != nil && !o.Fields.Empty() {
		q.Set("fieldSelector", o.Fields.String())
	}
	return q
}

func (o ReadOptions) listQuery() url.Values {
	q := o.selection()
	if o.Chunk > 0 {
		q.Set("limit", strconv.FormatInt(o.Chunk, 10))
	}
	if o.Revision != "" {
		q.Set("resourceVersion", o.Revision)
		if o.Match != "" {
			q.Set("resourceVersionMatch", string(o.Match))
		}
	}
	return q
}

func (o ReadOptions) watchQuery() url.Values {
	q := o.selection()
	q.Set("watch", "true")
	if o.Revision != "" {
		q.Set("resourceVersion", o.Revision)
	}
	if o.Bookmarks {
		q.Set("allowWatchBookmarks", "true")
	}
	if o.InitialEvents {
		q.Set("sendInitialEvents", "true")
		q.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchNotOlderThan))
	}
	if o.Timeout > 0 {
		seconds := int64((o.Timeout + time.Second - 1) / time.Second)
		q.Set("timeoutSeconds", strconv.FormatInt(seconds, 10))
	}
	return q
}

// writeOptions are the query of a write.
type writeOptions struct{ query url.Values }

func (c *Conn) writeQuery(opts []WriteOption) url.Values {
	o := writeOptions{query: url.Values{}}
	if c.manager != "" {
		o.query.Set("fieldManager", c.manager)
	}
	for _, opt := range opts {
		opt.write(&o)
	}
	return o.query
}

type writeOption func(*writeOptions)

func (f writeOption) write(o *writeOptions) { f(o) }

// FieldManager names who makes a write, as managed fields tell it.
func FieldManager(name string) WriteOption {
	return writeOption(func(o *writeOptions) { o.query.Set("fieldManager", name) })
}

// Force has an apply take over fields that others manage.
func Force() WriteOption {
	return writeOption(func(o *writeOptions) { o.query.Set("force", "true") })
}

// Strict has a write fail if the object has fields that its kind does not.
func Strict() WriteOption {
	return writeOption(func(o *writeOptions) { o.query.Set("fieldValidation", metav1.FieldValidationStrict) })
}

// Dry has the server do all but keep what was written.
func Dry() DryOption { return DryOption{} }

// DryOption is what [Dry] returns: an option of writes and deletes.
type DryOption struct{}

func (DryOption) write(o *writeOptions)   { o.query.Set("dryRun", metav1.DryRunAll) }
func (DryOption) remove(o *deleteOptions) { o.body.DryRun = []string{metav1.DryRunAll} }

// deleteOptions are what a delete sends.
type deleteOptions struct {
	body  metav1.DeleteOptions
	which ReadOptions
}

type deleteOption func(*deleteOptions)

func (f deleteOption) remove(o *deleteOptions) { f(o) }

// Propagation says what happens to what the object owns.
func Propagation(p metav1.DeletionPropagation) DeleteOption {
	return deleteOption(func(o *deleteOptions) { o.body.PropagationPolicy = &p })
}

// Grace is how long the object has to end, in whole seconds; 0 is at once.
func Grace(d time.Duration) DeleteOption {
	seconds := int64(d / time.Second)
	return deleteOption(func(o *deleteOptions) { o.body.GracePeriodSeconds = &seconds })
}

// IfUID deletes only the object that has this UID, not another of the same name.
func IfUID(uid types.UID) DeleteOption {
	return deleteOption(func(o *deleteOptions) { o.preconditions().UID = &uid })
}

// IfRevision deletes the object only as it was at a revision.
func IfRevision(revision string) DeleteOption {
	return deleteOption(func(o *deleteOptions) { o.preconditions().ResourceVersion = &revision })
}

func (o *deleteOptions) preconditions() *metav1.Preconditions {
	if o.body.Preconditions == nil {
		o.body.Preconditions = &metav1.Preconditions{}
	}
	return o.body.Preconditions
}
