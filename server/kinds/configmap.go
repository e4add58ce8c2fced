package kinds

import (
	"bytes"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func configMapKind() *Kind {
	return &Kind{
		GVK:      corev1.SchemeGroupVersion.WithKind("ConfigMap"),
		Resource: "configmaps", Singular: "configmap", ShortNames: []string{"cm"}, Namespaced: true,
		New: newOf[corev1.ConfigMap], NewList: newOf[corev1.ConfigMapList],
		Validate:       check(validateConfigMap),
		ValidateUpdate: checkPair(validateConfigMapUpdate),
		Columns:        []metav1.TableColumnDefinition{nameColumn(), column("Data", "How many keys there are."), ageColumn()},
		Cells: cells(func(m *corev1.ConfigMap, now metav1.Time) []any {
			return []any{m.Name, int64(len(m.Data) + len(m.BinaryData)), Age(m.CreationTimestamp, now)}
		}),
	}
}

func validateConfigMap(m *corev1.ConfigMap) field.ErrorList {
	var p problems
	data, binary, size := field.NewPath("data"), field.NewPath("binaryData"), 0
	for key, v := range m.Data {
		p.invalid(data.Key(key), key, validation.IsConfigMapKey(key)...)
		if _, twice := m.BinaryData[key]; twice {
			p.invalid(data.Key(key), key, "duplicate of key present in binaryData")
		}
		size += len(v)
	}
	for key, v := range m.BinaryData {
		p.invalid(binary.Key(key), key, validation.IsConfigMapKey(key)...)
		size += len(v)
	}
	if size > corev1.MaxSecretSize {
		p.add(field.TooLong(field.NewPath(""), "", corev1.MaxSecretSize))
	}
	return p.list
}

const frozen = "field is immutable when `immutable` is set"

func validateConfigMapUpdate(m, old *corev1.ConfigMap) field.ErrorList {
	var p problems
	if !isTrue(old.Immutable) {
		return nil
	}
	if !isTrue(m.Immutable) {
		p.forbidden(field.NewPath("immutable"), frozen)
	}
	if !maps.Equal(m.Data, old.Data) {
		p.forbidden(field.NewPath("data"), frozen)
	}
	if !maps.EqualFunc(m.BinaryData, old.BinaryData, bytes.Equal) {
		p.forbidden(field.NewPath("binaryData"), frozen)
	}
	return p.list
}

func isTrue(b *bool) bool { return b != nil && *b }
