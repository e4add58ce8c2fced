package custom

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	valueschema "github.com/even-keel/evenkeel/server/schema"
)

func (v *Version) validateNew(obj runtime.Object) field.ErrorList {
	u := obj.(*unstructured.Unstructured)
	return v.validate(u, func(s *valueschema.Schema) field.ErrorList {
		return s.Validate(context.Background(), u.Object, func() field.ErrorList {
			return append(v.scaleSpecErrors(u), v.scaleStatusErrors(u)...)
		})
	})
}

func (v *Version) validateUpdate(obj, old runtime.Object) field.ErrorList {
	u, was := obj.(*unstructured.Unstructured), old.(*unstructured.Unstructured)
	return v.validate(u, func(s *valueschema.Schema) field.ErrorList {
		return s.ValidateUpdate(context.Background(), u.Object, was.Object, func() field.ErrorList {
			return append(v.scaleSpecErrors(u), v.scaleStatusErrors(u)...)
		})
	})
}

func (v *Version) validateStatus(obj, old runtime.Object) field.ErrorList {
	u, was := obj.(*unstructured.Unstructured), old.(*unstructured.Unstructured)
	return v.validate(u, func(s *valueschema.Schema) field.ErrorList {
		return s.ValidateStatus(context.Background(), u.Object, was.Object, func() field.ErrorList { return v.scaleStatusErrors(u) })
	})
}

// validate checks the kind and then, if that is right, all else.
func (v *Version) validate(u *unstructured.Unstructured, check func(*valueschema.Schema) field.ErrorList) field.ErrorList {
	var errs field.ErrorList
	if kind := v.Kind.GVK.Kind; u.GetKind() != kind {
		errs = append(errs, field.Invalid(field.NewPath("kind"), u.GetKind(), "must be "+kind))
	}
	if version := v.Kind.GVK.GroupVersion().String(); u.GetAPIVersion() != version {
		errs = append(errs, field.Invalid(field.NewPath("apiVersion"), u.GetAPIVersion(), "must be "+version))
	}
	if len(errs) > 0 {
		return errs
	}
	s, err := v.schema()
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	return check(s)
}

func (v *Version) scaleSpecErrors(u *unstructured.Unstructured) field.ErrorList {
	if v.spec.Subresources.Scale == nil {
		return nil
	}
	return replicasErrors(u, v.spec.Subresources.Scale.SpecReplicasPath)
}

func (v *Version) scaleStatusErrors(u *unstructured.Unstructured) field.ErrorList {
	scale := v.spec.Subresources.Scale
	if scale == nil {
		return nil
	}
	errs := replicasErrors(u, scale.StatusReplicasPath)
	if scale.LabelSelectorPath != nil {
		if value, _, err := unstructured.NestedString(u.Object, splitPath(*scale.LabelSelectorPath)...); err != nil {
			errs = append(errs, field.Invalid(field.NewPath(*scale.LabelSelectorPath), value, err.Error()))
		}
	}
	return errs
}

func replicasErrors(u *unstructured.Unstructured, path string) field.ErrorList {
	at := field.NewPath(path)
	switch n, _, err := unstructured.NestedInt64(u.Object, splitPath(path)...); {
	case err != nil:
		return field.ErrorList{field.Invalid(at, n, err.Error())}
	case n < 0:
		return field.ErrorList{field.Invalid(at, n, "should be a non-negative integer")}
	case n > math.MaxInt32:
		return field.ErrorList{field.Invalid(at, n, fmt.Sprintf("should be less than or equal to %d", math.MaxInt32))}
	}
	return nil
}

// splitPath takes apart a path such as ".spec.replicas".
func splitPath(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }

// warnings tells of rules that a changed object may break, and of finalizers.
func (v *Version) warnings(obj, old runtime.Object) []string {
	var found []string
	if was, ok := old.(*unstructured.Unstructured); ok && was != nil {
		if s, err := v.schema(); err == nil {
			found = s.Warnings(context.Background(), obj.(*unstructured.Unstructured).Object, was.Object)
		}
	}
	return append(found, finalizerWarnings(obj, old)...)
}

// finalizerWarnings tells of new finalizers that others may happen to use, too.
func finalizerWarnings(obj, old runtime.Object) []string {
	var had []string
	if u, ok := old.(*unstructured.Unstructured); ok && u != nil {
		had = u.GetFinalizers()
	}
	var warnings []string
	for _, name := range slices.Sorted(slices.Values(obj.(*unstructured.Unstructured).GetFinalizers())) {
		if slices.Contains(had, name) {
			continue
		}
		const at = "metadata.finalizers"
		for _, problem := range validation.IsQualifiedName(name) {
			warnings = append(warnings, fmt.Sprintf("%s: %q: %s", at, name, problem))
		}
		switch {
		case strings.Contains(name, "/"), name == metav1.FinalizerOrphanDependents, name == metav1.FinalizerDeleteDependents, name == string(corev1.FinalizerKubernetes):
		case strings.Contains(name, "."):
			warnings = append(warnings, fmt.Sprintf("%s: %q: prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers", at, name))
		default:
			warnings = append(warnings, fmt.Sprintf("%s: %q: prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers", at, name))
		}
	}
	return warnings
}
