package schema_test

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/even-keel/evenkeel/server/schema"
)

func ExamplePool() {
	var pool schema.Pool
	s, err := pool.Get([]byte(`{"type": "object", "properties": {"spec": {"type": "object", "properties": {
		"replicas": {"type": "integer", "default": 1, "maximum": 9},
		"size": {"type": "string", "enum": ["S", "L"]}
	}}}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Thing",
		"metadata": map[string]any{"name": "one"},
		"spec":     map[string]any{"size": "M", "colour": "red"},
	}}
	unknown, err := s.Coerce(u)
	fmt.Println(unknown, err)
	s.Default(u.Object)
	fmt.Println(u.Object["spec"])
	fmt.Println(s.Validate(context.Background(), u.Object, func() field.ErrorList { return nil }))
	// Output:
	// [spec.colour] <nil>
	// map[replicas:1 size:M]
	// [spec.size: Unsupported value: "M": supported values: "S", "L"]
}
