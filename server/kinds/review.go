package kinds

import (
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// reviewKinds are questions: created, answered in Status, and forgotten. Their
// Validate wants metadata as the client sent it, since it must be empty.
func reviewKinds() []*Kind {
	local := reviewKind(authorizationv1.SchemeGroupVersion, "LocalSubjectAccessReview", newOf[authorizationv1.LocalSubjectAccessReview])
	local.Namespaced = true
	local.Validate = check(validateLocalAccessReview)

	self := reviewKind(authorizationv1.SchemeGroupVersion, "SelfSubjectAccessReview", newOf[authorizationv1.SelfSubjectAccessReview])
	self.Validate = check(validateSelfAccessReview)

	subject := reviewKind(authorizationv1.SchemeGroupVersion, "SubjectAccessReview", newOf[authorizationv1.SubjectAccessReview])
	subject.Validate = check(validateAccessReview)

	return []*Kind{
		reviewKind(authenticationv1.SchemeGroupVersion, "SelfSubjectReview", newOf[authenticationv1.SelfSubjectReview]),
		reviewKind(authenticationv1.SchemeGroupVersion, "TokenReview", newOf[authenticationv1.TokenReview]),
		local,
		self,
		reviewKind(authorizationv1.SchemeGroupVersion, "SelfSubjectRulesReview", newOf[authorizationv1.SelfSubjectRulesReview]),
		subject,
	}
}

func reviewKind(gv schema.GroupVersion, kind string, empty func() runtime.Object) *Kind {
	singular := strings.ToLower(kind)
	return &Kind{
		GVK:        gv.WithKind(kind),
		Resource:   singular + "s",
		Singular:   singular,
		New:        empty,
		CreateOnly: true,

		Columns: createdAtColumns(),
		Cells: func(obj runtime.Object, _ metav1.Time) []any {
			m := obj.(metav1.Object)
			return createdAtCells(&metav1.ObjectMeta{Name: m.GetName(), CreationTimestamp: m.GetCreationTimestamp()})
		},
	}
}
