package rest

import (
	"context"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/even-keel/evenkeel/server/watch"
)

// call is one request about a resource.
type call struct {
	api    *API
	w      http.ResponseWriter
	r      *http.Request
	target target
	res    *resource
	query  url.Values
	out    output
	// warnings are sent as headers with the answer.
	warnings []string
}

func (c *call) ctx() context.Context { return c.r.Context() }

// serveResource answers a request about a resource.
func (a *API) serveResource(w http.ResponseWriter, r *http.Request, t target) {
	c := &call{api: a, w: w, r: r, target: t, query: r.URL.Query(), out: output{media: mediaJSON}}
	if err := c.serve(); err != nil {
		c.fail(err)
	}
}

func (c *call) serve() error {
	res, known := c.api.registry.find(c.target.gv, c.target.resource)
	if !known {
		http.NotFound(c.w, c.r)
		return nil
	}
	out, err := negotiate(c.r, true)
	if err != nil {
		return err
	}
	c.out = out
	if res == nil {
		return errNoSuchResource()
	}
	c.res = res
	if err := c.checkScope(); err != nil {
		return err
	}
	if c.target.subresource != "" {
		return c.serveSubresource()
	}
	if res.kind.CreateOnly {
		if c.r.Method != http.MethodPost || c.target.name != "" {
			return errMethodNotAllowed()
		}
		return c.review()
	}
	if c.target.name == "" {
		return c.serveCollection()
	}
	return c.serveObject()
}

// checkScope refuses namespaces for what has none, and objects without theirs.
func (c *call) checkScope() error {
	switch {
	case c.target.scoped && !c.res.kind.Namespaced:
		return errNoSuchResource()
	case !c.target.scoped && c.res.kind.Namespaced && c.target.name != "" && !c.target.watch:
		return errNoSuchResource()
	}
	return nil
}

func (c *call) serveCollection() error {
	switch c.r.Method {
	case http.MethodGet:
		return c.list()
	case http.MethodPost:
		if c.res.kind.Namespaced && !c.target.scoped {
			return errMethodNotAllowed()
		}
		return c.create()
	case http.MethodDelete:
		if c.res.kind.NoDeleteCollection || c.res.kind.Namespaced && !c.target.scoped {
			return errMethodNotAllowed()
		}
		return c.deleteCollection()
	default:
		return errMethodNotAllowed()
	}
}

func (c *call) serveObject() error {
	switch c.r.Method {
	case http.MethodGet:
		if c.target.watch || boolParam(c.query, "watch") {
			return c.list()
		}
		return c.get()
	case http.MethodPut:
		return c.update("")
	case http.MethodPatch:
		return c.patch("")
	case http.MethodDelete:
		return c.delete()
	default:
		return errMethodNotAllowed()
	}
}

// get answers with one object.
func (c *call) get() error {
	o, err := c.read()
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, o)
}

// read returns the object that the request names, as fresh as it asks for.
func (c *call) read() (*watch.Object, error) {
	if err := c.fresh(c.query.Get("resourceVersion")); err != nil {
		return nil, err
	}
	o := c.res.objects.Get(c.target.namespace, c.target.name)
	if o == nil {
		return nil, c.notFound()
	}
	return o, nil
}

func (c *call) notFound() error {
	return apierrors.NewNotFound(c.res.groupResource(), c.target.name)
}

// current returns the object after all writes that were answered before.
func (c *call) current() (*watch.Object, error) {
	if err := c.api.hub.Sync(c.ctx()); err != nil {
		return nil, err
	}
	o := c.res.objects.Get(c.target.namespace, c.target.name)
	if o == nil {
		return nil, c.notFound()
	}
	return o, nil
}

func (c *call) warn(text string) { c.warnings = append(c.warnings, text) }

func boolParam(q url.Values, name string) bool {
	if !q.Has(name) {
		return false
	}
	switch q.Get(name) {
	case "false", "0":
		return false
	}
	return true
}

// versioned returns a stored object in the version of the request.
func (c *call) versioned(obj runtime.Object) (runtime.Object, error) { return c.res.fromStored(obj) }
