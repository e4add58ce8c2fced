package rest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/even-keel/evenkeel/server/kinds"
	"github.com/even-keel/evenkeel/server/patch"
)

var scaleGVK = autoscalingv1.SchemeGroupVersion.WithKind("Scale")

// serveScale answers for the replicas of an object.
func (c *call) serveScale() error {
	switch c.r.Method {
	case http.MethodGet:
		o, err := c.read()
		if err != nil {
			return err
		}
		obj, err := c.res.decoded(o)
		if err != nil {
			return err
		}
		return c.answerScale(obj)
	case http.MethodPut:
		return c.updateScale()
	case http.MethodPatch:
		return c.patchScale()
	}
	return errMethodNotAllowed()
}

func (c *call) answerScale(obj runtime.Object) error {
	if check := c.res.kind.Scale.Check; check != nil {
		if err := check(obj); err != nil {
			return apierrors.NewInternalError(err)
		}
	}
	var answer runtime.Object = c.scaleOf(obj)
	var err error
	switch c.out.as {
	case "PartialObjectMetadata":
		answer, err = c.partial(answer)
	case "Table":
		answer, err = c.scaleTable(c.scaleOf(obj))
	}
	if err != nil {
		return err
	}
	return c.sendObject(http.StatusOK, answer)
}

var scaleColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name of the object."},
	{Name: "Desired", Type: "integer", Description: "How many replicas are wanted."},
	{Name: "Available", Type: "integer", Description: "How many replicas there are."},
	{Name: "Age", Type: "string", Description: "Time since the object was created."},
}

func (c *call) scaleTable(s *autoscalingv1.Scale) (*metav1.Table, error) {
	object, err := c.rowObject(s)
	if err != nil {
		return nil, err
	}
	t := &metav1.Table{
		ListMeta: metav1.ListMeta{ResourceVersion: s.ResourceVersion}, ColumnDefinitions: scaleColumns,
		Rows: []metav1.TableRow{{
			Cells:  []any{s.Name, int64(s.Spec.Replicas), int64(s.Status.Replicas), kinds.Age(s.CreationTimestamp, metav1.NewTime(c.api.now()))},
			Object: object,
		}},
	}
	t.SetGroupVersionKind(c.metaKind("Table"))
	return t, nil
}

func (c *call) scaleOf(obj runtime.Object) *autoscalingv1.Scale {
	m := accessor(obj)
	spec, status, selector := c.res.kind.Scale.Get(obj)
	s := &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{
			Name: m.GetName(), Namespace: m.GetNamespace(), UID: m.GetUID(),
			ResourceVersion: m.GetResourceVersion(), CreationTimestamp: m.GetCreationTimestamp(),
		},
		Spec:   autoscalingv1.ScaleSpec{Replicas: spec},
		Status: autoscalingv1.ScaleStatus{Replicas: status, Selector: selector},
	}
	s.SetGroupVersionKind(scaleGVK)
	return s
}

func (c *call) updateScale() error {
	o, err := c.updateOptions()
	if err != nil {
		return err
	}
	var wanted autoscalingv1.Scale
	if err := c.decodeInto(scaleGVK, &wanted); err != nil {
		return err
	}
	if err := c.checkName(&wanted); err != nil {
		return err
	}
	if err := c.checkNamespace(&wanted); err != nil {
		return err
	}
	return c.changeScale(c.intent(o.DryRun, o.FieldManager, o.FieldValidation), func(*autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
		return &wanted, nil
	})
}

func (c *call) patchScale() error {
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
	if kind == types.ApplyPatchType {
		return c.applyScale(body, o)
	}
	in := c.intent(o.DryRun, o.FieldManager, o.FieldValidation)
	return c.changeScale(in, func(old *autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
		return c.patchedScale(in, kind, body, old)
	})
}

// applyScale applies a scale, which is to apply the replicas of the object.
func (c *call) applyScale(body []byte, o metav1.PatchOptions) error {
	in := c.intent(o.DryRun, o.FieldManager, o.FieldValidation)
	var wanted struct {
		metav1.TypeMeta
		Metadata struct {
			Name            string `json:"name,omitempty"`
			Namespace       string `json:"namespace,omitempty"`
			UID             string `json:"uid,omitempty"`
			ResourceVersion string `json:"resourceVersion,omitempty"`
		} `json:"metadata"`
		Spec struct {
			Replicas *int32 `json:"replicas,omitempty"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(body, &wanted); err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("error decoding YAML: %v", err))
	}
	if wanted.GroupVersionKind() != scaleGVK {
		return apierrors.NewBadRequest(fmt.Sprintf("the API version or kind in the data (%s, %s) does not match the expected (%s, %s)",
			wanted.APIVersion, wanted.Kind, scaleGVK.GroupVersion(), scaleGVK.Kind))
	}
	if err := c.applyStrict(body, in); err != nil {
		return err
	}
	wanted.APIVersion, wanted.Kind = c.res.gvk.ToAPIVersionAndKind()
	wanted.Metadata.Name = cmp.Or(wanted.Metadata.Name, c.target.name)
	ofOwner, err := json.Marshal(wanted)
	if err != nil {
		return err
	}
	ch := change{
		intent: in, subresource: "scale", answer: c.answerScale,
		merge: func(wanted, _ runtime.Object) runtime.Object { return wanted },
	}
	c.makeApply(&ch, ofOwner, o.Force != nil && *o.Force)
	return c.change(ch)
}

func (c *call) patchedScale(in intent, kind types.PatchType, body []byte, old *autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
	doc, err := encode(old)
	if err != nil {
		return nil, err
	}
	switch kind {
	case types.JSONPatchType:
		doc, err = patch.JSON(doc, body)
	case types.MergePatchType:
		doc, err = patch.Merge(doc, body)
	case types.StrategicMergePatchType:
		doc, err = patch.Strategic(doc, body, &autoscalingv1.Scale{})
	}
	if err != nil {
		return nil, err
	}
	var wanted autoscalingv1.Scale
	_, strict, err := c.api.codec.decode(mediaJSON, doc, scaleGVK, &wanted)
	if err != nil {
		return nil, err
	}
	return &wanted, c.patchStrict(strict, in, kind, body, doc)
}

// changeScale sets an object's replicas to what make makes of its scale.
func (c *call) changeScale(in intent, make func(old *autoscalingv1.Scale) (*autoscalingv1.Scale, error)) error {
	return c.change(change{
		intent: in, subresource: "scale", replaces: c.r.Method == http.MethodPut,
		make: func(old runtime.Object) (runtime.Object, error) {
			wanted, err := make(c.scaleOf(old))
			if err != nil {
				return nil, err
			}
			if wanted.Spec.Replicas < 0 {
				return nil, apierrors.NewInvalid(scaleGVK.GroupKind(), c.target.name, field.ErrorList{
					field.Invalid(field.NewPath("spec", "replicas"), wanted.Spec.Replicas, "must be greater than or equal to 0"),
				})
			}
			if wanted.UID != "" {
				accessor(old).SetUID(wanted.UID)
			}
			if wanted.ResourceVersion != "" {
				accessor(old).SetResourceVersion(wanted.ResourceVersion)
			}
			c.res.kind.Scale.Set(old, wanted.Spec.Replicas)
			return old, nil
		},
		merge:  func(wanted, _ runtime.Object) runtime.Object { return wanted },
		answer: c.answerScale,
	})
}
