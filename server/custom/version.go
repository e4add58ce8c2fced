package custom

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/even-keel/evenkeel/server/kinds"
	valueschema "github.com/even-keel/evenkeel/server/schema"
)

// Version is a custom resource in one of its versions.
type Version struct {
	// Kind is what it has in common with built-in kinds. Its objects are
	// unstructured and of this version.
	Kind *kinds.Kind
	// ListKind is the kind of lists.
	ListKind string
	// Stored is the version in which objects are stored.
	Stored schema.GroupVersion

	definition *Definition
	spec       VersionSpec
	schema     func() (*valueschema.Schema, error)
	converter  func() (Converter, error)
	siblings   map[string]*Version
}

// Versions returns the versions that a definition serves or stores, by name,
// under the names that have been accepted. Nothing is read or compiled yet.
func (d *Definition) Versions() map[string]*Version {
	all := map[string]*Version{}
	converter := sync.OnceValues(d.newConverter)
	for _, spec := range d.Spec.Versions {
		v := &Version{definition: d, spec: spec, converter: converter, siblings: all}
		v.schema = sync.OnceValues(func() (*valueschema.Schema, error) { return d.schemaOf(spec.Name) })
		v.ListKind = d.Status.AcceptedNames.ListKind
		v.Stored = schema.GroupVersion{Group: d.Spec.Group, Version: d.storage()}
		v.Kind = v.kind()
		all[spec.Name] = v
	}
	return all
}

// Served reports whether clients can ask for this version.
func (v *Version) Served() bool { return v.spec.Served }

// Definition returns what the version is of.
func (v *Version) Definition() *Definition { return v.definition }

// Schema returns the version's schema. An error is one of the server: no
// definition that has been accepted is without a good one.
func (v *Version) Schema() (*valueschema.Schema, error) { return v.schema() }

// Siblings returns the schemas of all versions of the resource.
func (v *Version) Siblings() map[string]*Version { return v.siblings }

func (v *Version) gvk() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: v.definition.Spec.Group, Version: v.spec.Name, Kind: v.definition.Status.AcceptedNames.Kind}
}

func (v *Version) kind() *kinds.Kind {
	names := v.definition.Status.AcceptedNames
	k := &kinds.Kind{
		GVK: v.gvk(), Resource: names.Plural, Singular: names.Singular, ShortNames: names.ShortNames, Categories: names.Categories,
		Namespaced:    v.definition.Namespaced(),
		New:           func() runtime.Object { return v.newObject() },
		NewList:       func() runtime.Object { return v.newList() },
		Deprecated:    v.deprecation(),
		HasGeneration: true, NeedsRevision: true,
		HasStatus:      v.spec.Subresources.Status != nil,
		Default:        v.setDefaults,
		ValidateCreate: v.validateNew,
		ValidateUpdate: v.validateUpdate,
		ValidateStatus: v.validateStatus,
		Warnings:       v.warnings,
	}
	if v.spec.Subresources.Scale != nil {
		k.Scale = v.scale()
	}
	v.addFields(k)
	v.addColumns(k)
	return k
}

func (v *Version) newObject() *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(v.gvk())
	return u
}

func (v *Version) newList() *unstructured.UnstructuredList {
	l := &unstructured.UnstructuredList{Object: map[string]any{}}
	l.SetGroupVersionKind(v.gvk().GroupVersion().WithKind(v.ListKind))
	return l
}

// deprecation is the warning that goes with each answer, if there is one.
func (v *Version) deprecation() string {
	if !v.spec.Deprecated {
		return ""
	}
	if v.spec.DeprecationWarning != nil {
		return *v.spec.DeprecationWarning
	}
	d := v.definition
	text := fmt.Sprintf("%s/%s %s is deprecated", d.Spec.Group, v.spec.Name, d.Spec.Names.Kind)
	var better []string
	for _, other := range d.Spec.Versions {
		if other.Served && !other.Deprecated && version.CompareKubeAwareVersionStrings(v.spec.Name, other.Name) < 0 {
			better = append(better, other.Name)
		}
	}
	if len(better) == 0 {
		return text
	}
	newest := slices.MaxFunc(better, version.CompareKubeAwareVersionStrings)
	return text + fmt.Sprintf("; use %s/%s %s", d.Spec.Group, newest, d.Spec.Names.Kind)
}

func (v *Version) setDefaults(obj runtime.Object) {
	if s, err := v.schema(); err == nil {
		s.Default(obj.(*unstructured.Unstructured).Object)
	}
}

// Coerce makes of a decoded object one of this version, and returns the paths of
// the fields that the version does not have.
func (v *Version) Coerce(u *unstructured.Unstructured) (unknown []string, err error) {
	s, err := v.schema()
	if err != nil {
		return nil, err
	}
	if u.GetKind() != v.Kind.GVK.Kind { // validation will say so
		return nil, nil
	}
	return s.Coerce(u)
}

// Converter converts objects between the versions of one resource.
type Converter interface {
	Convert(ctx context.Context, objs []*unstructured.Unstructured, to schema.GroupVersion) ([]*unstructured.Unstructured, error)
}

// Webhooks returns a converter that asks the webhook of a definition, which has
// no schemas.
type Webhooks func(crd *apiextensionsv1.CustomResourceDefinition) (Converter, error)

// renaming is the conversion of versions that differ in nothing but the name.
type renaming struct{}

func (renaming) Convert(_ context.Context, objs []*unstructured.Unstructured, to schema.GroupVersion) ([]*unstructured.Unstructured, error) {
	out := make([]*unstructured.Unstructured, len(objs))
	for i, u := range objs {
		out[i] = u.DeepCopy()
		out[i].SetAPIVersion(to.String())
	}
	return out, nil
}

func (d *Definition) newConverter() (Converter, error) {
	c := d.Spec.Conversion
	if c == nil || c.Strategy != apiextensionsv1.WebhookConverter {
		return renaming{}, nil
	}
	if d.calls == nil {
		return nil, fmt.Errorf("%s is converted by a webhook, and this server calls none", d.Metadata.Name)
	}
	return d.calls(d.Outline())
}

// Convert brings objects into a version of the resource. Those that are of it
// already are returned as they are; none is changed.
func (v *Version) Convert(ctx context.Context, objs []*unstructured.Unstructured, to schema.GroupVersion) ([]*unstructured.Unstructured, error) {
	target := v.siblings[to.Version]
	if target == nil || to.Group != v.definition.Spec.Group {
		return nil, fmt.Errorf("request to convert CR to an invalid group/version: %s", to)
	}
	wanted := to.String()
	out := slices.Clone(objs)
	var others []*unstructured.Unstructured
	var at []int
	for i, u := range objs {
		if u.GetAPIVersion() == wanted {
			continue
		}
		if from := u.GroupVersionKind(); from.Group != to.Group || v.siblings[from.Version] == nil {
			return nil, fmt.Errorf("request to convert CR from an invalid group/version: %s", from.GroupVersion())
		}
		others, at = append(others, u), append(at, i)
	}
	if len(others) == 0 {
		return out, nil
	}
	converter, err := v.converter()
	if err != nil {
		return nil, err
	}
	converted, err := converter.Convert(ctx, others, to)
	if err != nil {
		return nil, err
	}
	s, err := target.schema()
	if err != nil {
		return nil, err
	}
	for i, u := range converted {
		if _, err := s.Coerce(u); err != nil {
			return nil, fmt.Errorf("conversion of %s to %s: %w", strings.TrimPrefix(u.GetNamespace()+"/"+u.GetName(), "/"), to, err)
		}
		out[at[i]] = u
	}
	return out, nil
}

// FromStored makes objects of this version of what was stored: malformed
// metadata goes, what has come to have a default since gets it, and other
// versions are converted. Defaults are those of the version that was stored: none
// are filled in after a conversion.
func (v *Version) FromStored(ctx context.Context, objs []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	for _, u := range objs {
		from := v.siblings[u.GroupVersionKind().Version]
		if from == nil {
			continue // Convert refuses it
		}
		s, err := from.schema()
		if err != nil {
			return nil, err
		}
		if err := s.Repair(u); err != nil {
			return nil, err
		}
		s.Default(u.Object)
	}
	return v.Convert(ctx, objs, v.Kind.GVK.GroupVersion())
}
