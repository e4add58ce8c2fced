package rest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/even-keel/evenkeel/server/kinds"
)

// generatedSuffix is how many characters a generated name gets.
const generatedSuffix = 5

func accessor(obj runtime.Object) metav1.Object {
	m, err := meta.Accessor(obj)
	if err != nil {
		panic(fmt.Sprintf("object without metadata: %T", obj)) // no kind has such a type
	}
	return m
}

// generateName makes a name of a prefix.
func generateName(base string) string {
	const longest = 63 - generatedSuffix
	if len(base) > longest {
		base = base[:longest]
	}
	return base + rand.String(generatedSuffix)
}

// fillSystemFields sets what nobody but the server may set on a new object.
func (c *call) fillSystemFields(m metav1.Object) {
	wipeSystemFields(m)
	m.SetUID(uuid.NewUUID())
	m.SetCreationTimestamp(metav1.NewTime(c.api.now()))
	if c.res.kind.HasGeneration {
		m.SetGeneration(1)
	}
}

// wipeSystemFields forgets what clients say about what is the server's to say.
func wipeSystemFields(m metav1.Object) {
	m.SetUID("")
	m.SetCreationTimestamp(metav1.Time{})
	m.SetDeletionTimestamp(nil)
	m.SetDeletionGracePeriodSeconds(nil)
	m.SetSelfLink("")
}

// dedupOwners drops owners that are named twice; when says after what.
func (c *call) dedupOwners(m metav1.Object, when string) {
	owners := m.GetOwnerReferences()
	var kept []metav1.OwnerReference
	var twice []string
	for i, o := range owners {
		if slices.ContainsFunc(owners[:i], func(p metav1.OwnerReference) bool { return equality.Semantic.DeepEqual(o, p) }) {
			twice = append(twice, string(o.UID))
		} else {
			kept = append(kept, o)
		}
	}
	if len(twice) == 0 {
		return
	}
	m.SetOwnerReferences(kept)
	slices.Sort(twice)
	c.warn(".metadata.ownerReferences contains duplicate entries" + when + "; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: " + strings.Join(slices.Compact(twice), ", "))
}

// checkNamespace makes an object's namespace that of the request.
func (c *call) checkNamespace(m metav1.Object) error {
	want := c.target.namespace
	if !c.res.kind.Namespaced {
		want = ""
	}
	switch m.GetNamespace() {
	case want:
	case "":
		m.SetNamespace(want)
	default:
		if !c.res.kind.Namespaced {
			m.SetNamespace("")
			return nil
		}
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	return nil
}

// checkName refuses an object of another name than the request's path has.
func (c *call) checkName(m metav1.Object) error {
	if m.GetName() == "" {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s based on URL) was undeterminable: name must be provided", c.target.name))
	}
	if m.GetName() != c.target.name {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", m.GetName(), c.target.name))
	}
	return nil
}

func (r *resource) validName() validation.ValidateNameFunc {
	if r.kind.ValidName != nil {
		return r.kind.ValidName
	}
	return validation.NameIsDNSSubdomain
}

// validateMeta checks metadata as kinds do: finalizers without a domain are
// those that the system knows.
func (r *resource) validateMeta(m metav1.Object) field.ErrorList {
	errs := validation.ValidateObjectMetaAccessor(m, r.kind.Namespaced, r.validName(), metadataPath)
	if r.custom != nil { // which are warned of finalizers instead
		return errs
	}
	return append(errs, validateFinalizers(m)...)
}

func validateFinalizers(m metav1.Object) field.ErrorList {
	var errs field.ErrorList
	for i, name := range m.GetFinalizers() {
		switch name {
		case string(corev1.FinalizerKubernetes), metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents:
			continue
		}
		if !strings.Contains(name, "/") {
			errs = append(errs, field.Invalid(metadataPath.Child("finalizers").Index(i), name, "name is neither a standard finalizer name nor is it fully qualified"))
		}
	}
	return errs
}

// soundNames reports whether validateMeta finds nothing, for metadata of which it
// is known that any object may have it.
func (r *resource) soundNames(m metav1.Object) bool {
	valid := r.validName()
	if len(valid(m.GetName(), false)) > 0 || (m.GetGenerateName() != "" && len(valid(m.GetGenerateName(), true)) > 0) {
		return false
	}
	return len(validateFinalizers(m)) == 0
}

var metadataPath = field.NewPath("metadata")

// validateNew checks a new object, first as its kind, then as any object.
func (r *resource) validateNew(obj runtime.Object) error {
	m := accessor(obj)
	var errs field.ErrorList
	if !r.kind.ChecksMetadata {
		errs = r.validateMeta(m)
	}
	rules := r.rules()
	if rules.validate != nil {
		errs = append(errs, rules.validate(obj)...)
	}
	if rules.create != nil {
		errs = append(errs, rules.create(obj)...)
	}
	if len(errs) == 0 {
		errs = validation.ValidateObjectMetaAccessor(m, r.kind.Namespaced, path.ValidatePathSegmentName, metadataPath)
	}
	return r.invalid(m.GetName(), errs)
}

// validateChange checks a changed object. As in the real server, what is wrong
// with metadata is found twice: for any object, and for the kind.
func (r *resource) validateChange(obj, old runtime.Object, subresource string) error {
	m, oldMeta := accessor(obj), accessor(old)
	errs := validation.ValidateObjectMetaAccessor(m, r.kind.Namespaced, path.ValidatePathSegmentName, metadataPath)
	sound := len(errs) == 0
	if !sound || !staysItself(m, oldMeta) {
		changed := validation.ValidateObjectMetaAccessorUpdate(m, oldMeta, metadataPath)
		errs = append(errs, changed...)
		if !r.kind.ChecksMetadata {
			errs = append(errs, changed...)
		}
	}
	if sub := r.subresource(subresource); sub != nil && sub.Validate != nil {
		return r.invalid(m.GetName(), append(errs, sub.Validate(obj, old)...))
	}
	if subresource == "status" {
		if r.kind.ValidateStatus != nil {
			errs = append(errs, r.kind.ValidateStatus(obj, old)...)
		}
		return r.invalid(m.GetName(), errs)
	}
	if r.custom == nil && !r.kind.ChecksMetadata && (!sound || !r.soundNames(m)) {
		errs = append(errs, r.validateMeta(m)...)
	}
	rules := r.rules()
	if rules.validate != nil {
		errs = append(errs, rules.validate(obj)...)
	}
	if rules.update != nil {
		errs = append(errs, rules.update(obj, old)...)
	}
	return r.invalid(m.GetName(), errs)
}

// staysItself reports whether validation finds nothing wrong with a change of
// metadata, for metadata of which it is known that any object may have it. Of
// objects that are being deleted it does not know.
func staysItself(m, old metav1.Object) bool {
	created, before := m.GetCreationTimestamp(), old.GetCreationTimestamp()
	return m.GetResourceVersion() != "" && m.GetGeneration() >= old.GetGeneration() &&
		m.GetName() == old.GetName() && m.GetNamespace() == old.GetNamespace() && m.GetUID() == old.GetUID() &&
		created.Equal(&before) &&
		m.GetDeletionTimestamp() == nil && old.GetDeletionTimestamp() == nil &&
		m.GetDeletionGracePeriodSeconds() == nil && old.GetDeletionGracePeriodSeconds() == nil
}

// rules are what objects are checked by: the kind's, or the version's own.
type rules struct {
	validate, create func(runtime.Object) field.ErrorList
	update           func(obj, old runtime.Object) field.ErrorList
}

func (r *resource) rules() rules {
	if v := r.version; v != nil && v.Validate != nil {
		return rules{validate: v.Validate, create: v.ValidateCreate, update: v.ValidateUpdate}
	}
	return rules{validate: r.kind.Validate, create: r.kind.ValidateCreate, update: r.kind.ValidateUpdate}
}

// subresource returns one of the kind's own, or nil.
func (r *resource) subresource(name string) *kinds.Subresource {
	for i := range r.kind.Subresources {
		if s := &r.kind.Subresources[i]; s.Name == name {
			return s
		}
	}
	return nil
}

func (r *resource) invalid(name string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(r.groupKind(), name, errs)
}

// statusField is the Status of a typed object; not valid if it has none.
func statusField(obj runtime.Object) reflect.Value {
	return reflect.ValueOf(obj).Elem().FieldByName("Status")
}

// keepStatus gives an object the status of another; nil empties it.
func keepStatus(obj, old runtime.Object) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		keepCustomStatus(u, old)
		return
	}
	f := statusField(obj)
	if !f.IsValid() {
		return
	}
	if old == nil {
		f.SetZero()
		return
	}
	f.Set(statusField(old.DeepCopyObject()))
}

func keepCustomStatus(u *unstructured.Unstructured, old runtime.Object) {
	if old != nil {
		if status, ok := old.(*unstructured.Unstructured).Object["status"]; ok {
			u.Object["status"] = runtime.DeepCopyJSONValue(status)
			return
		}
	}
	delete(u.Object, "status")
}

// sameIdentity refuses a change that was meant for an object of the same name.
func (c *call) sameIdentity(m, old metav1.Object) error {
	if m.GetUID() != "" && m.GetUID() != old.GetUID() {
		return apierrors.NewConflict(c.res.groupResource(), c.target.name, preconditionUID(c, m.GetUID(), old.GetUID()))
	}
	return nil
}

// preconditionUID has the words of the real server, key of etcd included.
func preconditionUID(c *call, want, got types.UID) error {
	key := "/registry/" + strings.Join(nonEmpty(c.res.kind.Resource, c.target.namespace, c.target.name), "/")
	return fmt.Errorf("StorageError: invalid object, Code: 4, Key: %s, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: %s, UID in object meta: %s", key, want, got)
}

func nonEmpty(parts ...string) []string {
	var out []string
	for _, p := range parts {
		if p != "" {
			out = append(out, p)
		}
	}
	return out
}
