package kinds

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func podTemplateKind() *Kind {
	return &Kind{
		GVK:      corev1.SchemeGroupVersion.WithKind("PodTemplate"),
		Resource: "podtemplates", Singular: "podtemplate", Namespaced: true,
		New: newOf[corev1.PodTemplate], NewList: newOf[corev1.PodTemplateList],
		HasGeneration: true, DeleteReturnsObject: true,
		Default: each(func(t *corev1.PodTemplate) { defaultPodSpec(&t.Template.Spec) }),
		Validate: check(func(t *corev1.PodTemplate) field.ErrorList {
			return validatePodTemplate(&t.Template, field.NewPath("template"))
		}),
		Warnings: warn(func(t, old *corev1.PodTemplate) []string {
			if old != nil && equality.Semantic.DeepEqual(t.Template, old.Template) {
				return nil
			}
			return podTemplateWarnings(&t.Template, field.NewPath("template"))
		}),
		Columns: []metav1.TableColumnDefinition{nameColumn(), column("Containers", "Names of the template's containers."),
			column("Images", "Images of the template's containers."), column("Pod Labels", "Labels of pods made from the template.")},
		Cells: cells(func(t *corev1.PodTemplate, _ metav1.Time) []any {
			names, images := containerCells(t.Template.Spec.Containers)
			return []any{t.Name, names, images, labels.FormatLabels(t.Template.Labels)}
		}),
	}
}
