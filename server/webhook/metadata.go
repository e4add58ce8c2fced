package webhook

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkIdentity refuses another object than the original.
func checkIdentity(original, converted *unstructured.Unstructured) error {
	for _, same := range []struct{ what, want, got string }{
		{"name", original.GetName(), converted.GetName()},
		{"namespace", original.GetNamespace(), converted.GetNamespace()},
		{"UID", string(original.GetUID()), string(converted.GetUID())},
	} {
		if same.want != same.got {
			return fmt.Errorf("must have the same %s: %s != %s", same.what, same.want, same.got)
		}
	}
	return nil
}

// mutable are the fields of the metadata that are a webhook's to change. The
// path of the annotations is in the singular, as kube-apiserver's is.
var mutable = []struct {
	name     string
	validate func(map[string]string) field.ErrorList
}{
	{"labels", func(m map[string]string) field.ErrorList {
		return metav1validation.ValidateLabels(m, field.NewPath("metadata", "labels"))
	}},
	{"annotations", func(m map[string]string) field.ErrorList {
		return validation.ValidateAnnotations(m, field.NewPath("metadata", "annotation"))
	}},
}

// restoreMetadata gives converted a copy of the original's metadata, but for
// labels and annotations, which stay if they are valid.
func restoreMetadata(original, converted *unstructured.Unstructured) error {
	value, found := converted.Object["metadata"]
	if !found {
		return errors.New("missing metadata in converted object")
	}
	answered, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("invalid metadata of type %T in converted object", value)
	}
	restored := map[string]any{}
	if value, found := original.Object["metadata"]; found {
		if restored, ok = runtime.DeepCopyJSONValue(value).(map[string]any); !ok {
			return fmt.Errorf("invalid metadata of type %T in input object", value)
		}
	}
	for _, f := range mutable {
		if answered[f.name] == nil {
			delete(restored, f.name)
			continue
		}
		if err := checkStrings(f.name, restored[f.name], answered[f.name], f.validate); err != nil {
			return err
		}
		restored[f.name] = answered[f.name]
	}
	converted.Object["metadata"] = restored
	return nil
}

// checkStrings checks labels or annotations. Those that are as they were have
// been found valid before, perhaps by older rules.
func checkStrings(name string, before, after any, validate func(map[string]string) field.ErrorList) error {
	got, ok := after.(map[string]any)
	if !ok {
		return fmt.Errorf("invalid metadata.%s of type %T in converted object", name, after)
	}
	had, ok := before.(map[string]any)
	if !ok && before != nil {
		return fmt.Errorf("invalid metadata.%s of type %T in original object", name, before)
	}
	changed := len(had) != len(got)
	values := make(map[string]string, len(got))
	for k, v := range got {
		s, ok := v.(string)
		if !ok {
			return fmt.Errorf("metadata.%s[%s] must be a string, but is %T in converted object", name, k, v)
		}
		values[k] = s
		changed = changed || had[k] != v
	}
	if !changed {
		return nil
	}
	if errs := validate(values); len(errs) > 0 {
		return errs.ToAggregate()
	}
	return nil
}
