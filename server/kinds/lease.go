package kinds

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func leaseKind() *Kind {
	return &Kind{
		GVK:      coordinationv1.SchemeGroupVersion.WithKind("Lease"),
		Resource: "leases", Singular: "lease", Namespaced: true,
		New: newOf[coordinationv1.Lease], NewList: newOf[coordinationv1.LeaseList],
		CreateOnUpdate: true, NeedsRevision: true,
		PrepareCreate: each(func(l *coordinationv1.Lease) { dropElection(l, &coordinationv1.Lease{}) }),
		PrepareUpdate: eachPair(dropElection),
		Validate:      check(validateLease),
		Columns:       []metav1.TableColumnDefinition{nameColumn(), column("Holder", "Who holds the lease."), ageColumn()},
		Cells: cells(func(l *coordinationv1.Lease, now metav1.Time) []any {
			holder := ""
			if l.Spec.HolderIdentity != nil {
				holder = *l.Spec.HolderIdentity
			}
			return []any{l.Name, holder, Age(l.CreationTimestamp, now)}
		}),
	}
}

// dropElection drops fields that are off by default, unless they were there.
func dropElection(l, old *coordinationv1.Lease) {
	if old.Spec.Strategy == nil {
		l.Spec.Strategy = nil
	}
	if old.Spec.PreferredHolder == nil {
		l.Spec.PreferredHolder = nil
	}
}

func validateLease(l *coordinationv1.Lease) field.ErrorList {
	var p problems
	path := field.NewPath("spec")
	if s := l.Spec.LeaseDurationSeconds; s != nil && *s <= 0 {
		p.invalid(path.Child("leaseDurationSeconds"), *s, "must be greater than 0")
	}
	if n := l.Spec.LeaseTransitions; n != nil && *n < 0 {
		p.invalid(path.Child("leaseTransitions"), *n, "must be greater than or equal to 0")
	}
	if h := l.Spec.PreferredHolder; h != nil && *h != "" && (l.Spec.Strategy == nil || *l.Spec.Strategy == "") {
		p.forbidden(path.Child("preferredHolder"), "may only be specified if `strategy` is defined")
	}
	return p.list
}
