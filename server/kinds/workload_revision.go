package kinds

import (
	"encoding/json"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func controllerRevisionKind() *Kind {
	return &Kind{
		GVK:      appsv1.SchemeGroupVersion.WithKind("ControllerRevision"),
		Resource: "controllerrevisions", Singular: "controllerrevision",
		Namespaced: true,
		New:        newOf[appsv1.ControllerRevision], NewList: newOf[appsv1.ControllerRevisionList],
		Validate: check(func(r *appsv1.ControllerRevision) field.ErrorList {
			p := &problems{}
			p.nonNegative(field.NewPath("revision"), r.Revision)
			return p.list
		}),
		ValidateCreate: check(validateRevisionData),
		ValidateUpdate: checkPair(func(r, old *appsv1.ControllerRevision) field.ErrorList {
			p := &problems{}
			p.immutable(field.NewPath("data"), r.Data, old.Data)
			return p.list
		}),
		Columns: []metav1.TableColumnDefinition{
			nameColumn(), column("Controller", "Owner of the revision."), column("Revision", "Number of the revision."), ageColumn(),
		},
		Cells: cells(func(r *appsv1.ControllerRevision, now metav1.Time) []any {
			return []any{r.Name, revisionOwner(r), r.Revision, Age(r.CreationTimestamp, now)}
		}),
	}
}

func validateRevisionData(r *appsv1.ControllerRevision) field.ErrorList {
	p, path := &problems{}, field.NewPath("data")
	var v any
	if r.Data.Raw == nil {
		p.required(path, "data is mandatory")
		return p.list
	}
	if err := json.Unmarshal(r.Data.Raw, &v); err != nil {
		p.invalid(path, "<value omitted>", fmt.Sprintf("error parsing data: %v", err))
		return p.list
	}
	switch v.(type) {
	case nil:
		p.required(path, "data is mandatory")
	case map[string]any:
	default:
		p.required(path, "data must be a valid JSON object")
	}
	return p.list
}

func revisionOwner(r *appsv1.ControllerRevision) string {
	owner := metav1.GetControllerOf(r)
	if owner == nil {
		return "<none>"
	}
	gv, _ := schema.ParseGroupVersion(owner.APIVersion)
	kind := gv.WithKind(owner.Kind).GroupKind()
	if kind.Empty() {
		return owner.Name
	}
	return strings.ToLower(kind.String()) + "/" + owner.Name
}
