package kinds

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// policyKindOf returns the kind of this share with the given plural.
func policyKindOf(t testing.TB, resource string) *Kind {
	t.Helper()
	for _, k := range policy() {
		if k.Resource == resource {
			return k
		}
	}
	t.Fatalf("no kind %s", resource)
	return nil
}

// policyObject decodes an object and gives it its defaults.
func policyObject(t testing.TB, k *Kind, doc string) runtime.Object {
	t.Helper()
	obj := k.New()
	if err := json.Unmarshal([]byte(doc), obj); err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	if k.Default != nil {
		k.Default(obj)
	}
	return obj
}

// policyCauses are errors as "field: message" lines, sorted.
func policyCauses(errs field.ErrorList) []string {
	causes := []string{}
	for _, e := range errs {
		causes = append(causes, e.Error())
	}
	slices.Sort(causes)
	return causes
}

func policyJSON(t testing.TB, v any) map[string]any {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func policyCreateErrors(k *Kind, obj runtime.Object) field.ErrorList {
	var errs field.ErrorList
	for _, f := range []func(runtime.Object) field.ErrorList{k.Validate, k.ValidateCreate} {
		if f != nil {
			errs = append(errs, f(obj)...)
		}
	}
	return errs
}

func policyUpdateErrors(k *Kind, obj, old runtime.Object) field.ErrorList {
	var errs field.ErrorList
	if k.Validate != nil {
		errs = append(errs, k.Validate(obj)...)
	}
	if k.ValidateUpdate != nil {
		errs = append(errs, k.ValidateUpdate(obj, old)...)
	}
	return errs
}

func TestPolicyKindsAreWhole(t *testing.T) {
	for _, k := range policy() {
		t.Run(k.Resource, func(t *testing.T) {
			obj := k.New()
			gvks, _, err := Scheme().ObjectKinds(obj)
			if err != nil || gvks[0] != k.GVK {
				t.Errorf("New returns %v (%v), want %v", gvks, err, k.GVK)
			}
			if k.Singular != strings.ToLower(k.GVK.Kind) {
				t.Errorf("singular is %q", k.Singular)
			}
			if k.CreateOnly != (k.NewList == nil) {
				t.Error("only reviews have no list")
			}
			if k.NewList != nil {
				if gvks, _, _ := Scheme().ObjectKinds(k.NewList()); len(gvks) == 0 || gvks[0].Kind != k.GVK.Kind+"List" {
					t.Errorf("NewList returns %v", gvks)
				}
			}
			want := len(k.Columns)
			if k.Resource == "ipaddresses" {
				want++ // the age, which has no column
			}
			if k.Cells == nil && want == 0 {
				return // name and age
			}
			if got := len(k.Cells(obj, metav1.Now())); got != want {
				t.Errorf("%d cells for %d columns", got, want)
			}
			if _, ok := reflect.TypeOf(obj).Elem().FieldByName("Status"); k.HasStatus && !ok {
				t.Error("has no field Status")
			}
		})
	}
}

func TestPolicyKindsTraits(t *testing.T) {
	type traits struct {
		short                                                          string
		namespaced, status, generation, needsRevision, createsOnUpdate bool
	}
	want := map[string]traits{
		"roles":                             {namespaced: true, createsOnUpdate: true},
		"clusterroles":                      {createsOnUpdate: true},
		"customresourcedefinitions":         {short: "crd,crds", status: true, generation: true, needsRevision: true},
		"rolebindings":                      {namespaced: true, createsOnUpdate: true},
		"clusterrolebindings":               {createsOnUpdate: true},
		"poddisruptionbudgets":              {short: "pdb", namespaced: true, status: true, generation: true, needsRevision: true},
		"ingresses":                         {short: "ing", namespaced: true, status: true, generation: true},
		"ingressclasses":                    {generation: true},
		"networkpolicies":                   {short: "netpol", namespaced: true, generation: true},
		"ipaddresses":                       {short: "ip"},
		"servicecidrs":                      {status: true},
		"priorityclasses":                   {short: "pc"},
		"runtimeclasses":                    {createsOnUpdate: true, needsRevision: true},
		"certificatesigningrequests":        {short: "csr", status: true},
		"mutatingwebhookconfigurations":     {generation: true, needsRevision: true},
		"validatingwebhookconfigurations":   {generation: true, needsRevision: true},
		"validatingadmissionpolicies":       {status: true, generation: true, needsRevision: true},
		"validatingadmissionpolicybindings": {generation: true, needsRevision: true},
		"mutatingadmissionpolicies":         {generation: true, needsRevision: true},
		"mutatingadmissionpolicybindings":   {generation: true, needsRevision: true},
		"selfsubjectreviews":                {},
		"tokenreviews":                      {},
		"localsubjectaccessreviews":         {namespaced: true},
		"selfsubjectaccessreviews":          {},
		"selfsubjectrulesreviews":           {},
		"subjectaccessreviews":              {},
	}
	got := map[string]traits{}
	for _, k := range policy() {
		got[k.Resource] = traits{
			strings.Join(k.ShortNames, ","), k.Namespaced, k.HasStatus, k.HasGeneration, k.NeedsRevision, k.CreateOnUpdate,
		}
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(traits{})); d != "" {
		t.Error(d)
	}
}

func TestPolicyTables(t *testing.T) {
	now := metav1.NewTime(time.Date(2030, 1, 1, 0, 1, 30, 0, time.UTC))
	const meta = `"metadata":{"name":"x","creationTimestamp":"2030-01-01T00:00:00Z"}`
	tests := map[string]struct {
		resource, doc string
		columns       string
		cells         []any
	}{
		"role": {"roles", `{` + meta + `}`, "Name Created At", []any{"x", "2030-01-01T00:00:00Z"}},
		"role binding": {
			"rolebindings", `{` + meta + `,"roleRef":{"kind":"Role","name":"r"},"subjects":[
				{"kind":"User","name":"u"},{"kind":"User","name":"v"},{"kind":"Group","name":"g"},
				{"kind":"ServiceAccount","name":"a","namespace":"n"}]}`,
			"Name Role Age Users* Groups* ServiceAccounts*", []any{"x", "Role/r", "90s", "u, v", "g", "n/a"},
		},
		"disruption budget": {
			"poddisruptionbudgets", `{` + meta + `,"spec":{"maxUnavailable":"25%"},"status":{"disruptionsAllowed":2}}`,
			"Name Min Available Max Unavailable Allowed Disruptions Age", []any{"x", "N/A", "25%", int64(2), "90s"},
		},
		"ingress": {
			"ingresses", `{` + meta + `,"spec":{"rules":[{"host":"a"},{"host":"b"},{"host":"c"},{"host":"d"}],"tls":[{}]},
				"status":{"loadBalancer":{"ingress":[{"hostname":"h"},{"ip":"1.2.3.4"}]}}}`,
			"Name Class Hosts Address Ports Age", []any{"x", "<none>", "a,b,c + 1 more...", "1.2.3.4,h", "80, 443", "90s"},
		},
		"ingress for all hosts": {
			"ingresses", `{` + meta + `,"spec":{"ingressClassName":"c","rules":[{}]}}`,
			"Name Class Hosts Address Ports Age", []any{"x", "c", "*", "", "80", "90s"},
		},
		"ingress class": {
			"ingressclasses", `{` + meta + `,"spec":{"controller":"a/b","parameters":{"apiGroup":"g","kind":"K","name":"n"}}}`,
			"Name Controller Parameters Age", []any{"x", "a/b", "K.g/n", "90s"},
		},
		"network policy": {
			"networkpolicies", `{` + meta + `,"spec":{"podSelector":{"matchLabels":{"a":"b"}}}}`,
			"Name Pod-Selector Age", []any{"x", "a=b", "90s"},
		},
		"address": {
			"ipaddresses", `{` + meta + `,"spec":{"parentRef":{"resource":"services","namespace":"n","name":"s"}}}`,
			"Name ParentRef", []any{"x", "services/n/s", "90s"},
		},
		"service range": {
			"servicecidrs", `{` + meta + `,"spec":{"cidrs":["10.0.0.0/24","fd00::/64"]}}`,
			"Name CIDRs Age", []any{"x", "10.0.0.0/24,fd00::/64", "90s"},
		},
		"priority class": {
			"priorityclasses", `{` + meta + `,"value":7}`,
			"Name Value Global-Default Age PreemptionPolicy", []any{"x", int64(7), false, "90s", "PreemptLowerPriority"},
		},
		"runtime class": {"runtimeclasses", `{` + meta + `,"handler":"h"}`, "Name Handler Age", []any{"x", "h", "90s"}},
		"certificate request": {
			"certificatesigningrequests", `{` + meta + `,"spec":{"signerName":"a.b/c","username":"u","expirationSeconds":3600},
				"status":{"conditions":[{"type":"Approved"},{"type":"Failed"}],"certificate":"eA=="}}`,
			"Name Age SignerName Requestor RequestedDuration Condition",
			[]any{"x", "90s", "a.b/c", "u", "60m", "Approved,Failed,Issued"},
		},
		"webhooks": {
			"validatingwebhookconfigurations", `{` + meta + `,"webhooks":[{},{}]}`,
			"Name Webhooks Age", []any{"x", int64(2), "90s"},
		},
		"policy": {
			"validatingadmissionpolicies", `{` + meta + `,"spec":{"paramKind":{"apiVersion":"v1","kind":"K"},"validations":[{}]}}`,
			"Name Validations ParamKind Age", []any{"x", int64(1), "v1/K", "90s"},
		},
		"mutating policy": {
			"mutatingadmissionpolicies", `{` + meta + `,"spec":{"mutations":[{}]}}`,
			"Name Mutations ParamKind Age", []any{"x", int64(1), "<unset>", "90s"},
		},
		"policy binding": {
			"validatingadmissionpolicybindings", `{` + meta + `,"spec":{"policyName":"p","paramRef":{"name":"n"}}}`,
			"Name PolicyName ParamRef Age", []any{"x", "p", "*/n", "90s"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			k := policyKindOf(t, tt.resource)
			var columns []string
			for _, c := range k.Columns {
				columns = append(columns, c.Name+strings.Repeat("*", int(c.Priority)))
			}
			if got := strings.Join(columns, " "); got != tt.columns {
				t.Errorf("columns %q, want %q", got, tt.columns)
			}
			if d := cmp.Diff(tt.cells, k.Cells(policyObject(t, k, tt.doc), now)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestPolicyDefaults(t *testing.T) {
	tests := map[string]struct{ resource, doc, want string }{
		"subjects get the group of their kind": {
			"clusterrolebindings",
			`{"roleRef":{"kind":"ClusterRole","name":"r"},"subjects":[{"kind":"Group","name":"g"},{"kind":"ServiceAccount","name":"s"}]}`,
			`{"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"r"},
			  "subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"Group","name":"g"},{"kind":"ServiceAccount","name":"s"}]}`,
		},
		"a network policy with egress rules is about egress": {
			"networkpolicies",
			`{"spec":{"podSelector":{},"egress":[{"ports":[{"port":53}]}]}}`,
			`{"spec":{"podSelector":{},"egress":[{"ports":[{"port":53,"protocol":"TCP"}]}],"policyTypes":["Ingress","Egress"]}}`,
		},
		"parameters of an ingress class are of the cluster": {
			"ingressclasses",
			`{"spec":{"controller":"a/b","parameters":{"kind":"K","name":"n"}}}`,
			`{"spec":{"controller":"a/b","parameters":{"kind":"K","name":"n","scope":"Cluster"}}}`,
		},
		"pods of a priority class displace others": {
			"priorityclasses", `{"value":1}`, `{"value":1,"preemptionPolicy":"PreemptLowerPriority"}`,
		},
		"mutating webhooks": {
			"mutatingwebhookconfigurations",
			`{"webhooks":[{"name":"a","clientConfig":{"service":{"name":"s","namespace":"n"}},"rules":[{"operations":["*"]}],"sideEffects":"None","admissionReviewVersions":["v1"]}]}`,
			`{"webhooks":[{"name":"a","clientConfig":{"service":{"name":"s","namespace":"n","port":443}},
			  "rules":[{"operations":["*"],"scope":"*"}],"sideEffects":"None","admissionReviewVersions":["v1"],
			  "failurePolicy":"Fail","matchPolicy":"Equivalent","namespaceSelector":{},"objectSelector":{},
			  "timeoutSeconds":10,"reinvocationPolicy":"Never"}]}`,
		},
		"a policy": {
			"validatingadmissionpolicies",
			`{"spec":{"matchConstraints":{"resourceRules":[{"operations":["*"]}],"excludeResourceRules":[{"operations":["*"]}]}}}`,
			`{"spec":{"failurePolicy":"Fail","matchConstraints":{"matchPolicy":"Equivalent","namespaceSelector":{},"objectSelector":{},
			  "resourceRules":[{"operations":["*"],"scope":"*"}],"excludeResourceRules":[{"operations":["*"],"scope":"*"}]}},"status":{}}`,
		},
		"a mutating policy has no default for reinvocation": {
			"mutatingadmissionpolicies", `{"spec":{}}`, `{"spec":{"failurePolicy":"Fail"}}`,
		},
		"a binding": {
			"validatingadmissionpolicybindings", `{"spec":{"matchResources":{}}}`,
			`{"spec":{"matchResources":{"matchPolicy":"Equivalent","namespaceSelector":{},"objectSelector":{}}}}`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			k := policyKindOf(t, tt.resource)
			got := policyJSON(t, policyObject(t, k, tt.doc))
			delete(got, "metadata")
			if d := cmp.Diff(policyJSON(t, json.RawMessage(tt.want)), got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestCertificateRequestBelongsToRequester(t *testing.T) {
	k := policyKindOf(t, "certificatesigningrequests")
	obj := policyObject(t, k, `{"spec":{"username":"someone","groups":["all"],"extra":{"x":["y"]},"uid":"1"}}`)
	k.SetRequester(obj, authenticationv1.UserInfo{
		Username: "alice", Groups: []string{"devs"}, Extra: map[string]authenticationv1.ExtraValue{"k": {"v"}},
	})
	want := `map[extra:map[k:[v]] groups:[devs] request:<nil> signerName: username:alice]`
	if got := fmt.Sprint(policyJSON(t, obj)["spec"]); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
