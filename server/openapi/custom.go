package openapi

import (
	"cmp"
	"slices"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// FromDefinition returns the resources of a definition, one for each version
// that is served. It costs nothing: models are made of the definition's schemas
// when a document is asked for. Until then the definition is kept, and nobody
// may change it.
//
// Definitions may share a group-version; whoever calls [Docs.Update] puts their
// resources together.
func FromDefinition(crd *apiextensionsv1.CustomResourceDefinition) []Resource {
	return FromOutline(crd, func(version string) *apiextensionsv1.JSONSchemaProps {
		for _, v := range crd.Spec.Versions {
			if v.Name == version && v.Schema != nil {
				return v.Schema.OpenAPIV3Schema
			}
		}
		return nil
	})
}

// FromOutline is [FromDefinition] for a definition that is kept without its
// schemas, which are by far the most of it: schemaOf returns that of a version
// whenever it is needed, nil for none.
func FromOutline(crd *apiextensionsv1.CustomResourceDefinition, schemaOf func(version string) *apiextensionsv1.JSONSchemaProps) []Resource {
	var found []Resource
	for i := range crd.Spec.Versions {
		if crd.Spec.Versions[i].Served {
			found = append(found, customResource{crd, i, schemaOf}.resource())
		}
	}
	return found
}

// customResource is one version of a definition.
type customResource struct {
	crd      *apiextensionsv1.CustomResourceDefinition
	index    int
	schemaOf func(version string) *apiextensionsv1.JSONSchemaProps
}

func (c customResource) resource() Resource {
	names, version := &c.crd.Spec.Names, c.version()
	return Resource{
		GVK:          schema.GroupVersionKind{Group: c.crd.Spec.Group, Version: version.Name, Kind: names.Kind},
		Plural:       names.Plural,
		Namespaced:   c.crd.Spec.Scope == apiextensionsv1.NamespaceScoped,
		Verbs:        allVerbs,
		Object:       customObject{c},
		List:         customList{c},
		ListKind:     c.listKind(),
		JSONOnly:     true,
		Subresources: c.subresources(),
	}
}

func (c customResource) version() *apiextensionsv1.CustomResourceDefinitionVersion {
	return &c.crd.Spec.Versions[c.index]
}

func (c customResource) listKind() string {
	return cmp.Or(c.crd.Spec.Names.ListKind, c.crd.Spec.Names.Kind+"List")
}

func (c customResource) subresources() []Subresource {
	of := c.version().Subresources
	if of == nil {
		return nil
	}
	var found []Subresource
	if of.Status != nil {
		found = append(found, Subresource{
			Name: "status", Verbs: objectVerbs, Object: customObject{c},
			GVK: schema.GroupVersionKind{Group: c.crd.Spec.Group, Version: c.version().Name, Kind: c.crd.Spec.Names.Kind},
		})
	}
	if of.Scale != nil {
		found = append(found, Subresource{
			Name: "scale", Verbs: objectVerbs,
			GVK:    autoscalingv1.SchemeGroupVersion.WithKind("Scale"),
			Object: GoType(func() runtime.Object { return &autoscalingv1.Scale{} }),
		})
	}
	return found
}

// modelName is the name of the model of a kind: com.example.stable.v1.CronTab
// for the kind CronTab of stable.example.com/v1.
func (c customResource) modelName(kind string) string {
	labels := strings.Split(c.crd.Spec.Group, ".")
	slices.Reverse(labels)
	return strings.Join(labels, ".") + "." + c.version().Name + "." + kind
}

// selectable is the value of the extension that names the fields of selectors.
func (c customResource) selectable() string {
	if len(c.version().SelectableFields) == 0 {
		return ""
	}
	var w jsonWriter
	w.open('[')
	for _, f := range c.version().SelectableFields {
		w.open('{')
		w.field("fieldPath", strings.TrimPrefix(f.JSONPath, "."))
		w.close('}')
	}
	w.close(']')
	return string(w.b)
}

// customObject is the Schema of a custom resource.
type customObject struct{ customResource }

func (c customObject) define(m *models) string {
	name := c.modelName(c.crd.Spec.Names.Kind)
	if m.byName[name] == nil {
		m.byName[name] = c.model(m)
	}
	return name
}

// model returns the model of the version. As in the real server, one that takes
// any field says nothing of any in version 2: kubectl would allow no other.
func (c customObject) model(m *models) *model {
	object := &model{kind: "object"}
	of := c.schemaOf(c.version().Name)
	takesAll := of != nil && preserves(of) || c.crd.Spec.PreserveUnknownFields
	if of != nil && !(m.v2 && takesAll) {
		s := customSchemas{models: m}
		object = s.model(of)
		s.addObjectFields(object, "", "")
	}
	object.extend(extSelectable, c.selectable())
	return object
}

// customList is the Schema of the list of a custom resource.
type customList struct{ customResource }

func (c customList) define(m *models) string {
	name := c.modelName(c.listKind())
	if m.byName[name] == nil {
		m.byName[name] = c.model(m)
	}
	return name
}

func (c customList) model(m *models) *model {
	doc := docOf(metav1.PartialObjectMetadataList{})
	list := &model{
		kind:        "object",
		description: c.listKind() + " is a list of " + c.crd.Spec.Names.Kind,
		required:    []string{"items"},
	}
	items := &model{
		kind: "array", items: &model{ref: customObject(c).define(m)},
		description: "List of " + c.crd.Spec.Names.Plural + ". More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md",
	}
	list.set("apiVersion", typeMetaField("apiVersion", ""))
	list.set("items", items)
	list.set("kind", typeMetaField("kind", ""))
	list.set("metadata", &model{ref: defined[metav1.ListMeta](m), description: doc["metadata"]})
	list.extend(extSelectable, c.selectable())
	return list
}

// typeMetaField is the model of apiVersion or kind, described as said or, by
// default, as the field of all objects.
func typeMetaField(name, description string) *model {
	return &model{kind: "string", description: cmp.Or(description, docOf(metav1.TypeMeta{})[name])}
}

// set sets a property; properties stay sorted.
func (d *model) set(name string, p *model) {
	at, found := slices.BinarySearchFunc(d.properties, name, func(p property, name string) int {
		return strings.Compare(p.name, name)
	})
	if found {
		d.properties[at].model = p
		return
	}
	d.properties = slices.Insert(d.properties, at, property{name, p})
}
