package rest

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/even-keel/evenkeel/server/gather"
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

// conn gathers what is sent to the client. It is nil where a connection carries
// several answers at once.
func (c *call) conn() *gather.Conn {
	if c.r.ProtoMajor != 1 {
		return nil
	}
	return gather.Of(c.ctx())
}

// serveResource answers a request about a resource.
func (a *API) serveResource(w http.ResponseWriter, r *http.Request, t target) {
	c := &call{api: a, w: w, r: r, target: t, query: r.URL.Query(), out: output{media: mediaJSON}}
	if err := c.serve(); err != nil {
		c.fail(err)
	}
}

func (c *call) serve() error {
	res, known := c.api.registry.find(c.target.gv, c.target.resource)
	if group := c.target.gv.Group; !known && group != "" && !c.api.discovery().HasGroup(group) {
		http.NotFound(c.w, c.r)
		return nil
	}
	if res == nil {
		if c.api.isCustomGroup(c.target.gv.Group) {
			http.NotFound(c.w, c.r)
			return nil
		}
		return errNoSuchResource()
	}
	c.res = res
	if res.kind.Deprecated != "" {
		c.warn(res.kind.Deprecated)
	}
	if err := c.checkScope(); err != nil {
		if res.custom != nil { // to the real server, such a path does not exist
			http.NotFound(c.w, c.r)
			return nil
		}
		return err
	}
	var err error
	if c.out, err = negotiate(c.r, c.forms()); err != nil {
		return err
	}
	if res.custom != nil {
		if err := c.refuseProto(); err != nil {
			return err
		}
	}
	if err := c.checkQuery(); err != nil {
		return err
	}
	cancel, err := c.limitTime()
	if err != nil {
		return err
	}
	defer cancel()
	if err := c.readWriter(); err != nil {
		return err
	}
	if c.target.subresource != "" {
		return c.serveSubresource()
	}
	if res.kind.CreateOnly {
		switch {
		case c.target.name != "":
			return errNoSuchResource()
		case c.r.Method != http.MethodPost:
			return errMethodNotAllowed()
		}
		if res.storage == "bindings" {
			return c.bind()
		}
		return c.review()
	}
	if c.target.watch && c.r.Method != http.MethodGet {
		return errMethodNotAllowed()
	}
	if c.target.name == "" {
		return c.serveCollection()
	}
	return c.serveObject()
}

// forms are what the request's answer can be sent in.
func (c *call) forms() []string {
	if c.r.Method == http.MethodGet && c.target.name == "" {
		return listMedia
	}
	return plainMedia
}

// checkQuery refuses what no request of any verb may ask for.
func (c *call) checkQuery() error {
	if c.target.name != "" {
		if msgs := path.IsValidPathSegmentName(c.target.name); len(msgs) > 0 {
			return apierrors.NewBadRequest(fmt.Sprintf("Name parameter invalid: %q: %s", c.target.name, strings.Join(msgs, ";")))
		}
	}
	if c.out.as != "Table" {
		return nil
	}
	return checkIncludeObject(c.query.Get("includeObject"))
}

// limitTime gives the request the time that the client has for it. A watch has
// an option of its own.
func (c *call) limitTime() (cancel func(), err error) {
	timeout := c.query.Get("timeout")
	if timeout == "" || Describe(c.r).Watch {
		return func() {}, nil
	}
	limit, err := time.ParseDuration(timeout)
	if err != nil {
		return nil, apierrors.NewBadRequest("invalid timeout specified in the request URL - " + err.Error())
	}
	if limit <= 0 {
		return func() {}, nil
	}
	ctx, cancel := context.WithTimeout(c.ctx(), limit)
	c.r = c.r.WithContext(ctx)
	return cancel, nil
}

// checkScope refuses namespaces for what has none, and objects without theirs.
func (c *call) checkScope() error {
	switch {
	case c.target.scoped && !c.res.kind.Namespaced:
		return errNoSuchResource()
	case !c.target.scoped && c.res.kind.Namespaced && c.target.name != "" && !c.target.watch:
		return errNoSuchResource()
	case !c.target.scoped && c.res.kind.Namespaced && c.res.custom != nil && c.r.Method != http.MethodGet:
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
		if c.target.watch {
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
