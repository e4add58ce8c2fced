package rest

import (
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/even-keel/evenkeel/server/patch"
)

// patch changes an object, or one side of it, by one of four kinds of patches.
func (c *call) patch(subresource string) error { return c.patchSide(subresource, nil) }

// patchSide patches what merge takes over; nil means what the subresource is
// about.
func (c *call) patchSide(subresource string, merge func(wanted, old runtime.Object) runtime.Object) error {
	kind := types.PatchType(contentType(c.r))
	switch kind {
	case types.JSONPatchType, types.MergePatchType, types.StrategicMergePatchType, types.ApplyPatchType:
	default:
		return errUnsupportedMediaType()
	}
	var o metav1.PatchOptions
	if err := params(c.query, &o); err != nil {
		return err
	}
	if err := invalidOptions("PatchOptions", metav1validation.ValidatePatchOptions(&o, kind)); err != nil {
		return err
	}
	body, err := readBody(c.r)
	if err != nil {
		return err
	}
	ch := change{subresource: subresource, merge: merge, intent: c.intent(o.DryRun, o.FieldManager, o.FieldValidation)}
	if kind == types.ApplyPatchType {
		c.makeApply(&ch, body, o.Force != nil && *o.Force)
	} else {
		ch.make = func(old runtime.Object) (runtime.Object, error) { return c.patched(ch.intent, kind, body, old) }
	}
	return c.change(ch)
}

// makeApply readies a change by server-side apply.
func (c *call) makeApply(ch *change, body []byte, force bool) {
	ch.applied = true
	apply := func(live runtime.Object) (runtime.Object, error) {
		versioned, err := c.versioned(live)
		if err != nil {
			return nil, err
		}
		out, err := c.res.fields(ch.subresource).Apply(versioned, body, ch.manager, force)
		if err != nil {
			return nil, err
		}
		return c.res.toStored(out)
	}
	ch.make = apply
	if ch.subresource != "" {
		return
	}
	in := ch.intent
	ch.create = func() error {
		live := c.res.kind.New()
		live.GetObjectKind().SetGroupVersionKind(c.res.kind.GVK)
		m := accessor(live)
		m.SetName(c.target.name)
		if c.res.kind.Namespaced {
			m.SetNamespace(c.target.namespace)
		}
		obj, err := apply(live)
		if err != nil {
			return err
		}
		if err := c.checkNamespace(accessor(obj)); err != nil {
			return err
		}
		if err := c.checkName(accessor(obj)); err != nil {
			return err
		}
		return c.createObject(obj, in)
	}
}

// patched returns what a patch makes of an object.
func (c *call) patched(in intent, kind types.PatchType, body []byte, old runtime.Object) (runtime.Object, error) {
	versioned, err := c.versioned(old)
	if err != nil {
		return nil, err
	}
	doc, err := encode(versioned)
	if err != nil {
		return nil, err
	}
	switch kind {
	case types.JSONPatchType:
		doc, err = patch.JSON(doc, body)
	case types.MergePatchType:
		doc, err = patch.Merge(doc, body)
	default:
		doc, err = patch.Strategic(doc, body, c.res.new())
	}
	if err != nil {
		return nil, err
	}
	return c.decodePatched(in, doc)
}

func (c *call) decodePatched(in intent, doc []byte) (runtime.Object, error) {
	var kind metav1.TypeMeta
	if err := json.Unmarshal(doc, &kind); err == nil {
		if apiVersion, k := c.res.gvk.ToAPIVersionAndKind(); kind.APIVersion != apiVersion || kind.Kind != k {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("the API version or kind in the data (%s, %s) does not match the expected (%s, %s)", kind.APIVersion, kind.Kind, apiVersion, k))
		}
	}
	obj, strict, err := c.api.codec.decode(mediaJSON, doc, c.res.gvk, c.res.new())
	if err != nil {
		return nil, err
	}
	if err := c.patchStrict(strict, in); err != nil {
		return nil, err
	}
	m := accessor(obj)
	if m.GetName() != c.target.name {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", m.GetName(), c.target.name))
	}
	if err := c.checkNamespace(m); err != nil {
		return nil, err
	}
	return c.res.toStored(obj)
}

// patchStrict is handleStrict in the words that patches are answered with.
func (c *call) patchStrict(found []string, in intent) error {
	if len(found) > 0 && in.fieldValidation == metav1.FieldValidationStrict {
		return apierrors.NewBadRequest("strict decoding error: " + strings.Join(found, ", "))
	}
	return c.handleStrict(found, in, "")
}
