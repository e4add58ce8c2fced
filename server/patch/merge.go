package patch

import (
	"encoding/json"
	"fmt"

	kjson "sigs.k8s.io/json"
)

// Merge applies a JSON merge patch (RFC 7386) to a JSON object. As in the real
// server, nulls inside of what is added or replaces no object are dropped too.
func Merge(doc, patch []byte) ([]byte, error) {
	if err := checkDepth(patch); err != nil {
		return nil, err
	}
	if _, err := strictMerge(patch); err != nil {
		return nil, err
	}
	var changes, object map[string]any
	if err := decode(patch, &changes); err != nil || changes == nil {
		return nil, invalid("Invalid JSON Patch")
	}
	if err := decode(doc, &object); err != nil || object == nil {
		return nil, fmt.Errorf("decode the document to patch: %w", err)
	}
	mergeInto(object, changes)
	return json.Marshal(object)
}

func strictMerge(patch []byte) ([]error, error) {
	changes := map[string]any{}
	strict, err := kjson.UnmarshalStrict(patch, &changes)
	if err != nil {
		return nil, invalid("error decoding patch: %v", err)
	}
	return strict, nil
}

func mergeInto(object, changes map[string]any) {
	for key, change := range changes {
		if change == nil {
			delete(object, key)
			continue
		}
		object[key] = merged(object[key], change)
	}
}

func merged(was, change any) any {
	object, ok := was.(map[string]any)
	if !ok {
		return withoutNulls(change)
	}
	changes, ok := change.(map[string]any)
	if !ok {
		return change
	}
	mergeInto(object, changes)
	return object
}

// withoutNulls drops the null members of objects, however deep. Nulls in lists
// stay.
func withoutNulls(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, e := range v {
			if e == nil {
				delete(v, key)
			} else {
				withoutNulls(e)
			}
		}
	case []any:
		for _, e := range v {
			withoutNulls(e)
		}
	}
	return v
}
