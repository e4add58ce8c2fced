package kinds

import (
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func bindingKind() *Kind {
	return &Kind{
		GVK:      corev1.SchemeGroupVersion.WithKind("Binding"),
		Resource: "bindings", Singular: "binding", Namespaced: true,
		New:        newOf[corev1.Binding],
		CreateOnly: true,
		Validate:   check(validateBinding),
	}
}

// validateBinding checks what binds a pod to a node.
func validateBinding(b *corev1.Binding) field.ErrorList {
	var p problems
	kind, name := field.NewPath("target", "kind"), field.NewPath("target", "name")
	isNode := b.Target.Kind == "" || b.Target.Kind == "Node"
	if !isNode {
		p.add(field.NotSupported(kind, b.Target.Kind, []string{"Node", "<empty>"}))
	}
	if b.Target.Name == "" {
		p.required(name, "")
	} else if isNode {
		p.invalid(name, b.Target.Name, apivalidation.NameIsDNSSubdomain(b.Target.Name, false)...)
	}
	return p.list
}
