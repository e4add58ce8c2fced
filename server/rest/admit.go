package rest

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// admitNew refuses what cannot be created where it is to be.
func (a *API) admitNew(c *call, m metav1.Object) error {
	if !c.res.kind.Namespaced {
		return nil
	}
	namespaces := a.registry.stored("", "namespaces")
	if namespaces == nil {
		return nil
	}
	o := namespaces.objects.Get("", m.GetNamespace())
	if o == nil { // or made by another server, just now
		if err := a.hub.Sync(c.ctx()); err != nil {
			return err
		}
		o = namespaces.objects.Get("", m.GetNamespace())
	}
	if o == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, m.GetNamespace())
	}
	obj, err := namespaces.decoded(o)
	if err != nil {
		return err
	}
	if obj.(*corev1.Namespace).Status.Phase != corev1.NamespaceTerminating {
		return nil
	}
	return terminating(c.res, m)
}

// admitDelete refuses to delete the namespaces that the system cannot be without.
func (c *call) admitDelete() error {
	if c.res.storage != "namespaces" {
		return nil
	}
	switch c.target.name {
	case metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic:
		return apierrors.NewForbidden(c.res.groupResource(), c.target.name, errors.New("this namespace may not be deleted"))
	}
	return nil
}

func terminating(r *resource, m metav1.Object) error {
	err := apierrors.NewForbidden(r.groupResource(), m.GetName(),
		fmt.Errorf("unable to create new content in namespace %s because it is being terminated", m.GetNamespace()))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type:    corev1.NamespaceTerminatingCause,
		Message: fmt.Sprintf("namespace %s is being terminated", m.GetNamespace()),
		Field:   "metadata.namespace",
	})
	return err
}
