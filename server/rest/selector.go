package rest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/even-keel/evenkeel/server/watch"
)

// selector says which objects a list or a watch is about.
type selector struct {
	res       *resource
	namespace string
	name      string // of one object; empty for all
	labels    labels.Selector
	fields    fields.Selector
	// decode says that fields cannot be judged by name and namespace alone.
	decode bool
}

// newSelector checks the field selector and readies both for matching.
func newSelector(res *resource, namespace, name string, l labels.Selector, f fields.Selector) (*selector, error) {
	s := &selector{res: res, namespace: namespace, name: name}
	if l != nil && !l.Empty() {
		s.labels = l
	}
	if f == nil || f.Empty() {
		return s, nil
	}
	f, err := f.Transform(func(label, value string) (string, string, error) {
		return s.fieldLabel(label, value)
	})
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	s.fields = f
	if want, ok := f.RequiresExactMatch("metadata.name"); ok && s.name == "" {
		s.name = want
	}
	return s, nil
}

func (s *selector) fieldLabel(label, value string) (string, string, error) {
	if label == "metadata.name" || label == "metadata.namespace" {
		return label, value, nil
	}
	if s.res.version != nil {
		if stored, ok := s.res.version.FieldLabels[label]; ok {
			s.decode = true
			return stored, value, nil
		}
	}
	if slices.Contains(s.res.kind.Fields, label) && !s.renamed(label) {
		s.decode = true
		return label, value, nil
	}
	if len(s.res.kind.Fields) == 0 && s.res.custom == nil {
		return "", "", fmt.Errorf("%q is not a known field selector: only %q, %q", label, "metadata.name", "metadata.namespace")
	}
	return "", "", fmt.Errorf("field label not supported: %s", label)
}

// renamed says that the version has another name for a field of the stored one.
func (s *selector) renamed(label string) bool {
	if s.res.version == nil {
		return false
	}
	for _, stored := range s.res.version.FieldLabels {
		if stored == label {
			return true
		}
	}
	return false
}

// selective says that labels or fields are selected by.
func (s *selector) selective() bool { return s.labels != nil || s.fields != nil }

// matches reports whether an object is selected.
func (s *selector) matches(o *watch.Object) (bool, error) {
	switch {
	case o == nil,
		s.namespace != "" && o.Namespace != s.namespace,
		s.name != "" && o.Name != s.name:
		return false, nil
	}
	if s.labels != nil {
		set, err := labelsOf(o)
		if err != nil || !s.labels.Matches(set) {
			return false, err
		}
	}
	if s.fields != nil {
		set, err := s.fieldSet(o)
		if err != nil || !s.fields.Matches(set) {
			return false, err
		}
	}
	return true, nil
}

func (s *selector) fieldSet(o *watch.Object) (fields.Set, error) {
	set := fields.Set{}
	if s.decode {
		obj, err := s.res.decoded(o)
		if err != nil {
			return nil, err
		}
		for k, v := range s.res.kind.FieldSet(obj) {
			set[k] = v
		}
	}
	set["metadata.name"], set["metadata.namespace"] = o.Name, o.Namespace
	return set, nil
}

type labelsKey struct{}

// labelsOf reads an object's labels, and nothing else of it.
func labelsOf(o *watch.Object) (labels.Set, error) {
	v, err := o.Derive(labelsKey{}, func(o *watch.Object) (any, error) {
		var m struct {
			Metadata struct {
				Labels labels.Set `json:"labels"`
			} `json:"metadata"`
		}
		if err := json.Unmarshal(o.AppendJSON(nil), &m); err != nil {
			return nil, fmt.Errorf("decode the labels of %s/%s: %w", o.Namespace, o.Name, err)
		}
		return m.Metadata.Labels, nil
	})
	if err != nil {
		return nil, err
	}
	return v.(labels.Set), nil
}

// scopeKey is the least tree key that the selector can match.
func (s *selector) scopeKey() string {
	if s.name != "" && (s.namespace != "" || !s.res.kind.Namespaced) {
		return s.namespace + "/" + s.name
	}
	return strings.TrimSuffix(s.namespace+"/", "/")
}
