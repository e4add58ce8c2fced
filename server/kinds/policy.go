package kinds

import "slices"

// policy returns the kinds that say what may be: of rbac, admissionregistration,
// policy, networking, scheduling, node, certificates, authentication,
// authorization and apiextensions.
func policy() []*Kind {
	return slices.Concat(
		reviewKinds(),
		[]*Kind{certificateRequestKind()},
		networkKinds(),
		[]*Kind{disruptionBudgetKind()},
		rbacKinds(),
		admissionKinds(),
		[]*Kind{priorityClassKind(), runtimeClassKind(), definitionKind()},
	)
}
