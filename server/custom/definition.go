package custom

import (
	"encoding/json"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	valueschema "github.com/even-keel/evenkeel/server/schema"
)

// Definition is a CustomResourceDefinition without the schemas of its versions.
type Definition struct {
	Metadata Metadata                                       `json:"metadata"`
	Spec     Spec                                           `json:"spec"`
	Status   apiextensionsv1.CustomResourceDefinitionStatus `json:"status"`

	text  func() []byte
	pool  *valueschema.Pool
	calls Webhooks
}

// Metadata is what matters here of a definition's metadata.
type Metadata struct {
	Name              string            `json:"name"`
	UID               types.UID         `json:"uid"`
	Generation        int64             `json:"generation"`
	Annotations       map[string]string `json:"annotations"`
	Finalizers        []string          `json:"finalizers"`
	DeletionTimestamp *metav1.Time      `json:"deletionTimestamp"`
}

// Spec is what a definition defines.
type Spec struct {
	Group                 string                                        `json:"group"`
	Names                 apiextensionsv1.CustomResourceDefinitionNames `json:"names"`
	Scope                 apiextensionsv1.ResourceScope                 `json:"scope"`
	Versions              []VersionSpec                                 `json:"versions"`
	Conversion            *apiextensionsv1.CustomResourceConversion     `json:"conversion"`
	PreserveUnknownFields bool                                          `json:"preserveUnknownFields"`
}

// VersionSpec is one version, but for its schema.
type VersionSpec struct {
	Name               string                                           `json:"name"`
	Served             bool                                             `json:"served"`
	Storage            bool                                             `json:"storage"`
	Deprecated         bool                                             `json:"deprecated"`
	DeprecationWarning *string                                          `json:"deprecationWarning"`
	Subresources       apiextensionsv1.CustomResourceSubresources       `json:"subresources"`
	Columns            []apiextensionsv1.CustomResourceColumnDefinition `json:"additionalPrinterColumns"`
	SelectableFields   []apiextensionsv1.SelectableField                `json:"selectableFields"`
}

// Read reads a definition. text returns its JSON, and is called again for each
// schema that is needed; equal schemas are shared through the pool. Objects of
// definitions that ask for it are converted through webhooks.
func Read(text func() []byte, pool *valueschema.Pool, webhooks Webhooks) (*Definition, error) {
	d := &Definition{text: text, pool: pool, calls: webhooks}
	if err := json.Unmarshal(text(), d); err != nil {
		return nil, fmt.Errorf("read a custom resource definition: %w", err)
	}
	return d, nil
}

// Outline returns the definition in the API's own type, without its schemas and
// under the names that have been accepted.
func (d *Definition) Outline() *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: d.Metadata.Name}}
	crd.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: d.Spec.Group, Names: d.Status.AcceptedNames, Scope: d.Spec.Scope,
		Conversion: d.Spec.Conversion, PreserveUnknownFields: d.Spec.PreserveUnknownFields,
	}
	for _, v := range d.Spec.Versions {
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: v.Name, Served: v.Served, Storage: v.Storage, Subresources: &v.Subresources, SelectableFields: v.SelectableFields,
		})
	}
	return crd
}

// Props reads the schema of a version as it was written; nil if it has none.
func (d *Definition) Props(version string) (*apiextensionsv1.JSONSchemaProps, error) {
	text, err := d.schemaText(version)
	if err != nil || len(text) == 0 {
		return nil, err
	}
	props := &apiextensionsv1.JSONSchemaProps{}
	if err := json.Unmarshal(text, props); err != nil {
		return nil, fmt.Errorf("read the schema of version %s of %s: %w", version, d.Metadata.Name, err)
	}
	return props, nil
}

// GroupResource names what is defined.
func (d *Definition) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: d.Spec.Group, Resource: d.Spec.Names.Plural}
}

// Namespaced reports whether objects have a namespace.
func (d *Definition) Namespaced() bool { return d.Spec.Scope == apiextensionsv1.NamespaceScoped }

// Terminating reports whether the definition is being deleted.
func (d *Definition) Terminating() bool {
	return d.Metadata.DeletionTimestamp != nil || d.condition(apiextensionsv1.Terminating) == apiextensionsv1.ConditionTrue
}

// Served reports whether objects can be reached.
func (d *Definition) Served() bool {
	return d.condition(apiextensionsv1.NamesAccepted) == apiextensionsv1.ConditionTrue ||
		d.condition(apiextensionsv1.Established) == apiextensionsv1.ConditionTrue
}

func (d *Definition) condition(kind apiextensionsv1.CustomResourceDefinitionConditionType) apiextensionsv1.ConditionStatus {
	for _, c := range d.Status.Conditions {
		if c.Type == kind {
			return c.Status
		}
	}
	return ""
}

// Named reports whether the definition has all the names that it wants.
func (d *Definition) Named() bool { return sameNames(d.Spec.Names, d.Status.AcceptedNames) }

// Cleans reports whether the definition is held until its objects are gone.
func (d *Definition) Cleans() bool {
	return d.Metadata.DeletionTimestamp != nil && slices.Contains(d.Metadata.Finalizers, apiextensionsv1.CustomResourceCleanupFinalizer)
}

// Same reports whether two states of a definition define the same, so that what
// is made of one serves for the other.
func (d *Definition) Same(other *Definition) bool {
	return other != nil && d.Metadata.UID == other.Metadata.UID && d.Metadata.Generation == other.Metadata.Generation &&
		sameNames(d.Status.AcceptedNames, other.Status.AcceptedNames)
}

// storage returns the version in which objects are stored.
func (d *Definition) storage() string {
	for _, v := range d.Spec.Versions {
		if v.Storage {
			return v.Name
		}
	}
	return ""
}

// schemaOf compiles the schema of a version.
func (d *Definition) schemaOf(version string) (*valueschema.Schema, error) {
	text, err := d.schemaText(version)
	if err != nil {
		return nil, err
	}
	s, err := d.pool.Get(text)
	if err != nil {
		return nil, fmt.Errorf("version %s of %s: %w", version, d.Metadata.Name, err)
	}
	return s, nil
}

// schemaText finds the schema of a version in the definition's JSON.
func (d *Definition) schemaText(version string) ([]byte, error) {
	var doc struct {
		Spec struct {
			Versions []struct {
				Name   string `json:"name"`
				Schema struct {
					Text json.RawMessage `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(d.text(), &doc); err != nil {
		return nil, fmt.Errorf("read the schemas of %s: %w", d.Metadata.Name, err)
	}
	for _, v := range doc.Spec.Versions {
		if v.Name == version {
			return v.Schema.Text, nil
		}
	}
	return nil, fmt.Errorf("%s has no version %s", d.Metadata.Name, version)
}
