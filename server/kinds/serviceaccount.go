package kinds

import (
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func serviceAccountKind() *Kind {
	return &Kind{
		GVK:      corev1.SchemeGroupVersion.WithKind("ServiceAccount"),
		Resource: "serviceaccounts", Singular: "serviceaccount", ShortNames: []string{"sa"}, Namespaced: true,
		New: newOf[corev1.ServiceAccount], NewList: newOf[corev1.ServiceAccountList],
		DeleteReturnsObject: true,
		Subresources: []Subresource{
			{Name: "token", GVK: authenticationv1.SchemeGroupVersion.WithKind("TokenRequest"), Verbs: []string{"create"}},
		},
		PrepareCreate: each(keepSecretNames),
		PrepareUpdate: eachPair(func(a, _ *corev1.ServiceAccount) { keepSecretNames(a) }),
		Warnings:      warn(serviceAccountWarnings),
		Columns:       []metav1.TableColumnDefinition{nameColumn(), ageColumn()},
		Cells: cells(func(a *corev1.ServiceAccount, now metav1.Time) []any {
			return []any{a.Name, Age(a.CreationTimestamp, now)}
		}),
	}
}

// keepSecretNames drops all but the names of secrets, which are in the account's
// namespace anyway.
func keepSecretNames(a *corev1.ServiceAccount) {
	for i, ref := range a.Secrets {
		a.Secrets[i] = corev1.ObjectReference{Name: ref.Name}
	}
}

func serviceAccountWarnings(a, old *corev1.ServiceAccount) []string {
	const key = "kubernetes.io/enforce-mountable-secrets"
	if _, has := a.Annotations[key]; !has {
		return nil
	}
	if old != nil {
		if _, had := old.Annotations[key]; had {
			return nil
		}
	}
	return []string{fmt.Sprintf("metadata.annotations[%s]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets", key)}
}
