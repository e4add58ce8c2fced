package patch

import (
	"strings"
	"unicode"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
)

// ManagerName is who owns what a write changes: the field manager, or else the
// User-Agent up to its first slash, what cannot be printed left out and cut to
// 128 bytes.
func ManagerName(fieldManager, userAgent string) string {
	if fieldManager != "" {
		return fieldManager
	}
	product, _, _ := strings.Cut(userAgent, "/")
	var b strings.Builder
	for _, r := range product {
		if !unicode.IsPrint(r) {
			continue
		}
		if b.Len()+utf8.RuneLen(r) > validation.FieldManagerMaxLength {
			break
		}
		b.WriteRune(r)
	}
	return b.String()
}

// ValidateCreate returns what is wrong with the options of a create.
func ValidateCreate(o *metav1.CreateOptions) field.ErrorList {
	return validation.ValidateCreateOptions(o)
}

// ValidateUpdate returns what is wrong with the options of an update.
func ValidateUpdate(o *metav1.UpdateOptions) field.ErrorList {
	return validation.ValidateUpdateOptions(o)
}

// ValidatePatch returns what is wrong with the options of a patch of a type.
// Only an apply may be forced, and it must name its manager.
func ValidatePatch(o *metav1.PatchOptions, kind types.PatchType) field.ErrorList {
	return validation.ValidatePatchOptions(o, kind)
}

// Strict returns what fieldValidation finds in a patch document by itself, for
// a warning or a refusal: members given twice, and in the operations of a JSON
// patch members that there are none of. The error is that of applying it.
func Strict(kind types.PatchType, doc []byte) ([]error, error) {
	switch kind {
	case types.JSONPatchType:
		return strictJSON(doc)
	case types.MergePatchType:
		return strictMerge(doc)
	case types.StrategicMergePatchType:
		changes := map[string]any{}
		strict, err := kjson.UnmarshalStrict(doc, &changes)
		if err != nil {
			return nil, invalid("%v", err)
		}
		return strict, nil
	}
	if err := yaml.UnmarshalStrict(doc, &map[string]any{}); err != nil {
		return []error{err}, nil
	}
	return nil, nil
}
