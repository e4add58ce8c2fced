package bootstrap_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/even-keel/evenkeel/server/bootstrap"
)

// The numbers of kube-apiserver 1.37.1, counted in what it is tested with. The
// rules of aggregated roles, which it does not fill in itself, come on top.
func TestThePolicyHasTheSizeOfTheRealOne(t *testing.T) {
	got := map[string]int{}
	for _, o := range bootstrap.Objects(options) {
		switch o := o.(type) {
		case *rbacv1.ClusterRole:
			got["cluster roles"]++
			if o.AggregationRule == nil {
				got["their rules"] += len(o.Rules)
			}
		case *rbacv1.Role:
			got["roles"]++
			got["rules of roles"] += len(o.Rules)
		case *rbacv1.ClusterRoleBinding:
			got["cluster role bindings"]++
			got["their subjects"] += len(o.Subjects)
		case *rbacv1.RoleBinding:
			got["role bindings"]++
			got["subjects of role bindings"] += len(o.Subjects)
		}
	}
	want := map[string]int{
		"cluster roles": 73, "their rules": 325,
		"cluster role bindings": 54, "their subjects": 54,
		"roles": 7, "rules of roles": 12,
		"role bindings": 7, "subjects of role bindings": 11,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestThePolicyIsMarkedAsTheSystems(t *testing.T) {
	for _, o := range bootstrap.Objects(options) {
		if o.GetObjectKind().GroupVersionKind().Group != rbacv1.GroupName {
			continue
		}
		m, err := meta.Accessor(o)
		if err != nil {
			t.Fatal(err)
		}
		if m.GetLabels()["kubernetes.io/bootstrapping"] != "rbac-defaults" {
			t.Errorf("%s has the labels %v", m.GetName(), m.GetLabels())
		}
		if m.GetAnnotations()["rbac.authorization.kubernetes.io/autoupdate"] != "true" {
			t.Errorf("%s has the annotations %v", m.GetName(), m.GetAnnotations())
		}
	}
}

func TestEveryBindingsRoleExists(t *testing.T) {
	objects := bootstrap.Objects(options)
	roles := map[string]bool{}
	for _, r := range of[*rbacv1.ClusterRole](objects) {
		roles["ClusterRole "+r.Name] = true
	}
	for _, r := range of[*rbacv1.Role](objects) {
		roles["Role "+r.Namespace+"/"+r.Name] = true
	}
	for _, b := range of[*rbacv1.ClusterRoleBinding](objects) {
		if !roles["ClusterRole "+b.RoleRef.Name] {
			t.Errorf("%s is of the unknown role %v", b.Name, b.RoleRef)
		}
		checkSubjects(t, b.Name, b.Subjects)
	}
	for _, b := range of[*rbacv1.RoleBinding](objects) {
		if !roles["Role "+b.Namespace+"/"+b.RoleRef.Name] {
			t.Errorf("%s is of the unknown role %v", b.Name, b.RoleRef)
		}
		checkSubjects(t, b.Name, b.Subjects)
	}
}

// checkSubjects wants someone with every role but that of nodes, which have an
// authorizer of their own.
func checkSubjects(t *testing.T, name string, subjects []rbacv1.Subject) {
	t.Helper()
	if (len(subjects) == 0) != (name == "system:node") {
		t.Errorf("%s has %d subjects", name, len(subjects))
	}
	for _, s := range subjects {
		account := s.Kind == rbacv1.ServiceAccountKind
		if s.Name == "" || account != (s.Namespace == "kube-system") || account != (s.APIGroup == "") {
			t.Errorf("%s has the subject %v", name, s)
		}
	}
}

func TestRulesAreWhole(t *testing.T) {
	objects := bootstrap.Objects(options)
	for _, r := range of[*rbacv1.ClusterRole](objects) {
		checkRules(t, r.Name, r.Rules)
	}
	for _, r := range of[*rbacv1.Role](objects) {
		checkRules(t, r.Name, r.Rules)
	}
}

func checkRules(t *testing.T, name string, rules []rbacv1.PolicyRule) {
	t.Helper()
	if len(rules) == 0 {
		t.Errorf("%s allows nothing", name)
	}
	for _, r := range rules {
		ofResources := len(r.APIGroups) > 0 && len(r.Resources) > 0
		if len(r.Verbs) == 0 || ofResources == (len(r.NonResourceURLs) > 0) {
			t.Errorf("%s: %v is neither of resources nor of paths", name, r)
		}
		if len(r.ResourceNames) > 0 && len(r.Resources) != 1 {
			t.Errorf("%s: %v names objects of several resources", name, r)
		}
		for _, list := range [][]string{r.Verbs, r.APIGroups, r.Resources, r.ResourceNames, r.NonResourceURLs} {
			if !slices.IsSorted(list) || len(slices.Compact(slices.Clone(list))) != len(list) {
				t.Errorf("%s: %v is not sorted, or has something twice", name, list)
			}
		}
		if slices.Contains(r.APIGroups, "core") {
			t.Errorf("%s: %v is of a group that does not exist", name, r)
		}
	}
}

// Whoever may edit may view, and whoever is admin may edit.
func TestAggregatedRolesHoldTheirParts(t *testing.T) {
	roles := map[string][]rbacv1.PolicyRule{}
	for _, r := range of[*rbacv1.ClusterRole](bootstrap.Objects(options)) {
		roles[r.Name] = r.Rules
	}
	for whole, parts := range map[string][]string{
		"view":  {"system:aggregate-to-view"},
		"edit":  {"system:aggregate-to-edit", "view"},
		"admin": {"edit", "system:aggregate-to-admin"},
	} {
		var want []rbacv1.PolicyRule
		for _, part := range parts {
			want = append(want, roles[part]...)
		}
		if !reflect.DeepEqual(roles[whole], want) {
			t.Errorf("%s has %d rules, its parts %d", whole, len(roles[whole]), len(want))
		}
	}
}
