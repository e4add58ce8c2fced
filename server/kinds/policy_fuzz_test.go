package kinds

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FuzzPolicyKinds feeds any document to any kind of this share: nothing may
// panic, and defaults must not change what has them.
func FuzzPolicyKinds(f *testing.F) {
	for i := range policy() {
		f.Add(uint8(i), []byte(`{"metadata":{"name":"x"}}`), []byte(`{}`))
	}
	for _, doc := range []string{
		`{"spec":{"rules":[{"host":"*","http":{"paths":[{"path":"x","pathType":"Exact","backend":{"service":{"port":{}}}}]}}],"tls":[{}]}}`,
		`{"spec":{"ingress":[{"from":[{"ipBlock":{"cidr":"::/0","except":["1.2.3.4/99",""]}}],"ports":[{"port":"","endPort":1}]}]}}`,
		`{"webhooks":[{"clientConfig":{"url":"%"}},{"clientConfig":{"service":{"path":"x//"}},"rules":[{"resources":["*/*","a/"]}]}]}`,
		`{"spec":{"mutations":[{"patchType":"JSONPatch"}],"paramKind":{"apiVersion":"/"},"matchConstraints":{"resourceRules":[{}]}}}`,
		`{"spec":{"request":"LS0t","signerName":"/","usages":["any","any"]},"status":{"conditions":[{"type":"Denied"},{"type":"Approved"}],"certificate":"LS0t"}}`,
		`{"subjects":[{"kind":"User"},{}],"rules":[{"nonResourceURLs":["x"]}],"scheduling":{"tolerations":[{}]},"overhead":{"podFixed":{"cpu":"-1"}}}`,
	} {
		for i := range policy() {
			f.Add(uint8(i), []byte(doc), []byte(doc))
		}
	}
	all := policy()
	f.Fuzz(func(t *testing.T, which uint8, doc, before []byte) {
		k := all[int(which)%len(all)]
		obj, old := k.New(), k.New()
		if json.Unmarshal(doc, obj) != nil || json.Unmarshal(before, old) != nil {
			return
		}
		if k.Default != nil {
			k.Default(obj)
			again := obj.DeepCopyObject()
			k.Default(again)
			if !equality.Semantic.DeepEqual(obj, again) {
				t.Errorf("defaults are not idempotent: %v, then %v", obj, again)
			}
			k.Default(old)
		}
		fresh := obj.DeepCopyObject()
		if k.PrepareCreate != nil {
			k.PrepareCreate(fresh)
		}
		if len(policyCreateErrors(k, fresh)) == 0 && k.Warnings != nil {
			k.Warnings(fresh, nil)
		}
		if k.Cells != nil {
			k.Cells(fresh, metav1.Now())
		}
		if k.FieldSet != nil {
			k.FieldSet(fresh)
		}
		status := obj.DeepCopyObject()
		if k.PrepareStatus != nil {
			k.PrepareStatus(status, old)
		}
		if k.ValidateStatus != nil {
			k.ValidateStatus(status, old)
		}
		for _, s := range k.Subresources {
			sub := obj.DeepCopyObject()
			s.Prepare(sub, old)
			s.Validate(sub, old)
		}
		if k.PrepareUpdate != nil {
			k.PrepareUpdate(obj, old)
		}
		policyUpdateErrors(k, obj, old)
	})
}
