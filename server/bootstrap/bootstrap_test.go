package bootstrap_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/even-keel/evenkeel/server/bootstrap"
)

var options = bootstrap.Options{
	ServiceRange:     netip.MustParsePrefix("10.96.0.0/12"),
	AdvertiseAddress: netip.MustParseAddr("192.0.2.7"),
	Port:             7443,
	ClientCA:         []byte("the CA of clients"),
	RootCA:           []byte("the CA of the server"),
}

// all returns the objects of a new cluster and of its namespaces.
func all(o bootstrap.Options) []runtime.Object {
	objects := bootstrap.Objects(o)
	for _, name := range namespaces(objects) {
		objects = append(objects, bootstrap.ForNamespace(name, o)...)
	}
	return objects
}

func namespaces(objects []runtime.Object) []string {
	var names []string
	for _, ns := range of[*corev1.Namespace](objects) {
		names = append(names, ns.Name)
	}
	return names
}

// of returns the objects of one type.
func of[T runtime.Object](objects []runtime.Object) []T {
	var found []T
	for _, o := range objects {
		if t, ok := o.(T); ok {
			found = append(found, t)
		}
	}
	return found
}

func only[T runtime.Object](t *testing.T, objects []runtime.Object) T {
	t.Helper()
	found := of[T](objects)
	if len(found) != 1 {
		t.Fatalf("%d objects of type %T, want one", len(found), *new(T))
	}
	return found[0]
}

func TestObjectsNameTheirKindAsTheSchemeDoes(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, discoveryv1.AddToScheme, networkingv1.AddToScheme, rbacv1.AddToScheme, schedulingv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range all(options) {
		known, _, err := scheme.ObjectKinds(o)
		if err != nil {
			t.Fatal(err)
		}
		if got := o.GetObjectKind().GroupVersionKind(); !slices.Contains(known, got) {
			t.Errorf("%T says that it is %v", o, got)
		}
	}
}

func TestObjectsAreUniqueValidAndAfterTheirNamespace(t *testing.T) {
	seen := map[string]bool{}
	for _, o := range all(options) {
		m, err := meta.Accessor(o)
		if err != nil {
			t.Fatal(err)
		}
		kind := o.GetObjectKind().GroupVersionKind().Kind
		key := kind + " " + m.GetNamespace() + "/" + m.GetName()
		if seen[key] {
			t.Errorf("%s is there twice", key)
		}
		seen[key] = true
		if ns := m.GetNamespace(); ns != "" && !seen["Namespace /"+ns] {
			t.Errorf("%s comes before its namespace", key)
		}
		for _, err := range validation.ValidateObjectMetaAccessor(m, namespaced(o), nameOf(o), field.NewPath("metadata")) {
			t.Errorf("%s: %v", key, err)
		}
	}
}

func namespaced(o runtime.Object) bool {
	switch o.(type) {
	case *corev1.Namespace, *networkingv1.ServiceCIDR, *networkingv1.IPAddress,
		*schedulingv1.PriorityClass, *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding:
		return false
	}
	return true
}

func nameOf(o runtime.Object) validation.ValidateNameFunc {
	if o.GetObjectKind().GroupVersionKind().Group == rbacv1.GroupName {
		return func(name string, _ bool) []string { return content.IsPathSegmentName(name) }
	}
	return validation.NameIsDNSSubdomain
}

func TestObjectsAreTheCallers(t *testing.T) {
	want := all(options)
	changed := all(options)
	for _, o := range changed {
		m, err := meta.Accessor(o)
		if err != nil {
			t.Fatal(err)
		}
		for k := range m.GetLabels() {
			m.GetLabels()[k] = "changed"
		}
		// A role that shares rules with another would change twice.
		if r, ok := o.(*rbacv1.ClusterRole); ok {
			for _, rule := range r.Rules {
				if rule.Verbs[0] == "changed" {
					t.Fatalf("%s shares a rule", r.Name)
				}
				rule.Verbs[0] = "changed"
			}
		}
	}
	if diff := cmp.Diff(want, all(options)); diff != "" {
		t.Errorf("a change reaches the next caller:\n%s", diff)
	}
}

func TestNamespaces(t *testing.T) {
	want := []string{"default", "kube-node-lease", "kube-public", "kube-system"}
	if diff := cmp.Diff(want, namespaces(bootstrap.Objects(options))); diff != "" {
		t.Error(diff)
	}
	for _, name := range want {
		objects := bootstrap.ForNamespace(name, options)
		if account := only[*corev1.ServiceAccount](t, objects); account.Namespace != name || account.Name != "default" {
			t.Errorf("%s has the account %s/%s", name, account.Namespace, account.Name)
		}
		ca := only[*corev1.ConfigMap](t, objects)
		if ca.Namespace != name || ca.Name != "kube-root-ca.crt" || ca.Data["ca.crt"] != string(options.RootCA) {
			t.Errorf("%s has %s/%s: %v", name, ca.Namespace, ca.Name, ca.Data)
		}
	}
}

func TestWithoutCertificatesNothingIsSaidOfThem(t *testing.T) {
	if found := of[*corev1.ConfigMap](all(bootstrap.Options{})); len(found) != 0 {
		t.Errorf("there is %s/%s", found[0].Namespace, found[0].Name)
	}
}

func TestExtensionServersLearnTheClientCA(t *testing.T) {
	got := only[*corev1.ConfigMap](t, bootstrap.Objects(options))
	if got.Namespace != "kube-system" || got.Name != "extension-apiserver-authentication" {
		t.Errorf("there is %s/%s", got.Namespace, got.Name)
	}
	if diff := cmp.Diff(map[string]string{"client-ca-file": "the CA of clients"}, got.Data); diff != "" {
		t.Error(diff)
	}
}

func TestPriorityClasses(t *testing.T) {
	got := map[string]int32{}
	for _, c := range of[*schedulingv1.PriorityClass](bootstrap.Objects(options)) {
		got[c.Name] = c.Value
		if c.Description == "" || c.GlobalDefault {
			t.Errorf("%s: described as %q, default %v", c.Name, c.Description, c.GlobalDefault)
		}
	}
	want := map[string]int32{"system-cluster-critical": 2000000000, "system-node-critical": 2000001000}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func BenchmarkObjects(b *testing.B) {
	for b.Loop() {
		bootstrap.Objects(options)
	}
}
