package kinds

import (
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func rbacKinds() []*Kind {
	return []*Kind{clusterRoleBindingKind(), clusterRoleKind(), roleBindingKind(), roleKind()}
}

func roleKind() *Kind {
	return &Kind{
		GVK:        rbacv1.SchemeGroupVersion.WithKind("Role"),
		Resource:   "roles",
		Singular:   "role",
		Namespaced: true,
		New:        newOf[rbacv1.Role],
		NewList:    newOf[rbacv1.RoleList],

		ValidName:      rbacName,
		CreateOnUpdate: true,

		Validate: check(validateRole),

		Columns: createdAtColumns(),
		Cells: cells(func(r *rbacv1.Role, _ metav1.Time) []any {
			return createdAtCells(&r.ObjectMeta)
		}),
	}
}

func clusterRoleKind() *Kind {
	return &Kind{
		GVK:      rbacv1.SchemeGroupVersion.WithKind("ClusterRole"),
		Resource: "clusterroles",
		Singular: "clusterrole",
		New:      newOf[rbacv1.ClusterRole],
		NewList:  newOf[rbacv1.ClusterRoleList],

		ValidName:      rbacName,
		CreateOnUpdate: true,

		Validate: check(validateClusterRole),

		Columns: createdAtColumns(),
		Cells: cells(func(r *rbacv1.ClusterRole, _ metav1.Time) []any {
			return createdAtCells(&r.ObjectMeta)
		}),
	}
}

func roleBindingKind() *Kind {
	return &Kind{
		GVK:        rbacv1.SchemeGroupVersion.WithKind("RoleBinding"),
		Resource:   "rolebindings",
		Singular:   "rolebinding",
		Namespaced: true,
		New:        newOf[rbacv1.RoleBinding],
		NewList:    newOf[rbacv1.RoleBindingList],

		ValidName:      rbacName,
		CreateOnUpdate: true,

		Default: each(func(b *rbacv1.RoleBinding) { defaultRBACBinding(&b.RoleRef, b.Subjects) }),

		Validate:       check(validateRoleBinding),
		ValidateUpdate: checkPair(validateRoleBindingUpdate),

		Columns: rbacBindingColumns(),
		Cells: cells(func(b *rbacv1.RoleBinding, now metav1.Time) []any {
			return rbacBindingCells(&b.ObjectMeta, b.RoleRef, b.Subjects, now)
		}),
	}
}

func clusterRoleBindingKind() *Kind {
	return &Kind{
		GVK:      rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"),
		Resource: "clusterrolebindings",
		Singular: "clusterrolebinding",
		New:      newOf[rbacv1.ClusterRoleBinding],
		NewList:  newOf[rbacv1.ClusterRoleBindingList],

		ValidName:      rbacName,
		CreateOnUpdate: true,

		Default: each(func(b *rbacv1.ClusterRoleBinding) { defaultRBACBinding(&b.RoleRef, b.Subjects) }),

		Validate:       check(validateClusterRoleBinding),
		ValidateUpdate: checkPair(validateClusterRoleBindingUpdate),

		Columns: rbacBindingColumns(),
		Cells: cells(func(b *rbacv1.ClusterRoleBinding, now metav1.Time) []any {
			return rbacBindingCells(&b.ObjectMeta, b.RoleRef, b.Subjects, now)
		}),
	}
}

// rbacName allows everything that can be an element of a path: names of roles
// have colons.
func rbacName(name string, prefix bool) []string {
	return content.IsPathSegmentName(name)
}

func defaultRBACBinding(ref *rbacv1.RoleRef, subjects []rbacv1.Subject) {
	setEmpty(&ref.APIGroup, rbacv1.GroupName)
	for i := range subjects {
		switch subjects[i].Kind {
		case rbacv1.UserKind, rbacv1.GroupKind:
			setEmpty(&subjects[i].APIGroup, rbacv1.GroupName)
		}
	}
}

// createdAtColumns are those of kinds that no one wrote a table for.
func createdAtColumns() []metav1.TableColumnDefinition {
	created := column("Created At", "Time at which the object was created.")
	created.Type = "date"
	return []metav1.TableColumnDefinition{nameColumn(), created}
}

func createdAtCells(meta *metav1.ObjectMeta) []any {
	return []any{meta.Name, meta.CreationTimestamp.UTC().Format(time.RFC3339)}
}

func rbacBindingColumns() []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		nameColumn(),
		column("Role", "The role that is granted."),
		ageColumn(),
		wideColumn("Users", "Users that get the role."),
		wideColumn("Groups", "Groups that get the role."),
		wideColumn("ServiceAccounts", "Service accounts that get the role."),
	}
}

func rbacBindingCells(meta *metav1.ObjectMeta, ref rbacv1.RoleRef, subjects []rbacv1.Subject, now metav1.Time) []any {
	var users, groups, accounts []string
	for _, s := range subjects {
		switch s.Kind {
		case rbacv1.UserKind:
			users = append(users, s.Name)
		case rbacv1.GroupKind:
			groups = append(groups, s.Name)
		case rbacv1.ServiceAccountKind:
			accounts = append(accounts, s.Namespace+"/"+s.Name)
		}
	}
	return []any{
		meta.Name, ref.Kind + "/" + ref.Name, Age(meta.CreationTimestamp, now),
		strings.Join(users, ", "), strings.Join(groups, ", "), strings.Join(accounts, ", "),
	}
}
