package kinds

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// definitionKind is the kind that defines further kinds. What it defines is
// checked by the real server's own rules, which know structural schemas and CEL.
func definitionKind() *Kind {
	return &Kind{
		GVK:      apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"),
		Resource: "customresourcedefinitions", Singular: "customresourcedefinition",
		ShortNames: []string{"crd", "crds"}, Categories: []string{"api-extensions"},
		New: newOf[apiextensionsv1.CustomResourceDefinition], NewList: newOf[apiextensionsv1.CustomResourceDefinitionList],
		HasStatus: true, HasGeneration: true, NeedsRevision: true, ChecksMetadata: true,
		Default:        each(apiextensionsv1.SetObjectDefaults_CustomResourceDefinition),
		PrepareCreate:  each(addStoredVersion),
		PrepareUpdate:  eachPair(func(crd, _ *apiextensionsv1.CustomResourceDefinition) { addStoredVersion(crd) }),
		ValidateCreate: check(validateNewDefinition),
		ValidateUpdate: checkPair(validateDefinitionUpdate),
		ValidateStatus: checkPair(validateDefinitionStatus),
		Warnings:       warn(warnDefinition),
	}
}

// addStoredVersion notes that objects may from now on be stored in the version
// that the definition stores.
func addStoredVersion(crd *apiextensionsv1.CustomResourceDefinition) {
	for _, v := range crd.Spec.Versions {
		if v.Storage && !slices.Contains(crd.Status.StoredVersions, v.Name) {
			crd.Status.StoredVersions = append(crd.Status.StoredVersions, v.Name)
		}
	}
}

func internalDefinition(crd *apiextensionsv1.CustomResourceDefinition) (*apiextensions.CustomResourceDefinition, field.ErrorList) {
	out := &apiextensions.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd.DeepCopy(), out, nil); err != nil {
		return nil, field.ErrorList{field.InternalError(nil, fmt.Errorf("convert the definition: %w", err))}
	}
	return out, nil
}

func validateNewDefinition(crd *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
	in, errs := internalDefinition(crd)
	if errs != nil {
		return errs
	}
	return apiextensionsvalidation.ValidateCustomResourceDefinition(context.Background(), in)
}

func validateDefinitionUpdate(crd, old *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
	return compareDefinitions(crd, old, apiextensionsvalidation.ValidateCustomResourceDefinitionUpdate)
}

func validateDefinitionStatus(crd, old *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
	return compareDefinitions(crd, old, apiextensionsvalidation.ValidateUpdateCustomResourceDefinitionStatus)
}

func compareDefinitions(crd, old *apiextensionsv1.CustomResourceDefinition,
	validate func(context.Context, *apiextensions.CustomResourceDefinition, *apiextensions.CustomResourceDefinition) field.ErrorList,
) field.ErrorList {
	is, errs := internalDefinition(crd)
	if errs != nil {
		return errs
	}
	was, errs := internalDefinition(old)
	if errs != nil {
		return errs
	}
	return validate(context.Background(), is, was)
}

// warnDefinition tells of what is new in a definition and has no effect.
func warnDefinition(crd, old *apiextensionsv1.CustomResourceDefinition) []string {
	var known []string
	if old != nil {
		known = definitionWarnings(old)
	}
	return slices.DeleteFunc(definitionWarnings(crd), func(w string) bool { return slices.Contains(known, w) })
}

func definitionWarnings(crd *apiextensionsv1.CustomResourceDefinition) []string {
	in, errs := internalDefinition(crd)
	if errs != nil {
		return nil
	}
	var formats, sets []string
	apiextensionsvalidation.HasSchemaWith(&in.Spec, func(root *apiextensions.JSONSchemaProps) bool {
		return apiextensionsvalidation.SchemaHas(root, func(s *apiextensions.JSONSchemaProps) bool {
			formats = append(formats, unknownFormats(s)...)
			if s.XListType != nil && *s.XListType == "set" && s.Items != nil && s.Items.Schema != nil {
				if t := s.Items.Schema.Type; t == "object" || t == "array" {
					sets = append(sets, fmt.Sprintf("x-kubernetes-list-type: set for items of type %q is not supported by server-side apply or CEL validation rules", t))
				}
			}
			return false
		})
	})
	slices.Sort(sets)
	return append(formats, slices.Compact(sets)...)
}

func unknownFormats(s *apiextensions.JSONSchemaProps) []string {
	if s.Format == "" {
		return nil
	}
	var warnings []string
	of := &spec.Schema{SchemaProps: spec.SchemaProps{Format: s.Format, Type: []string{s.Type}}}
	for _, f := range validation.GetUnrecognizedFormats(of, environment.DefaultCompatibilityVersion()) {
		warnings = append(warnings, fmt.Sprintf("unrecognized format %q", f))
	}
	return warnings
}

// MarkDefinitionDeleted readies a definition to be deleted: it is held until its
// objects are gone.
func MarkDefinitionDeleted(crd *apiextensionsv1.CustomResourceDefinition) {
	if !slices.Contains(crd.Finalizers, apiextensionsv1.CustomResourceCleanupFinalizer) {
		crd.Finalizers = append(crd.Finalizers, apiextensionsv1.CustomResourceCleanupFinalizer)
	}
	apihelpers.SetCRDCondition(crd, apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.Terminating, Status: apiextensionsv1.ConditionTrue, Reason: "InstanceDeletionPending",
		Message: "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
	})
}
