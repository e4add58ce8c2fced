package rest

import (
	"encoding/json"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

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
	if kind == types.StrategicMergePatchType && c.res.custom != nil {
		return errNoPatchOfCustom()
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
		if c.res.custom == nil {
			if err := checkQuantities(mediaYAML, body, c.res.new()); err != nil {
				return err
			}
		}
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
		if err := c.applyStrict(body, ch.intent); err != nil {
			return nil, err
		}
		if err := c.checkName(accessor(out)); err != nil {
			return nil, err
		}
		if err := c.checkNamespace(accessor(out)); err != nil {
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
		if err := c.appliedAnew(accessor(obj)); err != nil {
			return err
		}
		return c.createObject(obj, in)
	}
}

// appliedAnew readies what an apply says of an object that does not exist: it cannot
// be one of a certain UID, and a revision says nothing.
func (c *call) appliedAnew(m metav1.Object) error {
	if uid := m.GetUID(); uid != "" {
		return apierrors.NewConflict(c.res.groupResource(), c.target.name,
			fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", uid))
	}
	if rv := m.GetResourceVersion(); rv != "" {
		if _, err := strconv.ParseUint(rv, 10, 64); err != nil {
			return err
		}
	}
	m.SetResourceVersion("")
	return nil
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
		if doc, err = patch.Strategic(doc, body, c.res.new()); err == nil {
			doc, err = c.keepKind(doc)
		}
	}
	if err != nil {
		return nil, err
	}
	return c.decodePatched(in, kind, body, doc)
}

// keepKind undoes what a strategic merge patch does to an object's kind: the
// real server merges into typed objects, which cannot change theirs.
func (c *call) keepKind(doc []byte) ([]byte, error) {
	var is metav1.TypeMeta
	apiVersion, kind := c.res.gvk.ToAPIVersionAndKind()
	if err := json.Unmarshal(doc, &is); err == nil && is.Kind == kind && is.APIVersion == apiVersion {
		return doc, nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(doc, &object); err != nil || object == nil {
		return doc, nil
	}
	object["kind"], object["apiVersion"] = fmt.Appendf(nil, "%q", kind), fmt.Appendf(nil, "%q", apiVersion)
	return json.Marshal(object)
}

// decodePatched reads what a patch has made of an object.
func (c *call) decodePatched(in intent, kindOfPatch types.PatchType, body, doc []byte) (runtime.Object, error) {
	if c.res.custom != nil {
		return c.decodePatchedCustom(in, kindOfPatch, body, doc)
	}
	if err := checkQuantities(mediaJSON, doc, c.res.new()); err != nil {
		return nil, err
	}
	obj, got, err := c.api.codec.json.Decode(doc, &c.res.gvk, c.res.new())
	strict, ok := runtime.AsStrictDecodingError(err)
	if err == nil || ok {
		if got != nil && *got != c.res.gvk {
			err, ok = errConversion(*got, c.res.gvk), false
		}
	}
	if err != nil && !ok {
		return nil, invalidPatch(kindOfPatch, body, doc, err)
	}
	found, err := patch.Strict(kindOfPatch, body)
	if err != nil {
		return nil, err
	}
	if ok {
		found = append(found, strict.Errors()...)
	}
	if err := c.patchStrict(found, in, kindOfPatch, body, doc); err != nil {
		return nil, err
	}
	obj.GetObjectKind().SetGroupVersionKind(c.res.gvk)
	return c.patchedObject(obj)
}

// decodePatchedCustom does so for custom resources.
func (c *call) decodePatchedCustom(in intent, kindOfPatch types.PatchType, body, doc []byte) (runtime.Object, error) {
	found, err := patch.Strict(kindOfPatch, body)
	if err != nil {
		return nil, err
	}
	obj, strict, err := c.decodeCustom(mediaJSON, doc)
	if err != nil {
		return nil, invalidPatch(kindOfPatch, body, doc, err)
	}
	if err := c.patchStrict(append(found, strict...), in, kindOfPatch, body, doc); err != nil {
		return nil, err
	}
	return c.patchedObject(obj)
}

// patchedObject checks that a patch has not made another object of it.
func (c *call) patchedObject(obj runtime.Object) (runtime.Object, error) {
	m := accessor(obj)
	if err := c.checkName(m); err != nil {
		return nil, err
	}
	if err := c.checkNamespace(m); err != nil {
		return nil, err
	}
	return c.res.toStored(obj)
}

// patchStrict is handleStrict in the words that patches are answered with.
func (c *call) patchStrict(found []error, in intent, kind types.PatchType, body, doc []byte) error {
	if len(found) > 0 && in.fieldValidation == metav1.FieldValidationStrict {
		return invalidPatch(kind, body, doc, runtime.NewStrictDecodingError(found))
	}
	return c.handleStrict(found, in)
}

// applyStrict does the same for an applied document.
func (c *call) applyStrict(body []byte, in intent) error {
	found, err := patch.Strict(types.ApplyPatchType, body)
	if err == nil && len(found) > 0 && in.fieldValidation == metav1.FieldValidationStrict {
		err = apierrors.NewBadRequest(fmt.Sprintf("error strict decoding YAML: %v", found[0]))
	}
	if err != nil {
		return err
	}
	return c.handleStrict(found, in)
}

// invalidPatch is the answer to a patch whose result cannot be read. As in the
// real server it shows the result, or a strategic merge patch itself.
func invalidPatch(kind types.PatchType, body, doc []byte, err error) error {
	shown := string(doc)
	if kind == types.StrategicMergePatchType {
		var changes map[string]any
		if json.Unmarshal(body, &changes) == nil {
			shown = fmt.Sprintf("%+v", changes)
		}
	}
	return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{field.Invalid(field.NewPath("patch"), shown, err.Error())})
}
