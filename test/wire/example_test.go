package wire_test

import (
	"fmt"

	"github.com/even-keel/evenkeel/test/wire"
)

func ExampleCompare() {
	recorded := wire.Response{Status: 404, ContentType: "application/json", Body: map[string]any{
		"kind": "Status", "apiVersion": "v1", "reason": "NotFound", "message": `pods "a" not found`,
	}}
	answered := recorded
	answered.Body = map[string]any{
		"kind": "Status", "apiVersion": "v1", "reason": "NotFound", "message": "no such pod",
	}
	level, _ := wire.Compare(recorded, answered)
	fmt.Println("equal at level", level)
	// Output: equal at level shape
}
