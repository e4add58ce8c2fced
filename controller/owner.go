package controller

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/client"
)

// SetController makes owner the controller of an object, in the object's owner
// references: the object is deleted with it, and [Owns] maps it to it. An object has
// one controller; if it has another, the error is [ErrOwned]. Objects in a namespace
// can be owned by objects of the same namespace and by those outside of namespaces,
// and the latter only by the latter; otherwise it is [ErrOwnerScope].
//
// The owner has to exist, for its UID is what counts. The source tells its kind if
// it does not say it itself.
func SetController(s client.Source, owner, obj client.Object) error {
	if c := metav1.GetControllerOfNoCopy(obj); c != nil && c.UID != owner.GetUID() {
		return fmt.Errorf("make %s the controller of %s: %s %s is: %w", client.KeyOf(owner), client.KeyOf(obj), c.Kind, c.Name, ErrOwned)
	}
	yes := true
	return setOwner(s, owner, obj, metav1.OwnerReference{Controller: &yes, BlockOwnerDeletion: &yes})
}

// Control is [SetController] for an object that may exist: if it does and owner is
// not its controller, the error is [ErrOwned], also if it has none. So nothing is
// taken over that somebody made by hand. It is for the function of [CreateOrUpdate].
func Control(s client.Source, owner, obj client.Object) error {
	if obj.GetUID() != "" && metav1.GetControllerOfNoCopy(obj) == nil {
		return fmt.Errorf("%s exists, and is not controlled by %s: %w", client.KeyOf(obj), client.KeyOf(owner), ErrOwned)
	}
	return SetController(s, owner, obj)
}

// SetOwner makes owner one of the owners of an object, as [SetController] does, but
// not its controller.
func SetOwner(s client.Source, owner, obj client.Object) error {
	return setOwner(s, owner, obj, metav1.OwnerReference{})
}

func setOwner(s client.Source, owner, obj client.Object, ref metav1.OwnerReference) error {
	kind, err := s.Conn().KindOf(owner)
	if err != nil {
		return fmt.Errorf("own %s: %w", client.KeyOf(obj), err)
	}
	if owner.GetUID() == "" {
		return fmt.Errorf("own %s: %s %s has no UID: create it first: %w", client.KeyOf(obj), kind.Kind, client.KeyOf(owner), ErrOwnerScope)
	}
	if ns := owner.GetNamespace(); ns != "" && ns != obj.GetNamespace() {
		return fmt.Errorf("%s %s cannot own %q in namespace %q: %w", kind.Kind, client.KeyOf(owner), obj.GetName(), obj.GetNamespace(), ErrOwnerScope)
	}
	ref.APIVersion, ref.Kind = kind.ToAPIVersionAndKind()
	ref.Name, ref.UID = owner.GetName(), owner.GetUID()
	refs := append([]metav1.OwnerReference(nil), obj.GetOwnerReferences()...)
	for i := range refs {
		if sameOwner(refs[i], ref) {
			refs[i] = ref
			obj.SetOwnerReferences(refs)
			return nil
		}
	}
	obj.SetOwnerReferences(append(refs, ref))
	return nil
}

// sameOwner compares what names an owner; its version may change.
func sameOwner(a, b metav1.OwnerReference) bool {
	av, errA := schema.ParseGroupVersion(a.APIVersion)
	bv, errB := schema.ParseGroupVersion(b.APIVersion)
	return errA == nil && errB == nil && av.Group == bv.Group && a.Kind == b.Kind && a.Name == b.Name
}

// Controls reports whether owner is the controller of an object.
func Controls(owner, obj client.Object) bool {
	c := metav1.GetControllerOfNoCopy(obj)
	return c != nil && c.UID == owner.GetUID()
}
