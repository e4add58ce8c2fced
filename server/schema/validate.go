package schema

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/warning"
)

// Extra are checks of the caller's that belong between those of the schema's
// values and those of its rules: rules are not evaluated for an object that is
// wrong already.
type Extra func() field.ErrorList

// Validate checks a new object.
func (s *Schema) Validate(ctx context.Context, obj map[string]any, extra Extra) field.ErrorList {
	c, err := s.checks()
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	errs := sorted(validation.ValidateCustomResource(nil, obj, c.object))
	errs = append(errs, extra()...)
	errs = append(errs, objectmeta.Validate(ctx, nil, obj, s.structural, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, obj)...)
	return s.withRules(ctx, c, errs, obj, nil)
}

// ValidateUpdate checks a changed object. What was wrong before and has not been
// touched may stay wrong.
func (s *Schema) ValidateUpdate(ctx context.Context, obj, old map[string]any, extra Extra) field.ErrorList {
	c, err := s.checks()
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	same := s.correlate(obj, old)
	errs := sorted(validation.ValidateCustomResourceUpdate(nil, obj, old, c.object, validation.WithRatcheting(same)))
	errs = append(errs, extra()...)
	errs = append(errs, objectmeta.Validate(ctx, nil, obj, s.structural, false)...)
	errs = append(errs, s.listErrors(obj, old)...)
	return s.withRules(ctx, c, errs, obj, old, cel.WithRatcheting(same))
}

// ValidateStatus checks an object of which only the status has changed.
func (s *Schema) ValidateStatus(ctx context.Context, obj, old map[string]any, extra Extra) field.ErrorList {
	c, err := s.checks()
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	same := s.correlate(obj, old)
	var errs field.ErrorList
	if status, ok := obj["status"]; ok && c.status != nil {
		var options []validation.ValidationOption
		if s.structural != nil {
			options = append(options, validation.WithRatcheting(same.Key("status")))
		}
		errs = sorted(validation.ValidateCustomResourceUpdate(field.NewPath("status"), status, old["status"], c.status, options...))
	}
	errs = append(errs, extra()...)
	errs = append(errs, s.listErrors(obj, old)...)
	return s.withRules(ctx, c, errs, obj, old, cel.WithRatcheting(same))
}

// Warnings tells which rules a changed object breaks that it may break, as what
// they are about has not been touched. The object must be a valid one. Rules are
// evaluated for it only if some object of the schema has broken one before.
func (s *Schema) Warnings(ctx context.Context, obj, old map[string]any) []string {
	if !s.broken.Load() {
		return nil
	}
	c, err := s.checks()
	if err != nil {
		return nil
	}
	var found texts
	_, _ = c.rules.Validate(warning.WithWarningRecorder(ctx, &found), nil, s.structural, obj, old,
		celconfig.RuntimeCELCostBudget, cel.WithRatcheting(s.correlate(obj, old)))
	return found
}

// texts collects warnings.
type texts []string

// AddWarning is called by rules that an object breaks and may break.
func (t *texts) AddWarning(_, text string) { *t = append(*t, text) }

// sorted sorts problems by field, those without one last: validators go through
// maps.
func sorted(errs field.ErrorList) field.ErrorList {
	slices.SortStableFunc(errs, func(a, b *field.Error) int { return strings.Compare(place(a), place(b)) })
	return errs
}

func place(e *field.Error) string {
	if e.Field == nowhere {
		return "~"
	}
	return e.Field
}

var nowhere = (*field.Path)(nil).String()

func (s *Schema) correlate(obj, old map[string]any) *common.CorrelatedObject {
	return common.NewCorrelatedObject(obj, old, &model.Structural{Structural: s.structural})
}

// listErrors finds doubles in sets and maps, unless there were some before.
func (s *Schema) listErrors(obj, old map[string]any) field.ErrorList {
	errs := listtype.ValidateListSetsAndMaps(nil, s.structural, obj)
	if len(errs) > 0 && len(listtype.ValidateListSetsAndMaps(nil, s.structural, old)) > 0 {
		return nil
	}
	return errs
}

// withRules adds what the rules in CEL find.
func (s *Schema) withRules(ctx context.Context, c checkers, errs field.ErrorList, obj, old map[string]any, options ...cel.Option) field.ErrorList {
	if c.rules == nil {
		return errs
	}
	for _, e := range errs {
		switch e.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return append(errs, field.Invalid(nil, nil, "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"))
		}
	}
	var was any
	if old != nil {
		was = old
	}
	var broken texts
	found, _ := c.rules.Validate(warning.WithWarningRecorder(ctx, &broken), nil, s.structural, obj, was, celconfig.RuntimeCELCostBudget, options...)
	if len(broken) > 0 {
		s.broken.Store(true)
	}
	return append(errs, found...)
}
