package bootstrap

import (
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// The marks by which the real server knows what it may bring up to date.
const (
	bootstrappingLabel = "kubernetes.io/bootstrapping"
	bootstrappingValue = "rbac-defaults"

	// aggregateLabel and the name of a role are the label of what goes into it.
	aggregateLabel = "rbac.authorization.k8s.io/aggregate-to-"

	controllerPrefix = "system:controller:"
)

// role is a row of the tables: a ClusterRole, or the Role of a namespace.
type role struct {
	name  string
	rules rules
}

// binding is a row of the tables: who has the role.
type binding struct {
	role     string
	subjects []rbacv1.Subject
}

// policy returns all roles and their bindings.
func policy() []runtime.Object {
	controllers := slices.Concat(
		workloadControllers(), podControllers(), nodeControllers(), storageControllers(),
		networkControllers(), identityControllers(), systemControllers())

	clusterRoles := peopleRoles()
	for _, r := range slices.Concat(publicRoles(), componentRoles(), nodeRoles(), certificateRoles()) {
		clusterRoles = append(clusterRoles, clusterRole(r))
	}
	bindings := clusterBindings()
	for _, c := range controllers {
		name := controllerPrefix + c.name
		clusterRoles = append(clusterRoles, clusterRole(role{name, c.rules}))
		bindings = append(bindings, binding{name, toAccounts(c.name)})
	}
	aggregate(clusterRoles)

	var objects []runtime.Object
	for _, r := range clusterRoles {
		objects = append(objects, r)
	}
	for _, b := range bindings {
		objects = append(objects, clusterRoleBinding(b))
	}
	return append(objects, namespacedPolicy()...)
}

func rbacKind(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}

func rbacMeta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace:   namespace,
		Name:        name,
		Labels:      map[string]string{bootstrappingLabel: bootstrappingValue},
		Annotations: map[string]string{rbacv1.AutoUpdateAnnotationKey: "true"},
	}
}

func clusterRole(r role) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{TypeMeta: rbacKind("ClusterRole"), ObjectMeta: rbacMeta("", r.name), Rules: r.rules}
}

func clusterRoleBinding(b binding) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		TypeMeta:   rbacKind("ClusterRoleBinding"),
		ObjectMeta: rbacMeta("", b.role),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: b.role},
		Subjects:   b.subjects,
	}
}

func namespacedRole(namespace string, r role) *rbacv1.Role {
	return &rbacv1.Role{TypeMeta: rbacKind("Role"), ObjectMeta: rbacMeta(namespace, r.name), Rules: r.rules}
}

func roleBinding(namespace, name string, b binding) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		TypeMeta:   rbacKind("RoleBinding"),
		ObjectMeta: rbacMeta(namespace, name),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: b.role},
		Subjects:   b.subjects,
	}
}

func toUsers(names ...string) []rbacv1.Subject  { return people(rbacv1.UserKind, names) }
func toGroups(names ...string) []rbacv1.Subject { return people(rbacv1.GroupKind, names) }

func people(kind string, names []string) []rbacv1.Subject {
	var subjects []rbacv1.Subject
	for _, name := range names {
		subjects = append(subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: kind, Name: name})
	}
	return subjects
}

// toAccounts names service accounts of kube-system.
func toAccounts(names ...string) []rbacv1.Subject {
	var subjects []rbacv1.Subject
	for _, name := range names {
		subjects = append(subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "kube-system", Name: name})
	}
	return subjects
}

// into labels a role as part of another, which aggregates it.
func into(whole string, r *rbacv1.ClusterRole) *rbacv1.ClusterRole {
	maps.Copy(r.Labels, aggregateTo(whole))
	return r
}

// aggregated is a role whose rules are those of others.
func aggregated(name string) *rbacv1.ClusterRole {
	r := clusterRole(role{name: name})
	r.AggregationRule = &rbacv1.AggregationRule{
		ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: aggregateTo(name)}},
	}
	return r
}

func aggregateTo(whole string) map[string]string {
	return map[string]string{aggregateLabel + whole: "true"}
}
