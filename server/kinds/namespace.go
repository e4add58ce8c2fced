package kinds

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func namespaceKind() *Kind {
	return &Kind{
		GVK:      corev1.SchemeGroupVersion.WithKind("Namespace"),
		Resource: "namespaces", Singular: "namespace", ShortNames: []string{"ns"},
		New: newOf[corev1.Namespace], NewList: newOf[corev1.NamespaceList],
		ValidName: apivalidation.NameIsDNSLabel,
		HasStatus: true, DeleteReturnsObject: true, NoDeleteCollection: true,
		Subresources: []Subresource{{
			Name: "finalize", GVK: corev1.SchemeGroupVersion.WithKind("Namespace"), Verbs: []string{"update"}, Untracked: true,
			Prepare:  eachPair(func(ns, old *corev1.Namespace) { ns.Status = old.Status }),
			Validate: checkPair(validateFinalize),
		}},
		Default:       each(defaultNamespace),
		PrepareCreate: each(prepareNamespace),
		PrepareUpdate: eachPair(func(ns, old *corev1.Namespace) {
			ns.Spec.Finalizers = old.Spec.Finalizers
			labelWithName(ns)
		}),
		Validate:       check(validateNamespace),
		ValidateStatus: checkPair(validateNamespaceStatus),
		Fields:         []string{"status.phase"},
		FieldSet: fieldSet(func(ns *corev1.Namespace) fields.Set {
			return fields.Set{"status.phase": string(ns.Status.Phase)}
		}),
		Columns: []metav1.TableColumnDefinition{nameColumn(), column("Status", "Whether the namespace is in use or going away."), ageColumn()},
		Cells: cells(func(ns *corev1.Namespace, now metav1.Time) []any {
			return []any{ns.Name, string(ns.Status.Phase), Age(ns.CreationTimestamp, now)}
		}),
	}
}

func defaultNamespace(ns *corev1.Namespace) {
	labelWithName(ns)
	setEmpty(&ns.Status.Phase, corev1.NamespaceActive)
}

// labelWithName makes a namespace selectable by name. One that is yet to get its
// name has to wait.
func labelWithName(ns *corev1.Namespace) {
	if ns.Name == "" {
		return
	}
	if ns.Labels == nil {
		ns.Labels = map[string]string{}
	}
	ns.Labels[corev1.LabelMetadataName] = ns.Name
}

func prepareNamespace(ns *corev1.Namespace) {
	labelWithName(ns)
	ns.Status = corev1.NamespaceStatus{Phase: corev1.NamespaceActive}
	if !slices.Contains(ns.Spec.Finalizers, corev1.FinalizerKubernetes) {
		ns.Spec.Finalizers = append(ns.Spec.Finalizers, corev1.FinalizerKubernetes)
	}
}

func validateNamespace(ns *corev1.Namespace) field.ErrorList {
	var p problems
	for _, f := range ns.Spec.Finalizers {
		p.checkFinalizer(string(f), field.NewPath("spec", "finalizers"))
	}
	return p.list
}

func validateFinalize(ns, _ *corev1.Namespace) field.ErrorList {
	var p problems
	for i, f := range ns.Spec.Finalizers {
		p.checkFinalizer(string(f), field.NewPath("spec", "finalizers").Index(i))
	}
	return p.list
}

// checkFinalizer checks a name: one without a domain must be well known.
func (p *problems) checkFinalizer(name string, path *field.Path) {
	p.add(apivalidation.ValidateFinalizerName(name, path)...)
	switch {
	case strings.Contains(name, "/"):
	case name == string(corev1.FinalizerKubernetes), name == metav1.FinalizerOrphanDependents, name == metav1.FinalizerDeleteDependents:
	default:
		p.invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified")
	}
}

func validateNamespaceStatus(ns, _ *corev1.Namespace) field.ErrorList {
	var p problems
	path, phase := field.NewPath("status", "Phase"), ns.Status.Phase
	switch deleted := !ns.DeletionTimestamp.IsZero(); {
	case !deleted && phase != corev1.NamespaceActive:
		p.invalid(path, phase, "may only be 'Active' if `deletionTimestamp` is empty")
	case deleted && phase != corev1.NamespaceTerminating:
		p.invalid(path, phase, "may only be 'Terminating' if `deletionTimestamp` is not empty")
	}
	return p.list
}
