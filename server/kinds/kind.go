// Package kinds holds what the server knows of each built-in kind: names,
// defaults, validation, table columns, selectable fields, subresources.
//
// A kind is one value of type [Kind], declared in a file of its own, and all of
// its functions are pure. Everything else about serving a kind (verbs, patches,
// watches, managed fields) is the same for all kinds and lives elsewhere.
package kinds

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Kind is one resource. The zero value of a function field means "nothing
// special".
type Kind struct {
	// GVK is the version that is stored; objects are of it in all functions.
	GVK schema.GroupVersionKind
	// Resource is the plural, Singular the lower-case name.
	Resource, Singular string
	ShortNames         []string
	Categories         []string
	Namespaced         bool

	// New and NewList return empty objects of the stored version.
	New     func() runtime.Object
	NewList func() runtime.Object
	// Also are further versions in which the kind is served, in this group or
	// another (events are served in two).
	Also []Version

	// CreateOnly marks the reviews, which are answered and never stored: they
	// have the verb create only.
	CreateOnly bool

	// ValidName returns what is wrong with a name; prefix says that it is a
	// generateName. Nil wants a DNS subdomain.
	ValidName func(name string, prefix bool) []string
	// Deprecated is a warning that every answer carries.
	Deprecated string

	// HasStatus: the kind has the status subresource, its main endpoint ignores
	// the field Status and its status endpoint everything else.
	HasStatus bool
	// HasGeneration: metadata.generation counts the changes of what the user
	// asks for, that is all but metadata and status.
	HasGeneration bool
	// Scale, if set, is the scale subresource.
	Scale *Scale
	// Subresources are further ones, by their path below the object ("eviction");
	// what they do is the server's.
	Subresources []Subresource

	// CreateOnUpdate: a PUT of an object that does not exist creates it.
	CreateOnUpdate bool
	// NeedsRevision: a PUT without a resourceVersion is refused.
	NeedsRevision bool
	// DeleteReturnsObject: DELETE answers with the object instead of a Status.
	DeleteReturnsObject bool
	// Orphans: with no propagation policy given, deleting orphans dependents.
	Orphans bool
	// NoDeleteCollection: the kind does not have the verb deletecollection.
	NoDeleteCollection bool
	// StatusOnCreate: a create may set Status (a node registers with it), so it
	// is not emptied before PrepareCreate.
	StatusOnCreate bool

	// Default fills in what the user left out. It must be idempotent, and runs
	// on everything that is decoded from a request.
	Default func(obj runtime.Object)
	// SetRequester records in a new object who asks for it. It runs before
	// PrepareCreate and replaces what the user claims.
	SetRequester func(obj runtime.Object, user authenticationv1.UserInfo)
	// PrepareCreate sets what the system owns, after Default; metadata (uid,
	// creationTimestamp, generation) is filled in and Status is empty. Status
	// goes here.
	PrepareCreate func(obj runtime.Object)
	// PrepareUpdate carries over from old what the user may not change silently.
	PrepareUpdate func(obj, old runtime.Object)
	// PrepareStatus does the same for an update of the status subresource, after
	// all but Status and metadata have been carried over.
	PrepareStatus func(obj, old runtime.Object)
	// Validate checks the object but for metadata, which is checked for all
	// kinds alike.
	Validate func(obj runtime.Object) field.ErrorList
	// ChecksMetadata: the functions below check metadata, too.
	ChecksMetadata bool
	// ValidateCreate checks what holds for new objects only; Validate has run
	// before.
	ValidateCreate func(obj runtime.Object) field.ErrorList
	// ValidateUpdate checks what may change; Validate has run on obj before.
	ValidateUpdate func(obj, old runtime.Object) field.ErrorList
	// ValidateStatus checks an update of the status subresource.
	ValidateStatus func(obj, old runtime.Object) field.ErrorList
	// Warnings returns what the user should know; old is nil on create.
	Warnings func(obj, old runtime.Object) []string

	// Fields are the labels that field selectors may use, besides metadata.name
	// and metadata.namespace; FieldSet returns their values.
	Fields   []string
	FieldSet func(obj runtime.Object) fields.Set

	// Columns describe the table; Cells is one row of it. Nil means name and age.
	Columns []metav1.TableColumnDefinition
	Cells   func(obj runtime.Object, now metav1.Time) []any
	// RowConditions are the conditions of the object's table row.
	RowConditions func(obj runtime.Object) []metav1.TableRowCondition
}

// Version is a further version of a kind, with the ways from and to the stored
// version. The given object is not changed and may be shared by the result.
type Version struct {
	GVK         schema.GroupVersionKind
	New         func() runtime.Object
	NewList     func() runtime.Object
	FromStored  func(runtime.Object) (runtime.Object, error)
	ToStored    func(runtime.Object) (runtime.Object, error)
	FieldLabels map[string]string // field selector labels that differ: this version's -> the stored version's

	// If Validate is set, these three take the place of the kind's for requests
	// in this version. They are given objects of the stored version.
	Validate       func(obj runtime.Object) field.ErrorList
	ValidateCreate func(obj runtime.Object) field.ErrorList
	ValidateUpdate func(obj, old runtime.Object) field.ErrorList
}

// Subresource is a path below an object of a kind.
type Subresource struct {
	Name  string
	GVK   schema.GroupVersionKind // of the object that is sent or returned
	Verbs []string

	// Prepare and Validate are set on subresources through which part of the
	// object itself is updated: Prepare carries over from old all else, Validate
	// checks the result in place of the kind's functions.
	Prepare  func(obj, old runtime.Object)
	Validate func(obj, old runtime.Object) field.ErrorList
	// Untracked says that what is changed through it becomes nobody's field.
	Untracked bool
}

// Scale reads and writes a kind's replicas.
type Scale struct {
	// Check, if set, says why an object has no replicas to be read.
	Check func(obj runtime.Object) error
	Get   func(obj runtime.Object) (spec int32, status int32, selector string)
	Set   func(obj runtime.Object, replicas int32)
}

// GroupResource names the kind's resource.
func (k *Kind) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.GVK.Group, Resource: k.Resource}
}
