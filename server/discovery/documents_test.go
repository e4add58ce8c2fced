package discovery

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/even-keel/evenkeel/server/kinds"
)

// resource is "group/version resource Kind", of which only the order matters.
func resource(s string) Resource {
	f := strings.Fields(s)
	gv, err := schema.ParseGroupVersion(f[0])
	if err != nil {
		panic(err)
	}
	return Resource{GroupVersion: gv, Resource: f[1], Singular: strings.TrimSuffix(f[1], "s"), Kind: f[2], Verbs: []string{"get"}}
}

func get[T any](t *testing.T, d *Documents, path string, form Form) T {
	t.Helper()
	var v T
	body, _, _, ok := d.Lookup(path, form)
	if !ok {
		t.Fatalf("nothing at %s", path)
	}
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return v
}

func TestStorageVersionHashes(t *testing.T) {
	// As clusters everywhere show them.
	for gvk, want := range map[schema.GroupVersionKind]string{
		{Version: "v1", Kind: "ConfigMap"}:                                                        "qFsyl6wFWjQ=",
		{Version: "v1", Kind: "Pod"}:                                                              "xPOwRZ+Yhw8=",
		{Version: "v1", Kind: "Event"}:                                                            "r2yiGXH7wu8=",
		{Group: "apps", Version: "v1", Kind: "Deployment"}:                                        "8aSe+NMegvE=",
		{Group: "batch", Version: "v1", Kind: "Job"}:                                              "mudhfqk/qZY=",
		{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"}:                              "39NQlfNR+bo=",
		{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"}:                             "EVWiDmWqyJw=",
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"}:                         "7FuwZcIIItM=",
		{Group: "certificates.k8s.io", Version: "v1", Kind: "CertificateSigningRequest"}:          "95fRKMXA+00=",
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicy"}: "6OxvlMmQ6is=",
	} {
		if got := StorageVersionHash(gvk); got != want {
			t.Errorf("%v: %s, want %s", gvk, got, want)
		}
	}
}

func TestOrder(t *testing.T) {
	d := New([]Resource{
		resource("b.example.com/v1beta1 things Thing"), resource("b.example.com/v1 things Thing"),
		resource("b.example.com/v2alpha1 things Thing"), resource("a.example.com/v1 things Thing"),
		resource("autoscaling/v1 h H"), resource("autoscaling/v2 h H"), resource("storage.k8s.io/v1 s S"),
		resource("v1 pods Pod"), resource("v1 bindings Binding"), resource("apps/v1 b B"), resource("events.k8s.io/v1 e E"),
		resource("v1 pods Other"),
	}, "h:1")

	want := []string{
		"apps: apps/v1", "events.k8s.io: events.k8s.io/v1", "autoscaling: autoscaling/v2 autoscaling/v1",
		"storage.k8s.io: storage.k8s.io/v1", "a.example.com: a.example.com/v1",
		"b.example.com: b.example.com/v1 b.example.com/v1beta1 b.example.com/v2alpha1",
	}
	var got []string
	for _, g := range get[metav1.APIGroupList](t, d, "/apis", JSON).Groups {
		line := g.Name + ":"
		for _, v := range g.Versions {
			line += " " + v.GroupVersion
		}
		if g.PreferredVersion != g.Versions[0] {
			t.Errorf("%s prefers %v", g.Name, g.PreferredVersion)
		}
		got = append(got, line)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	var aggregated []string
	for _, g := range get[apidiscoveryv2.APIGroupDiscoveryList](t, d, "/apis", AggregatedJSON).Items {
		line := g.Name + ":"
		for _, v := range g.Versions {
			line += " " + g.Name + "/" + v.Version
		}
		aggregated = append(aggregated, line)
	}
	if diff := cmp.Diff(want, aggregated); diff != "" {
		t.Error(diff)
	}

	var core []string
	for _, r := range get[metav1.APIResourceList](t, d, "/api/v1", JSON).APIResources {
		core = append(core, r.Name+" "+r.Kind)
	}
	if diff := cmp.Diff([]string{"bindings Binding", "pods Pod"}, core); diff != "" {
		t.Error(diff)
	}
}

func TestDocumentsOfTheCoreGroupHaveNoVersion(t *testing.T) {
	d := New([]Resource{resource("v1 pods Pod")}, "10.0.0.1:6443")
	for path, want := range map[string]string{
		"/api":     `{"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":[{"clientCIDR":"0.0.0.0/0","serverAddress":"10.0.0.1:6443"}]}`,
		"/api/":    `{"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":[{"clientCIDR":"0.0.0.0/0","serverAddress":"10.0.0.1:6443"}]}`,
		"/api/v1":  `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","singularName":"pod","namespaced":false,"kind":"Pod","verbs":["get"]}]}`,
		"/apis":    `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`,
		"/api/v2":  "",
		"/apis/v1": "",
		"/":        "",
		"":         "",
	} {
		body, contentType, etag, ok := d.Lookup(path, JSON)
		if ok != (want != "") {
			t.Errorf("%q: found is %v", path, ok)
		}
		if got := strings.TrimSpace(string(body)); got != want {
			t.Errorf("%q: %s, want %s", path, got, want)
		}
		if ok && (contentType != "application/json" || len(etag) != 130) {
			t.Errorf("%q: content type %q, tag %q", path, contentType, etag)
		}
	}
}

func TestCustomResources(t *testing.T) {
	gvk := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	r := Resource{
		GroupVersion: gvk.GroupVersion(), Kind: gvk.Kind, Resource: "widgets", Singular: "widget", Namespaced: true,
		ShortNames: []string{"wd"}, Verbs: CustomVerbs(), Custom: true,
		Subresources: []Subresource{StatusSubresource(gvk), ScaleSubresource()},
	}
	d := New([]Resource{r}, "h:1")
	// As recorded, in the scenario crd-basic.
	want := `[{"kind":"Widget","name":"widgets","namespaced":true,"shortNames":["wd"],"singularName":"widget",
		"verbs":["delete","deletecollection","get","list","patch","create","update","watch"]},
		{"kind":"Widget","name":"widgets/status","namespaced":true,"singularName":"","verbs":["get","patch","update"]},
		{"group":"autoscaling","kind":"Scale","name":"widgets/scale","namespaced":true,"singularName":"","verbs":["get","patch","update"],"version":"v1"}]`
	var list []any
	if err := json.Unmarshal([]byte(want), &list); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(any(list), get[map[string]any](t, d, "/apis/example.com/v1", JSON)["resources"]); diff != "" {
		t.Error(diff)
	}
	full := get[apidiscoveryv2.APIGroupDiscoveryList](t, d, "/apis", AggregatedJSON).Items[0].Versions[0].Resources[0]
	kind := metav1.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	if *full.ResponseKind != kind || *full.Subresources[0].ResponseKind != kind {
		t.Errorf("kinds are %v and %v", full.ResponseKind, full.Subresources[0].ResponseKind)
	}
	if !d.HasGroup("example.com") || d.HasGroup("example") {
		t.Error("groups")
	}
}

func TestProtobufSaysTheSame(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := apidiscoveryv2.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	serializer := protobuf.NewSerializer(scheme, scheme)

	d := New(FromKinds(kinds.All()), "h:1")
	for path, forms := range map[string][2]Form{
		"/api": {AggregatedJSON, AggregatedProtobuf}, "/apis": {AggregatedJSON, AggregatedProtobuf},
	} {
		body, contentType, etag, _ := d.Lookup(path, forms[1])
		obj, gvk, err := serializer.Decode(body, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if gvk.Kind != "APIGroupDiscoveryList" || contentType != "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList" {
			t.Errorf("%s: %v as %s", path, gvk, contentType)
		}
		asJSON := get[apidiscoveryv2.APIGroupDiscoveryList](t, d, path, forms[0])
		asJSON.TypeMeta = metav1.TypeMeta{}
		got := *obj.(*apidiscoveryv2.APIGroupDiscoveryList)
		got.TypeMeta = metav1.TypeMeta{}
		if diff := cmp.Diff(asJSON, got); diff != "" {
			t.Error(diff)
		}
		if _, _, other, _ := d.Lookup(path, forms[0]); other != etag {
			t.Errorf("%s: tags differ", path)
		}
	}
	if body, contentType, _, _ := d.Lookup("/apis", Protobuf); !strings.HasPrefix(string(body), "k8s\x00") || contentType != "application/vnd.kubernetes.protobuf" {
		t.Errorf("%q as %s", body[:4], contentType)
	}
}

func TestFromKinds(t *testing.T) {
	core := schema.GroupVersionKind{Version: "v1", Kind: "Thing"}
	other := schema.GroupVersionKind{Group: "g", Version: "v2", Kind: "Thing"}
	k := &kinds.Kind{
		GVK: core, Resource: "things", Singular: "thing", HasStatus: true, NoDeleteCollection: true, Scale: &kinds.Scale{},
		Also: []kinds.Version{{GVK: other}},
		Subresources: []kinds.Subresource{
			{Name: "eviction", GVK: schema.GroupVersionKind{Group: "policy", Version: "v1", Kind: "Eviction"}, Verbs: []string{"create"}},
			{Name: "log", GVK: core, Verbs: []string{"get"}},
		},
	}
	question := &kinds.Kind{GVK: core, Resource: "questions", CreateOnly: true}
	got := FromKinds([]*kinds.Kind{k, question})
	if len(got) != 3 || got[0].GroupVersion != core.GroupVersion() || got[1].GroupVersion != other.GroupVersion() {
		t.Fatal(got)
	}
	var names []string
	for _, s := range got[1].Subresources {
		names = append(names, s.Name+" "+s.GVK.GroupVersion().String())
	}
	if diff := cmp.Diff([]string{"eviction policy/v1", "log g/v2", "scale autoscaling/v1", "status g/v2"}, names); diff != "" {
		t.Error(diff)
	}
	if got[0].StorageVersionHash != got[1].StorageVersionHash || got[0].StorageVersionHash == "" {
		t.Error("hashes of the versions differ")
	}
	if got[2].StorageVersionHash != "" || !slices.Equal(got[2].Verbs, []string{"create"}) {
		t.Errorf("a question is %v", got[2])
	}
	if slices.Contains(got[0].Verbs, "deletecollection") || len(got[0].Verbs) != 7 {
		t.Errorf("verbs are %v", got[0].Verbs)
	}
}

func TestDocumentsAreForSeveralAtOnce(t *testing.T) {
	d := New(FromKinds(kinds.All()), "h:1")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for path := range d.byPath {
				for form := JSON; form <= AggregatedProtobuf; form++ {
					d.Lookup(path, form)
				}
			}
		})
	}
	all.Wait()
}

func BenchmarkNew(b *testing.B) {
	resources := FromKinds(kinds.All())
	for b.Loop() {
		d := New(resources, "h:1")
		d.Lookup("/apis", AggregatedJSON)
		d.Lookup("/api", AggregatedJSON)
	}
}
