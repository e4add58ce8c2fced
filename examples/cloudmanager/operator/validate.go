package operator

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "github.com/even-keel/evenkeel/examples/cloudmanager/api/v1"
)

// maxName leaves room for what is added to the names of pods and of the Secret.
const maxName = 50

var accessModes = []string{
	string(corev1.ReadWriteOnce), string(corev1.ReadOnlyMany), string(corev1.ReadWriteMany), string(corev1.ReadWriteOncePod),
}

// validate checks what the definition's schema does: there may be objects that are
// older than the schema.
func validate(cm *v1.CloudManager) (errs field.ErrorList) {
	if len(cm.Name) > validation.LabelValueMaxLength {
		errs = append(errs, field.TooLong(field.NewPath("metadata", "name"), "", validation.LabelValueMaxLength))
	}
	spec := field.NewPath("spec")
	names := map[string]bool{}
	for _, p := range []struct {
		at string
		v1.Part
	}{{"front", cm.Spec.Front}, {"identity", cm.Spec.Identity}, {"db", cm.Spec.DB.Part}} {
		at := spec.Child(p.at)
		errs = append(errs, validatePart(at, p.Part)...)
		if p.Name != "" && names[p.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), p.Name))
		}
		names[p.Name] = true
	}
	return append(errs, validateDatabase(spec.Child("db"), cm.Spec.DB)...)
}

func validatePart(at *field.Path, p v1.Part) (errs field.ErrorList) {
	if p.Image == "" {
		errs = append(errs, field.Required(at.Child("image"), ""))
	}
	switch problems := validation.IsDNS1123Label(p.Name); {
	case p.Name == "":
		errs = append(errs, field.Required(at.Child("name"), ""))
	case len(p.Name) > maxName:
		errs = append(errs, field.TooLong(at.Child("name"), "", maxName))
	case len(problems) > 0:
		errs = append(errs, field.Invalid(at.Child("name"), p.Name, problems[0]))
	}
	if n := replicasOf(p); n < 1 {
		errs = append(errs, field.Invalid(at.Child("replicas"), n, "must be at least 1"))
	}
	return errs
}

func validateDatabase(at *field.Path, db v1.Database) (errs field.ErrorList) {
	if db.RootPass == "" {
		errs = append(errs, field.Required(at.Child("rootPass"), ""))
	}
	at = at.Child("storage")
	if size, err := resource.ParseQuantity(db.Storage.Size); err != nil || size.Sign() <= 0 {
		errs = append(errs, field.Invalid(at.Child("size"), db.Storage.Size, "must be a quantity above 0, such as 10Gi"))
	}
	return append(errs, validateModes(at.Child("accessModes"), db.Storage.AccessModes)...)
}

func validateModes(at *field.Path, modes []string) (errs field.ErrorList) {
	if len(modes) == 0 {
		errs = append(errs, field.Required(at, ""))
	}
	for i, mode := range modes {
		if !slices.Contains(accessModes, mode) {
			errs = append(errs, field.NotSupported(at.Index(i), mode, accessModes))
		}
	}
	if len(modes) > 1 && slices.Contains(modes, string(corev1.ReadWriteOncePod)) {
		errs = append(errs, field.Invalid(at, modes, "ReadWriteOncePod goes with no other mode"))
	}
	return errs
}
