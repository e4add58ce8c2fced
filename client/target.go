package client

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// target is the kind that a client is for: by its kind, or by its resource.
type target struct {
	kind     schema.GroupVersionKind
	resource schema.GroupVersionResource
	form     Form
	// builtin is set if no server has to be asked.
	builtin *Resource
	// err is why it is not known; every call returns it.
	err error
}

func newTarget[T Object](conn *Conn, opts []KindOption) *target {
	goType := reflect.TypeFor[T]()
	t := &target{}
	switch goType {
	case unstructuredType, metadataType:
		t.form = Dynamic
		if goType == metadataType {
			t.form = Metadata
		}
		t.err = fmt.Errorf("%s: %w: name its kind", goType, ErrUnknownType)
	default:
		t.kind, t.err = kindOf(goType, conn.scheme)
		if t.err == nil && isBuiltin(goType) {
			t.builtin = builtinResource(t.kind)
		}
	}
	for _, o := range opts {
		o(t)
		t.builtin = nil
	}
	return t
}

func isBuiltin(t reflect.Type) bool {
	_, ok := builtinKind(t.Elem())
	return ok
}

// resolve finds out how the kind is served, from what is known if it can.
func (t *target) resolve(ctx context.Context, conn *Conn) (Resource, error) {
	switch {
	case t.err != nil:
		return Resource{}, t.err
	case t.builtin != nil:
		return *t.builtin, nil
	case t.resource.Resource != "":
		return conn.ResolveResource(ctx, t.resource)
	}
	return conn.Resolve(ctx, t.kind)
}

// Resource returns how the server serves the client's kind. For kinds that are
// not built in, it asks the server, once; see [Conn.Resolve].
func (c *Client[T]) Resource(ctx context.Context) (Resource, error) {
	return c.target.resolve(ctx, c.conn)
}

// collection makes a request to all objects of the kind, in the client's
// namespace or in all.
func (c *Client[T]) collection(ctx context.Context, method, namespace string, query url.Values) (*call, Resource, error) {
	r, err := c.Resource(ctx)
	if err != nil {
		return nil, r, err
	}
	c.codec.learn(r.GVK())
	var b strings.Builder
	b.WriteString(versionPath(r.GroupVersion()))
	if namespace != "" {
		if !r.Namespaced {
			return nil, r, fmt.Errorf("%s %s: they are not in namespaces, but %q is given: %w", strings.ToLower(method), r.Resource, namespace, ErrScope)
		}
		if problems := content.IsPathSegmentName(namespace); len(problems) > 0 {
			return nil, r, fmt.Errorf("namespace %q: %w: it %s", namespace, ErrScope, strings.Join(problems, ", "))
		}
		b.WriteString("/namespaces/" + namespace)
	}
	b.WriteString("/" + r.Resource)
	return &call{method: method, path: b.String(), query: query, accept: c.codec.accept(false), of: r, namespace: namespace}, r, nil
}

// object makes a request to one object, or to a subresource of it.
func (c *Client[T]) object(ctx context.Context, method string, key Key, sub string, query url.Values) (*call, error) {
	namespace := key.Namespace
	if namespace == "" {
		namespace = c.namespace
	}
	r, resource, err := c.collection(ctx, method, namespace, query)
	if err != nil {
		return nil, err
	}
	if problems := content.IsPathSegmentName(key.Name); key.Name == "" || len(problems) > 0 {
		return nil, fmt.Errorf("%s %s: the name %q: %w", strings.ToLower(method), resource.Resource, key.Name, errName(problems))
	}
	if resource.Namespaced && namespace == "" {
		return nil, fmt.Errorf("%s %s %q: it needs a namespace: %w", strings.ToLower(method), resource.Resource, key.Name, ErrScope)
	}
	r.path += "/" + key.Name
	r.name = key.Name
	if sub != "" {
		r.path += "/" + sub
		r.sub = sub
	}
	return r, nil
}

func errName(problems []string) error {
	if len(problems) == 0 {
		return errors.New("it is empty")
	}
	return errors.New("it " + strings.Join(problems, ", "))
}

// check forgets how the kind is served if the server knows no such path: the
// kind may have gone, or have come back under another name.
func (c *Client[T]) check(err error) error {
	if c.target.builtin == nil && c.target.err == nil && isNoPath(err) {
		gv := c.target.kind.GroupVersion()
		if c.target.resource.Resource != "" {
			gv = c.target.resource.GroupVersion()
		}
		c.conn.mapping.forget(gv)
	}
	return err
}

// isNoPath tells a path that is not served from an object that does not exist, of
// which the server says the name.
func isNoPath(err error) bool {
	var status apierrors.APIStatus
	if !IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Name == "" || apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
