package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

	"github.com/even-keel/evenkeel/client"
)

// Convert converts the versions of a custom resource. H is the hub: the version that
// all others are converted to and from.
//
// A function finds the metadata of the object in what it is to fill; it may change
// labels and annotations of it, and all other changes of metadata are undone. Fields
// that the Go types do not know stay where they are, if what they are in still exists.
func Convert[H client.Object](versions ...Spoke[H]) Hook {
	return Hook{verb: "convert", convert: func(conn *client.Conn) (*converter, error) {
		hub, err := kindFunc[H](conn, nil)
		if err != nil {
			return nil, err
		}
		same := func(raw []byte, _ schema.GroupVersion) ([]byte, error) { return raw, nil }
		c := &converter{hub: hub, versions: map[string]spoke{hub.Version: {same, same}}}
		for _, v := range versions {
			kind, err := v.kindOf(conn, nil)
			if err != nil {
				return nil, err
			}
			if _, twice := c.versions[kind.Version]; twice || kind.GroupKind() != hub.GroupKind() {
				return nil, fmt.Errorf("%v is no further version of %v", kind, hub)
			}
			c.versions[kind.Version] = v.spoke
		}
		return c, nil
	}}
}

// Spoke is a version beside the hub; [Version] makes one.
type Spoke[H client.Object] struct {
	spoke
	kindOf func(*client.Conn, []client.KindOption) (schema.GroupVersionKind, error)
}

// Version tells how a version is converted: up fills the hub's object, down the
// version's. Objects that were converted up and down again should be the same.
func Version[S, H client.Object](up func(from S, to H) error, down func(from H, to S) error) Spoke[H] {
	return Spoke[H]{spoke{up: step(up), down: step(down)}, kindFunc[S]}
}

// spoke converts one version; an object is its JSON.
type spoke struct{ up, down stepFunc }

type stepFunc func(raw []byte, to schema.GroupVersion) ([]byte, error)

// step has f convert, and keeps what f cannot see.
func step[A, B client.Object](f func(A, B) error) stepFunc {
	return func(raw []byte, to schema.GroupVersion) ([]byte, error) {
		source, err := parse(raw)
		if err != nil {
			return nil, err
		}
		fields, _ := source.(map[string]any)
		metadata, ok := fields["metadata"].(map[string]any)
		if !ok {
			return nil, errors.New("the object has no metadata")
		}
		head := map[string]any{"apiVersion": to.String(), "kind": fields["kind"], "metadata": metadata}
		result, err := convertTyped(raw, head, f)
		if err != nil {
			return nil, err
		}
		out := result.(map[string]any)
		carry(fields, out, reflect.TypeFor[A]())
		changed, _ := out["metadata"].(map[string]any)
		maps.Copy(out, head)
		out["metadata"] = restore(metadata, changed)
		return json.Marshal(out)
	}
}

// convertTyped calls f with objects of its types, and returns what it has filled.
func convertTyped[A, B client.Object](raw []byte, head map[string]any, f func(A, B) error) (any, error) {
	from, err := decode[A](raw)
	if err != nil {
		return nil, err
	}
	start, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	into, err := decode[B](start)
	if err != nil {
		return nil, err
	}
	if err := f(from, into); err != nil {
		return nil, err
	}
	return treeOf(into)
}

// restore returns the metadata that an object had, with the labels and annotations
// that a function has made of it.
func restore(had, changed map[string]any) map[string]any {
	out := maps.Clone(had)
	for _, key := range []string{"labels", "annotations"} {
		delete(out, key)
		if value, ok := changed[key]; ok {
			out[key] = value
		}
	}
	return out
}

// converter converts the objects of one custom resource.
type converter struct {
	hub      schema.GroupVersionKind
	versions map[string]spoke // the hub's does nothing
}

func (c *converter) convert(raw []byte, from, to schema.GroupVersion) ([]byte, error) {
	if from == to {
		return raw, nil
	}
	up, known := c.versions[from.Version]
	down, wanted := c.versions[to.Version]
	if !known || !wanted || to.Group != c.hub.Group {
		return nil, errors.New("a version is not known")
	}
	raw, err := up.up(raw, c.hub.GroupVersion())
	if err != nil {
		return nil, err
	}
	return down.down(raw, to)
}

// conversionReview is apiextensions.k8s.io/v1, whose package would cost more than all
// of this one.
type conversionReview struct {
	metav1.TypeMeta `json:",inline"`
	Request         *conversionRequest  `json:"request,omitempty"`
	Response        *conversionResponse `json:"response,omitempty"`
}

type conversionRequest struct {
	UID               types.UID         `json:"uid"`
	DesiredAPIVersion string            `json:"desiredAPIVersion"`
	Objects           []json.RawMessage `json:"objects"`
}

type conversionResponse struct {
	UID              types.UID         `json:"uid"`
	ConvertedObjects []json.RawMessage `json:"convertedObjects"`
	Result           metav1.Status     `json:"result"`
}

var conversionKind = metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "ConversionReview"}

// answerConversion answers a ConversionReview: with all objects, or with why not.
func answerConversion(converters map[schema.GroupKind]*converter, body []byte) (any, error) {
	var in conversionReview
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, &in); err != nil {
		return nil, fmt.Errorf("%w: %w", errReview, err)
	}
	if in.TypeMeta != conversionKind || in.Request == nil {
		return nil, fmt.Errorf("%w: want a request in %v, got %v", errReview, conversionKind.GroupVersionKind(), in.GroupVersionKind())
	}
	answer := &conversionResponse{UID: in.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	var err error
	if answer.ConvertedObjects, err = convertAll(converters, in.Request); err != nil {
		answer.Result = metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
	}
	return &conversionReview{TypeMeta: conversionKind, Response: answer}, nil
}

// convertAll converts all objects, or none.
func convertAll(converters map[schema.GroupKind]*converter, r *conversionRequest) ([]json.RawMessage, error) {
	to, err := schema.ParseGroupVersion(r.DesiredAPIVersion)
	if err != nil {
		return nil, err
	}
	out := make([]json.RawMessage, len(r.Objects))
	for i, raw := range r.Objects {
		var head metav1.PartialObjectMetadata
		if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &head); err != nil {
			return nil, fmt.Errorf("object %d: %w", i, err)
		}
		from := head.GroupVersionKind()
		c := converters[from.GroupKind()]
		if c == nil {
			return nil, fmt.Errorf("object %d: %v has no conversion here", i, from)
		}
		if out[i], err = c.convert(raw, from.GroupVersion(), to); err != nil {
			return nil, fmt.Errorf("convert %s %s from %s to %s: %w", from.Kind, client.KeyOf(&head), from.GroupVersion(), to, err)
		}
	}
	return out, nil
}
