package patch

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
)

const aDocument = `{"a":{"b":[1,2,{"c":"x"}],"n":null},"s":"text","k/l":1,"m~n":2,"big":12345678901234567890,"f":1.50}`

// jsonPatches are applied to aDocument; an empty result means refused.
var jsonPatches = map[string]struct{ patch, want string }{
	"add":                        {`[{"op":"add","path":"/a/x","value":{"y":1}}]`, `{"a":{"b":[1,2,{"c":"x"}],"n":null,"x":{"y":1}},"s":"text","k/l":1,"m~n":2,"big":12345678901234567890,"f":1.50}`},
	"insert":                     {`[{"op":"add","path":"/a/b/1","value":9}]`, `{"a":{"b":[1,9,2,{"c":"x"}],"n":null},"s":"text","k/l":1,"m~n":2,"big":12345678901234567890,"f":1.50}`},
	"append":                     {`[{"op":"add","path":"/a/b/-","value":9}]`, `{"a":{"b":[1,2,{"c":"x"},9],"n":null},"s":"text","k/l":1,"m~n":2,"big":12345678901234567890,"f":1.50}`},
	"insert before the last":     {`[{"op":"add","path":"/a/b/-2","value":9}]`, `{"a":{"b":[1,2,9,{"c":"x"}],"n":null},"s":"text","k/l":1,"m~n":2,"big":12345678901234567890,"f":1.50}`},
	"insert too far":             {`[{"op":"add","path":"/a/b/4","value":9}]`, ``},
	"insert at no index":         {`[{"op":"add","path":"/a/b/x","value":9}]`, ``},
	"into a scalar":              {`[{"op":"add","path":"/s/x","value":9}]`, ``},
	"into null":                  {`[{"op":"add","path":"/a/n/x","value":9}]`, ``},
	"nothing there":              {`[{"op":"add","path":"/q/x","value":9}]`, ``},
	"add the whole":              {`[{"op":"add","path":"","value":{}}]`, ``},
	"escaped":                    {`[{"op":"remove","path":"/k~1l"},{"op":"remove","path":"/m~0n"},{"op":"remove","path":"/a"},{"op":"remove","path":"/s"}]`, `{"big":12345678901234567890,"f":1.50}`},
	"remove last":                {`[{"op":"remove","path":"/a/b/-1"},{"op":"remove","path":"/a/b/0"}]`, `{"a":{"b":[2],"n":null},"s":"text","k/l":1,"m~n":2,"big":12345678901234567890,"f":1.50}`},
	"remove what is not there":   {`[{"op":"remove","path":"/q"}]`, ``},
	"replace adds":               {`[{"op":"replace","path":"/q","value":1},{"op":"replace","path":"/a","value":null}]`, `{"a":null,"s":"text","k/l":1,"m~n":2,"big":12345678901234567890,"f":1.50,"q":1}`},
	"replace an item":            {`[{"op":"replace","path":"/a/b/-1","value":1}]`, `{"a":{"b":[1,2,1],"n":null},"s":"text","k/l":1,"m~n":2,"big":12345678901234567890,"f":1.50}`},
	"replace no item":            {`[{"op":"replace","path":"/a/b/3","value":1}]`, ``},
	"replace the whole":          {`[{"op":"replace","path":"","value":{"z":1}},{"op":"test","path":"","value":{"z":1}}]`, `{"z":1}`},
	"replace the whole by 1":     {`[{"op":"replace","path":"","value":1}]`, ``},
	"replace the whole by none":  {`[{"op":"replace","path":""}]`, ``},
	"move":                       {`[{"op":"move","from":"/a/b/2","path":"/a/b/0"},{"op":"move","from":"/a","path":"/z"}]`, `{"z":{"b":[{"c":"x"},1,2],"n":null},"s":"text","k/l":1,"m~n":2,"big":12345678901234567890,"f":1.50}`},
	"move into itself":           {`[{"op":"move","from":"/a","path":"/a/b"}]`, ``},
	"move nothing":               {`[{"op":"move","from":"/q","path":"/z"}]`, ``},
	"copies are apart":           {`[{"op":"copy","from":"/a/b","path":"/z"},{"op":"remove","path":"/a/b/0"},{"op":"remove","path":"/z/2"}]`, `{"a":{"b":[2,{"c":"x"}],"n":null},"z":[1,2],"s":"text","k/l":1,"m~n":2,"big":12345678901234567890,"f":1.50}`},
	"copy nothing":               {`[{"op":"copy","from":"/q","path":"/s"}]`, `{"a":{"b":[1,2,{"c":"x"}],"n":null},"s":null,"k/l":1,"m~n":2,"big":12345678901234567890,"f":1.50}`},
	"test":                       {`[{"op":"test","path":"/a","value":{"n":null,"b":[1,2,{"c":"x"}]}},{"op":"test","path":"/f","value":1.50}]`, aDocument},
	"test of what is not there":  {`[{"op":"test","path":"/q","value":null},{"op":"test","path":"/q"},{"op":"test","path":"/a/n","value":null}]`, aDocument},
	"test fails":                 {`[{"op":"test","path":"/a/b/0","value":2}]`, ``},
	"test of numbers as written": {`[{"op":"test","path":"/f","value":1.5}]`, ``},
	"test without value":         {`[{"op":"test","path":""}]`, ``},
	"test of a list with nulls":  {`[{"op":"add","path":"/z","value":[null]},{"op":"test","path":"/z","value":[null]},{"op":"remove","path":"/z"}]`, aDocument},
	"no slash":                   {`[{"op":"remove","path":"s"}]`, ``},
	"before the slash":           {`[{"op":"remove","path":"x/a"},{"op":"remove","path":"/s"},{"op":"remove","path":"/k~1l"},{"op":"remove","path":"/big"},{"op":"remove","path":"/f"}]`, `{"m~n":2}`},
	"no path":                    {`[{"op":"add","value":1}]`, ``},
	"no operation":               {`[{"path":"/a"}]`, ``},
	"a null operation":           {`[null]`, ``},
	"nothing to do":              {`[]`, aDocument},
	"null":                       {`null`, aDocument},
}

func TestJSON(t *testing.T) {
	for name, test := range jsonPatches {
		t.Run(name, func(t *testing.T) {
			got, err := JSON([]byte(aDocument), []byte(test.patch))
			if test.want == "" {
				if !errors.Is(err, ErrFailed) {
					t.Fatalf("got %s, %v, want it refused", got, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(decoded(t, []byte(test.want)), decoded(t, got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The library that the real server has agrees, but where it panics.
func TestJSONDoesAsTheLibrary(t *testing.T) {
	for name, test := range jsonPatches {
		want, err, panicked := libraryJSON([]byte(aDocument), []byte(test.patch))
		if panicked {
			t.Logf("%s: the library panics", name)
		} else if (err != nil) != (test.want == "") {
			t.Errorf("%s: the library has %s, %v", name, want, err)
		} else if err == nil && !cmp.Equal(decoded(t, want), decoded(t, []byte(test.want))) {
			t.Errorf("%s: the library has %s", name, want)
		}
	}
}

func libraryJSON(doc, patch []byte) (out []byte, err error, panicked bool) {
	defer func() { panicked = recover() != nil }()
	p, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, err, false
	}
	out, err = p.Apply(doc)
	return out, err, false
}

func decoded(t testing.TB, doc []byte) any {
	t.Helper()
	var v any
	if err := decode(doc, &v); err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	return v
}

var mergePatches = map[string]struct{ patch, want string }{
	"change, add, remove": {`{"a":{"b":null,"x":1},"s":"t","q":{"r":null,"t":1}}`, `{"a":{"n":null,"x":1},"s":"t","q":{"t":1},"k/l":1,"m~n":2,"big":12345678901234567890,"f":1.50}`},
	"lists are replaced":  {`{"a":{"b":[{"c":null},null]},"s":null,"k/l":null,"m~n":null,"big":null,"f":null}`, `{"a":{"b":[{},null],"n":null}}`},
	"over an object":      {`{"a":[{"c":null}],"s":null,"k/l":null,"m~n":null,"big":null,"f":null}`, `{"a":[{"c":null}]}`},
	"over null":           {`{"a":{"n":{"x":null,"y":[{"z":null}]},"b":null},"s":{"a":null},"k/l":null,"m~n":null,"big":null,"f":null}`, `{"a":{"n":{"y":[{}]}},"s":{}}`},
	"nothing":             {`{}`, aDocument},
}

func TestMerge(t *testing.T) {
	for name, test := range mergePatches {
		t.Run(name, func(t *testing.T) {
			got, err := Merge([]byte(aDocument), []byte(test.patch))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(decoded(t, []byte(test.want)), decoded(t, got)); diff != "" {
				t.Error(diff)
			}
			library, err := jsonpatch.MergePatch([]byte(aDocument), []byte(test.patch))
			if err != nil || !cmp.Equal(decoded(t, library), decoded(t, got)) {
				t.Errorf("the library has %s, %v", library, err)
			}
		})
	}
}

func TestPatchesAreRefused(t *testing.T) {
	deep := strings.Repeat(`[`, MaxDepth+1) + strings.Repeat(`]`, MaxDepth+1)
	nested := strings.Repeat(`{"a":`, MaxDepth-2) + `{}` + strings.Repeat(`}`, MaxDepth-2)
	many := func(n int, op string) string {
		return `[` + strings.TrimSuffix(strings.Repeat(op+`,`, n), `,`) + `]`
	}
	list := `{"op":"add","path":"/l","value":[` + strings.TrimSuffix(strings.Repeat(`0,`, 1_000_000), `,`) + `]}`
	envs := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `{"name":"%d"},`, i)
		}
		return `{"spec":{"containers":[{"name":"c","env":[` + strings.TrimSuffix(b.String(), ",") + `]}]}}`
	}
	pod := []byte(`{"metadata":{"finalizers":[["f"]]},"spec":{"containers":[{"name":"c"}],"volumes":[{"name":"v"}]}}`)
	tests := map[string]struct {
		apply func() ([]byte, error)
		want  error
		text  string // of the Status
	}{
		"JSON: not JSON": {
			func() ([]byte, error) { return JSON(pod, []byte(`{bad`)) }, ErrInvalid,
			"error decoding patch: invalid character 'b' looking for beginning of object key string",
		},
		"JSON: wrong type of a member": {
			func() ([]byte, error) { return JSON(pod, []byte(`[{"op":1}]`)) }, ErrInvalid,
			"error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string",
		},
		"JSON: too many operations": {
			func() ([]byte, error) { return JSON(pod, []byte(many(10_001, `{"op":"test","path":"/x"}`))) }, ErrTooLarge,
			"Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001",
		},
		"JSON: too deep": {
			func() ([]byte, error) { return JSON(pod, []byte(deep)) }, ErrInvalid,
			"error decoding patch: exceeded max depth of 1000",
		},
		"JSON: too deep in the end": {
			func() ([]byte, error) {
				at := strings.Repeat("/a", MaxDepth-2)
				return JSON([]byte(nested), []byte(`[{"op":"copy","from":"/a","path":"`+at+`"}]`))
			}, ErrFailed, generic,
		},
		"JSON: copies grow": {
			func() ([]byte, error) {
				return JSON([]byte(`{"a":["0123456789"]}`), []byte(many(40, `{"op":"copy","from":"/a","path":"/a/-"}`)))
			}, ErrFailed, generic,
		},
		"JSON: items move": {
			func() ([]byte, error) {
				return JSON(pod, []byte(`[`+list+`,`+strings.TrimPrefix(many(1000, `{"op":"add","path":"/l/0","value":0}`), `[`)))
			}, ErrTooLarge, "Request entity too large: a JSON patch moves list items more than 50000000 times",
		},
		"merge: too deep": {
			func() ([]byte, error) { return Merge(pod, []byte(`{"a":`+deep+`}`)) }, ErrInvalid,
			"error decoding patch: exceeded max depth of 1000",
		},
		"merge: a list": {
			func() ([]byte, error) { return Merge(pod, []byte(`[]`)) }, ErrInvalid,
			"error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
		},
		"merge: null": {
			func() ([]byte, error) { return Merge(pod, []byte(`null`)) }, ErrInvalid, "Invalid JSON Patch",
		},
		"strategic: not JSON": {
			func() ([]byte, error) { return Strategic(pod, []byte(`{bad`), &corev1.Pod{}) }, ErrInvalid,
			"invalid character 'b' looking for beginning of object key string",
		},
		"strategic: keys not retained": {
			func() ([]byte, error) {
				return Strategic(pod, []byte(`{"spec":{"volumes":[{"name":"v","$retainKeys":["name"],"emptyDir":{}}]}}`), &corev1.Pod{})
			}, ErrInvalid, "invalid patch format of retainKeys",
		},
		"strategic: lists of lists": {
			func() ([]byte, error) {
				return Strategic(pod, []byte(`{"metadata":{"finalizers":[["x"]]}}`), &corev1.Pod{})
			}, ErrFailed, generic,
		},
		"strategic: too many items": {
			func() ([]byte, error) { return Strategic(pod, []byte(envs(10_000)), &corev1.Pod{}) }, ErrTooLarge,
			"Request entity too large: a strategic merge patch compares list items more than 20000000 times",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			got, err := test.apply()
			if !errors.Is(err, test.want) {
				t.Fatalf("got %.100s, %v, want %v", got, err, test.want)
			}
			var refused *Error
			if !errors.As(err, &refused) || refused.Status().Message != test.text {
				t.Errorf("got %q", refused.Status().Message)
			}
			if took := time.Since(start); took > 20*time.Second { // no less: it may run beside seven others
				t.Errorf("took %v", took)
			}
		})
	}
}

const generic = "the server rejected our request due to an error in our request"

// Brackets in texts do not nest.
func TestDepthIsNotThatOfTexts(t *testing.T) {
	text := `{"a":"\\\"` + strings.Repeat(`[`, 2*MaxDepth) + `","b":"\\"}`
	if _, err := Merge([]byte(`{}`), []byte(text)); err != nil {
		t.Error(err)
	}
}

// What is within the limits must pass.
func TestLargePatchesAreTaken(t *testing.T) {
	var ops []string
	for i := range MaxOperations {
		ops = append(ops, fmt.Sprintf(`{"op":"add","path":"/l/0","value":%d}`, i))
	}
	got, err := JSON([]byte(`{"l":[]}`), []byte(`[`+strings.Join(ops, ",")+`]`))
	if err != nil {
		t.Fatal(err)
	}
	var out struct{ L []int }
	if err := json.Unmarshal(got, &out); err != nil || len(out.L) != MaxOperations || out.L[0] != MaxOperations-1 {
		t.Errorf("%v, %d items", err, len(out.L))
	}
}
