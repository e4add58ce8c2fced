package rest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/even-keel/evenkeel/server/custom"
	"github.com/even-keel/evenkeel/server/watch"
)

// Custom resources are served by the same code as built-in kinds. This file has
// what is different about them: objects are unstructured, are of the version of
// the request all the way to the store, and may be stored in another.

// decodeCustom reads a body that must hold an object of the request's version.
func (c *call) decodeCustom(media string, body []byte) (runtime.Object, []error, error) {
	decoder, ok := c.api.codec.decoder(media)
	if !ok || media == mediaProto {
		return nil, nil, errUnknownFormat()
	}
	gvk := c.res.gvk
	var found []error
	obj, got, err := decoder.Decode(body, &gvk, &unstructured.Unstructured{})
	if strict, ok := runtime.AsStrictDecodingError(err); ok && obj != nil {
		found, err = strict.Errors(), nil
	}
	if err != nil {
		return nil, nil, decodeError(err, got, gvk.Kind, body)
	}
	u := obj.(*unstructured.Unstructured)
	if gv := u.GroupVersionKind().GroupVersion(); gv != gvk.GroupVersion() {
		return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)", gv, gvk.GroupVersion()))
	}
	unknown, err := c.res.custom.Coerce(u)
	if err != nil {
		return nil, nil, decodeError(err, got, gvk.Kind, body)
	}
	for _, path := range unknown {
		found = append(found, fmt.Errorf("unknown field %q", path))
	}
	return u, found, nil
}

// decodeBody reads a body that must hold an object of the request's version.
func (c *call) decodeBody(media string, body []byte) (runtime.Object, []error, error) {
	if c.res.custom != nil {
		return c.decodeCustom(media, body)
	}
	return c.api.codec.decode(media, body, c.res.gvk, c.res.new())
}

// customKey is where an object keeps its form in a version; it is of the state
// that the definition had.
type customKey struct{ version string }

type customForm struct {
	of  *custom.Version
	obj *unstructured.Unstructured
	// stored says that the form is what is stored.
	stored bool
}

// customForm returns an object in the resource's version. It is shared.
func (r *resource) customForm(o *watch.Object) (customForm, error) {
	if f, ok := r.keptForm(o); ok && f.obj != nil {
		return f, nil
	}
	forms, err := r.makeForms(context.Background(), []*watch.Object{o})
	if err != nil {
		return customForm{}, err
	}
	if o.Len() <= keptDecoded {
		o.Keep(customKey{r.gvk.Version}, forms[0])
	}
	return forms[0], nil
}

func (r *resource) keptForm(o *watch.Object) (customForm, bool) {
	f, ok := o.Kept(customKey{r.gvk.Version}).(customForm)
	return f, ok && f.of == r.custom
}

// makeForms brings objects into the resource's version, by one call if they have
// to be converted by a webhook.
func (r *resource) makeForms(ctx context.Context, objects []*watch.Object) ([]customForm, error) {
	before := make([]*unstructured.Unstructured, len(objects))
	for i, o := range objects {
		before[i] = &unstructured.Unstructured{}
		if err := before[i].UnmarshalJSON(o.AppendJSON(make([]byte, 0, o.Len()))); err != nil {
			return nil, fmt.Errorf("decode %s %s/%s: %w", r.storage, o.Namespace, o.Name, err)
		}
	}
	after, err := r.custom.FromStored(ctx, before)
	if err != nil {
		return nil, err
	}
	forms := make([]customForm, len(objects))
	for i, u := range after {
		forms[i] = customForm{of: r.custom, obj: u}
		if objects[i].HasPrefix(r.jsonStart) {
			text, err := encode(u)
			forms[i].stored = err == nil && objects[i].Equal(text)
		}
	}
	return forms, nil
}

// asStored reports whether an object's own bytes are what the resource serves.
// For custom resources that is so if the object is stored in this version, and
// the definition has not come to prune or default any of it since. An object is
// looked at once, and one that this server has written not even that.
func (r *resource) asStored(o *watch.Object) bool {
	if r.custom == nil {
		return r.version == nil
	}
	if !o.HasPrefix(r.jsonStart) {
		return false
	}
	if f, ok := r.keptForm(o); ok {
		return f.stored
	}
	forms, err := r.makeForms(context.Background(), []*watch.Object{o})
	if err != nil {
		return false // who decodes it will tell
	}
	f := customForm{of: r.custom, stored: forms[0].stored}
	if !f.stored && o.Len() <= keptDecoded {
		f.obj = forms[0].obj
	}
	o.Keep(customKey{r.gvk.Version}, f)
	return f.stored
}

// outdated reports whether an object is stored otherwise than it would be if it
// were written now: in another version, or with fields that the definition has
// come to prune or lacks since. A write that changes nothing then is one, which
// is how what is stored comes into another version. obj is what was read of o.
func (r *resource) outdated(ctx context.Context, o *watch.Object, obj runtime.Object) (bool, error) {
	if r.custom == nil {
		return false, nil
	}
	if r.gvk.GroupVersion() == r.custom.Stored {
		return !r.asStored(o), nil
	}
	stored, err := r.toStoredVersion(ctx, obj)
	if err != nil {
		return false, err
	}
	text, err := encode(stored)
	return err == nil && !o.Equal(text), err
}

// wrote notes that an object has just been stored as the resource serves it.
func (r *resource) wrote(o *watch.Object) {
	if r.custom == nil || !o.HasPrefix(r.jsonStart) {
		return
	}
	form := customForm{of: r.custom, stored: true}
	o.Keep(customKey{r.gvk.Version}, form)
	if seen := r.objects.Get(o.Namespace, o.Name); seen != nil && seen.Revision == o.Revision {
		seen.Keep(customKey{r.gvk.Version}, form)
	}
}

// allAsStored reports whether a list can be sent from the bytes of its objects.
// What must be converted is converted, all of it at once.
func (c *call) allAsStored(objects []*watch.Object) (bool, error) {
	if c.res.custom == nil {
		return c.res.version == nil, nil
	}
	var strange []*watch.Object
	for _, o := range objects {
		if c.res.asStored(o) {
			continue
		}
		if f, ok := c.res.keptForm(o); !ok || f.obj == nil {
			strange = append(strange, o)
		}
	}
	if len(strange) > 0 {
		forms, err := c.res.makeForms(c.ctx(), strange)
		if err != nil {
			return false, err
		}
		for i, o := range strange {
			o.Keep(customKey{c.res.gvk.Version}, forms[i])
		}
	}
	for _, o := range objects {
		if !c.res.asStored(o) {
			return false, nil
		}
	}
	return true, nil
}

// toStoredVersion brings an object into the version in which it is stored.
func (r *resource) toStoredVersion(ctx context.Context, obj runtime.Object) (runtime.Object, error) {
	if r.custom == nil {
		return obj, nil
	}
	out, err := r.custom.Convert(ctx, []*unstructured.Unstructured{obj.(*unstructured.Unstructured)}, r.custom.Stored)
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// sendCustomList writes a list from the bytes of its objects. Unlike those of
// built-in kinds, items have their kind.
func (c *call) sendCustomList(code int, p page) error {
	m := c.res.newList().(*unstructured.UnstructuredList)
	p.setListMeta(m)
	list, err := json.Marshal(m.Object["metadata"])
	if err != nil {
		return err
	}
	head := fmt.Appendf(nil, `{"apiVersion":%q,"items":[`, m.GetAPIVersion())
	tail := fmt.Appendf(nil, `],"kind":%q,"metadata":%s}`+"\n", m.GetKind(), list)
	size := len(head) + len(tail) + max(0, len(p.objects)-1)
	for _, o := range p.objects {
		size += o.Len()
	}
	return c.stream(code, mediaJSON, size, func(w *bufio.Writer) error {
		_, _ = w.Write(head)
		for i, o := range p.objects {
			if i > 0 {
				_ = w.WriteByte(',')
			}
			if err := o.WriteJSON(w, 0); err != nil {
				return err
			}
		}
		_, err := w.Write(tail)
		return err
	})
}

func (p page) setListMeta(list metav1.ListInterface) {
	list.SetResourceVersion(fmt.Sprint(p.revision))
	list.SetContinue(p.next)
	list.SetRemainingItemCount(p.remaining)
}

// fillCustom makes a list of decoded objects.
func (c *call) fillCustom(objs []runtime.Object, p page) runtime.Object {
	list := c.res.newList().(*unstructured.UnstructuredList)
	p.setListMeta(list)
	list.Items = make([]unstructured.Unstructured, len(objs))
	for i, obj := range objs {
		list.Items[i] = *obj.(*unstructured.Unstructured)
	}
	return list
}

// isCustomGroup reports whether a group has nothing but custom resources. Paths
// below one are unknown to the server, where those below its own are only
// without a resource.
func (a *API) isCustomGroup(group string) bool {
	found := false
	for _, r := range a.registry.all() {
		if r.gvk.Group != group {
			continue
		}
		if r.custom == nil {
			return false
		}
		found = true
	}
	return found
}

// refuseTerminating refuses new objects of a definition that is being deleted.
func (c *call) refuseTerminating(name string) error {
	if c.res.custom == nil || !c.api.definitions.terminating(c.res.storage) {
		return nil
	}
	return apierrors.NewForbidden(c.res.groupResource(), name, errTerminating)
}

// errTerminating is why nothing new may come.
var errTerminating = errors.New("create not allowed while custom resource definition is terminating")
