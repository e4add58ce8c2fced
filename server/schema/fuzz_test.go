package schema_test

import (
	"encoding/json"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/even-keel/evenkeel/server/schema"
)

var seeds = [][2]string{
	{`{"type":"object"}`, `{"spec":{"a":1}}`},
	{`{"type":"object","x-kubernetes-preserve-unknown-fields":true}`, `{"spec":{"a":[1,null,{"b":1.5}]}}`},
	{`{"type":"object","properties":{"spec":{"type":"object","default":{},"properties":{"a":{"type":"string","default":"x"},"n":{"type":"integer","nullable":true}}}}}`, `{"spec":{"n":null,"z":1}}`},
	{`{"type":"object","properties":{"spec":{"type":"object","properties":{"l":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k","p"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"},"p":{"type":"integer","default":80}}}}}}}}`, `{"spec":{"l":[{"k":"a"},{"k":"a","p":80}]}}`},
	{`{"type":"object","properties":{"spec":{"type":"object","properties":{"s":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},"i":{"x-kubernetes-int-or-string":true}}}}}`, `{"spec":{"s":["a","a"],"i":"5%"}}`},
	{`{"type":"object","properties":{"spec":{"type":"object","properties":{"e":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}}}}}`, `{"spec":{"e":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x","labels":{"a":1}}}}}`},
	{`{"type":"object","properties":{"spec":{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"x-kubernetes-validations":[{"rule":"self.a <= self.b","message":"no"}]}}}`, `{"spec":{"a":2,"b":1}}`},
	{`{"type":"object","properties":{"spec":{"type":"object","additionalProperties":{"type":"object","properties":{"d":{"type":"number","default":1.5,"minimum":1}}}},"status":{"type":"string","enum":["a"]}}}`, `{"spec":{"x":{},"y":null},"status":"b"}`},
	{`{"type":"object","properties":{"spec":{"type":"object","oneOf":[{"required":["a"]},{"required":["b"]}],"properties":{"a":{"type":"string","pattern":"^x+$"},"b":{"type":"string","format":"date-time"}}}}}`, `{"spec":{"a":"xx","b":"never"}}`},
}

// FuzzSchema takes a schema that a definition may have, and an object. Whatever
// they are, nothing panics; what has been made to fit fits, also when it is read
// again from the store; and what is accepted is accepted as it is once more.
func FuzzSchema(f *testing.F) {
	for _, s := range seeds {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, text, body string) {
		var props *apiextensionsv1.JSONSchemaProps
		if json.Unmarshal([]byte(text), &props) != nil || !allowed(props) {
			return
		}
		s, err := schema.New(props)
		if err != nil {
			return
		}
		var content map[string]any
		if json.Unmarshal([]byte(body), &content) != nil || content == nil {
			return
		}
		content["apiVersion"], content["kind"] = "example.com/v1", "Thing"
		u := &unstructured.Unstructured{}
		whole, err := json.Marshal(content)
		if err != nil || u.UnmarshalJSON(whole) != nil {
			return
		}
		if _, err := s.Coerce(u); err != nil {
			return
		}
		s.Default(u.Object)
		again := u.DeepCopy()
		if unknown, err := s.Coerce(again); err != nil || len(unknown) > 0 {
			t.Fatalf("what was pruned has unknown fields: %v %v", unknown, err)
		}
		s.Default(again.Object)
		if !equality.Semantic.DeepEqual(u.Object, again.Object) {
			t.Fatalf("coerced twice:\n%v\n%v", u.Object, again.Object)
		}
		checkAccepted(t, s, u)
	})
}

func checkAccepted(t *testing.T, s *schema.Schema, u *unstructured.Unstructured) {
	none := func() field.ErrorList { return nil }
	before := u.DeepCopy()
	errs := s.Validate(t.Context(), u.Object, none)
	if !equality.Semantic.DeepEqual(before.Object, u.Object) {
		t.Fatalf("validation changed the object:\n%v\n%v", before.Object, u.Object)
	}
	same := s.ValidateUpdate(t.Context(), u.Object, before.Object, none)
	_ = s.ValidateStatus(t.Context(), u.Object, before.Object, none)
	_ = s.Warnings(t.Context(), u.Object, before.Object)
	if len(errs) > 0 {
		return
	}
	if len(same) > 0 {
		t.Fatalf("accepted when new, refused when unchanged: %v", same)
	}
	read := u.DeepCopy()
	if err := s.Repair(read); err != nil {
		t.Fatalf("accepted, and unreadable: %v", err)
	}
	s.Default(read.Object)
	if errs := s.Validate(t.Context(), read.Object, none); len(errs) > 0 {
		t.Fatalf("accepted, and refused when read: %v", errs)
	}
}
