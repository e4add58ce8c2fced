package openapi

import "reflect"

// typeDoc returns the description of a type, of whose parts doc has more. Types
// that are no objects in JSON have no SwaggerDoc; what is said of them is ours.
func typeDoc(t reflect.Type, doc map[string]string) string {
	if text := doc[""]; text != "" {
		return text
	}
	switch typeKey(t) {
	case "k8s.io/apimachinery/pkg/api/resource.Quantity":
		return `A number with an optional suffix: "500m", "1.5", "2Gi", "1e3". ` +
			"See https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/"
	case "k8s.io/apimachinery/pkg/apis/meta/v1.Duration":
		return `A span of time such as "30s" or "1h15m".`
	case "k8s.io/apimachinery/pkg/apis/meta/v1.FieldsV1":
		return "A set of fields as a tree: f:NAME is a field, k:KEYS a list item by its keys, v:VALUE one by its value, " +
			"i:INDEX one by its position, and . the thing itself."
	case "k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime":
		return "A moment with microseconds, as RFC 3339 writes it."
	case "k8s.io/apimachinery/pkg/apis/meta/v1.Time":
		return "A moment to the second, as RFC 3339 writes it."
	case "k8s.io/apimachinery/pkg/runtime.RawExtension":
		return "Any object, as it is."
	case "k8s.io/apimachinery/pkg/util/intstr.IntOrString":
		return "A number or a string; where a share is meant, a percentage such as 25%."
	case "k8s.io/apimachinery/pkg/version.Info":
		return "What was built, from which sources, when and how."
	}
	return ""
}
