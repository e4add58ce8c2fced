package patch_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/even-keel/evenkeel/server/patch"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

func ExampleJSON() {
	got, _ := patch.JSON([]byte(`{"data":{"k":"1"}}`), []byte(`[{"op":"replace","path":"/data/k","value":"2"}]`))
	fmt.Println(string(got))

	_, err := patch.JSON([]byte(`{"data":{"k":"1"}}`), []byte(`[{"op":"test","path":"/data/k","value":"2"}]`))
	fmt.Println(errors.Is(err, patch.ErrFailed), err)
	// Output:
	// {"data":{"k":"2"}}
	// true operation 0 of a JSON patch: test of "/data/k" failed
}

func ExampleMerge() {
	got, _ := patch.Merge([]byte(`{"data":{"k":"1","l":"2"}}`), []byte(`{"data":{"k":null,"m":"3"}}`))
	fmt.Println(string(got))
	// Output: {"data":{"l":"2","m":"3"}}
}

func ExampleStrategic() {
	doc := `{"spec":{"containers":[{"name":"c","image":"a"},{"name":"d","image":"b"}]}}`
	got, _ := patch.Strategic([]byte(doc), []byte(`{"spec":{"containers":[{"name":"d","image":"new"}]}}`), &corev1.Pod{})
	fmt.Println(string(got))
	// Output: {"spec":{"containers":[{"image":"a","name":"c"},{"image":"new","name":"d"}]}}
}

func ExampleFields() {
	fields := patch.NewFields(patch.NewTypes(nil), scheme.Scheme, patch.Endpoint{
		Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
		Now:  func() time.Time { return time.Unix(0, 0) },
	})
	obj := &corev1.ConfigMap{Data: map[string]string{"k": "1"}}
	fields.Update(nil, obj, "kubectl-create")
	obj.UID = "u"

	wanted := "apiVersion: v1\nkind: ConfigMap\ndata:\n  k: \"2\"\n"
	_, err := fields.Apply(obj, []byte(wanted), "operator", false)
	fmt.Println(err)
	applied, _ := fields.Apply(obj, []byte(wanted), "operator", true)
	for _, e := range applied.(*corev1.ConfigMap).ManagedFields {
		fmt.Println(e.Manager, e.Operation, e.FieldsV1)
	}
	// Output:
	// Apply failed with 1 conflict: conflict with "kubectl-create" using v1: .data.k
	// operator Apply {"f:data":{"f:k":{}}}
	// kubectl-create Update {"f:data":{}}
}

func ExampleNewCustomTypes() {
	widget := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	sizes := spec.ArrayProperty(spec.Int64Property())
	sizes.AddExtension("x-kubernetes-list-type", "set")
	types, _ := patch.NewCustomTypes(patch.NewTypes(nil), map[schema.GroupVersionKind]*spec.Schema{
		widget: {SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: map[string]spec.Schema{"sizes": *sizes}}},
	}, false)
	fields := patch.NewFields(types, nil, patch.Endpoint{Kind: widget, Custom: true})

	obj := &unstructured.Unstructured{Object: map[string]any{"sizes": []any{int64(1)}}}
	obj.SetGroupVersionKind(widget)
	fields.Update(nil, obj, "kubectl-create")
	fmt.Println(obj.GetManagedFields()[0].FieldsV1)
	// Output: {"f:sizes":{".":{},"v:1":{}}}
}

func ExampleManagerName() {
	fmt.Println(patch.ManagerName("", "kubectl/v1.36.3 (linux/amd64)"))
	// Output: kubectl
}
