package schema

import (
	"fmt"
	"sync"
	"sync/atomic"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Schema is the schema of a custom resource in one version. Safe for concurrent
// use.
type Schema struct {
	// internal is dropped once the validators have been made of it.
	internal   *apiextensions.JSONSchemaProps
	structural *structuralschema.Structural
	defaults   bool

	once     sync.Once
	checkers checkers
	failed   error

	// broken says that a rule has been broken by what has not been touched.
	broken atomic.Bool
}

// checkers are what is made of a schema when something is first validated.
type checkers struct {
	object, status validation.SchemaValidator
	rules          *cel.Validator
}

// New reads a schema. A nil one knows nothing and keeps everything.
func New(props *apiextensionsv1.JSONSchemaProps) (*Schema, error) {
	s := &Schema{}
	if props == nil {
		return s, nil
	}
	s.internal = &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props, s.internal, nil); err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	structural, err := structuralschema.NewStructural(s.internal)
	if err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	// Defaults are shared with what was given.
	s.structural = structural.DeepCopy()
	if err := defaulting.PruneDefaults(s.structural); err != nil {
		return nil, fmt.Errorf("prune the defaults of the schema: %w", err)
	}
	s.defaults = hasDefaults(s.structural)
	return s, nil
}

// HasDefaults reports whether [Schema.Default] can change anything.
func (s *Schema) HasDefaults() bool { return s.defaults }

// OpenAPI returns the schema in the form that OpenAPI documents and apply use;
// nil if there is none.
func (s *Schema) OpenAPI() *spec.Schema {
	if s.structural == nil {
		return nil
	}
	return s.structural.ToKubeOpenAPI()
}

func hasDefaults(s *structuralschema.Structural) bool {
	if s == nil {
		return false
	}
	if s.Default.Object != nil || hasDefaults(s.Items) {
		return true
	}
	for _, p := range s.Properties {
		if hasDefaults(&p) {
			return true
		}
	}
	return s.AdditionalProperties != nil && hasDefaults(s.AdditionalProperties.Structural)
}

// checks returns the validators; the first call makes them.
func (s *Schema) checks() (checkers, error) {
	s.once.Do(func() {
		s.checkers, s.failed = newCheckers(s.internal, s.structural)
		s.internal = nil
	})
	return s.checkers, s.failed
}

func newCheckers(props *apiextensions.JSONSchemaProps, structural *structuralschema.Structural) (checkers, error) {
	var c checkers
	var err error
	if c.object, _, err = validation.NewSchemaValidator(props); err != nil {
		return c, fmt.Errorf("make the validator of the schema: %w", err)
	}
	if props == nil {
		return c, nil
	}
	if status, ok := props.Properties["status"]; ok {
		if c.status, _, err = validation.NewSchemaValidator(&status); err != nil {
			return c, fmt.Errorf("make the validator of the status: %w", err)
		}
	}
	c.rules = cel.NewValidator(structural, true, celconfig.PerCallLimit)
	return c, nil
}
