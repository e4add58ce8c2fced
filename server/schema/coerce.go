package schema

import (
	"fmt"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Coerce makes an object what decoding into a Go type would have made it:
// unknown fields go, so do nulls that are neither allowed nor defaulted, and
// metadata is of the types that it must be of. It returns the paths of the
// fields that were unknown.
func (s *Schema) Coerce(u *unstructured.Unstructured) (unknown []string, err error) {
	return s.coerce(u, false)
}

// Repair is Coerce for what has been stored: malformed metadata, of which there
// can be some from before it was checked, is dropped rather than refused.
func (s *Schema) Repair(u *unstructured.Unstructured) error {
	_, err := s.coerce(u, true)
	return err
}

func (s *Schema) coerce(u *unstructured.Unstructured, stored bool) ([]string, error) {
	apiVersion, kind := u.GetAPIVersion(), u.GetKind()
	meta, found, unknown, err := objectmeta.GetObjectMetaWithOptions(u.Object, objectmeta.ObjectMetaOptions{
		DropMalformedFields: stored, ReturnUnknownFieldPaths: !stored,
	})
	if err != nil {
		return nil, err
	}
	if s.structural != nil {
		pruned := pruning.PruneWithOptions(u.Object, s.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: !stored})
		unknown = append(unknown, pruned...)
		defaulting.PruneNonNullableNullsWithoutDefaults(u.Object, s.structural)
	}
	invalid, paths := objectmeta.CoerceWithOptions(nil, u.Object, s.structural, false, objectmeta.CoerceOptions{
		DropInvalidFields: stored, ReturnUnknownFieldPaths: !stored,
	})
	if invalid != nil {
		return nil, invalid
	}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	if !found {
		return append(unknown, paths...), nil
	}
	if stored && meta.Generation == 0 {
		meta.Generation = 1
	}
	if err := objectmeta.SetObjectMeta(u.Object, meta); err != nil {
		return nil, fmt.Errorf("set metadata: %w", err)
	}
	return append(unknown, paths...), nil
}

// Default fills in what an object leaves out and the schema has a default for.
func (s *Schema) Default(obj map[string]any) {
	if s.defaults {
		defaulting.Default(obj, s.structural)
	}
}
