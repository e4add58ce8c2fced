package rest

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	internalscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	internalvalidation "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/even-keel/evenkeel/storage"
)

// freshnessWait is how long a read waits for a revision that is yet to come.
const freshnessWait = 3 * time.Second

// params reads a request's query into options of meta.k8s.io/v1.
func params(query url.Values, into runtime.Object) error {
	if err := internalscheme.ParameterCodec.DecodeParameters(query, metav1.SchemeGroupVersion, into); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}

func invalidOptions(kind string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", errs)
}

func (c *call) createOptions() (metav1.CreateOptions, error) {
	var o metav1.CreateOptions
	if err := params(c.query, &o); err != nil {
		return o, err
	}
	return o, invalidOptions("CreateOptions", metav1validation.ValidateCreateOptions(&o))
}

func (c *call) updateOptions() (metav1.UpdateOptions, error) {
	var o metav1.UpdateOptions
	if err := params(c.query, &o); err != nil {
		return o, err
	}
	return o, invalidOptions("UpdateOptions", metav1validation.ValidateUpdateOptions(&o))
}

// listOptions reads and checks the query of a list or a watch.
func (c *call) listOptions() (internalversion.ListOptions, error) {
	var o internalversion.ListOptions
	if err := internalscheme.ParameterCodec.DecodeParameters(c.query, metav1.SchemeGroupVersion, &o); err != nil {
		return o, apierrors.NewBadRequest(err.Error())
	}
	if c.target.watch {
		o.Watch = true
	}
	if errs := internalvalidation.ValidateListOptions(&o, true); len(errs) > 0 {
		return o, invalidOptions("ListOptions", errs)
	}
	if o.Watch && o.Continue != "" {
		return o, invalidOptions("ListOptions", field.ErrorList{
			field.Forbidden(field.NewPath("resourceVersionMatch"), "resourceVersionMatch is forbidden when continue is provided"),
		})
	}
	return o, nil
}

// revision reads a resourceVersion.
func revision(s string) (storage.Revision, error) {
	if s == "" || s == "0" {
		return 0, nil
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, field.Invalid(field.NewPath("resourceVersion"), s, err.Error())
	}
	return storage.Revision(n), nil
}

// fresh waits until a read may begin: "" wants all that has been answered, "0"
// anything, a number at least that.
func (c *call) fresh(rv string) error {
	switch rv {
	case "":
		return c.api.hub.Sync(c.ctx())
	case "0":
		return nil
	}
	rev, err := revision(rv)
	if err != nil {
		return err
	}
	return c.waitFor(rev)
}

func (c *call) waitFor(rev storage.Revision) error {
	ctx, cancel := context.WithTimeout(c.ctx(), freshnessWait)
	defer cancel()
	err := c.api.hub.Wait(ctx, rev)
	if errors.Is(err, context.DeadlineExceeded) && c.ctx().Err() == nil {
		return tooLarge(rev, c.api.hub.Through())
	}
	return err
}
