package kinds

import "slices"

// policy returns the kinds that say what may be: of rbac, admissionregistration,
// policy, networking, scheduling, node, certificates, authentication and
// authorization.
func policy() []*Kind {
	return slices.Concat(
		reviewKinds(),
		[]*Kind{certificateRequestKind()},
		networkKinds(),
		[]*Kind{disruptionBudgetKind()},
		rbacKinds(),
		admissionKinds(),
		[]*Kind{priorityClassKind(), runtimeClassKind()},
	)
}
