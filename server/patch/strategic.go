package patch

import (
	"encoding/json"
	"fmt"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	kjson "sigs.k8s.io/json"
)

// Strategic applies a strategic merge patch to a JSON object. The struct tags
// of like, a pointer to the object's Go type, say how lists are merged.
func Strategic(doc, patch []byte, like any) (_ []byte, err error) {
	if err := checkDepth(patch); err != nil {
		return nil, err
	}
	var object, changes map[string]any
	if _, err := kjson.UnmarshalStrict(patch, &changes); err != nil {
		return nil, invalid("%v", err)
	}
	if err := utiljson.Unmarshal(doc, &object); err != nil {
		return nil, fmt.Errorf("decode the document to patch: %w", err)
	}
	if old, new := lists(object), lists(changes); (old.longest+new.longest)*new.items > maxCompared {
		return nil, tooLarge("a strategic merge patch compares list items more than %d times", maxCompared)
	}
	defer func() {
		if caught := recover(); caught != nil {
			err = failed("a strategic merge patch made the library panic: %v", caught)
		}
	}()
	result, err := strategicpatch.StrategicMergeMapPatch(object, changes, like)
	if err != nil {
		return nil, strategicError(err)
	}
	return json.Marshal(result)
}

// strategicError tells the library's errors apart as the real server does.
func strategicError(err error) error {
	switch err {
	case mergepatch.ErrBadJSONDoc, mergepatch.ErrBadPatchFormatForPrimitiveList,
		mergepatch.ErrBadPatchFormatForRetainKeys, mergepatch.ErrBadPatchFormatForSetElementOrderList,
		mergepatch.ErrUnsupportedStrategicMergePatchFormat:
		return invalid("%v", err)
	case mergepatch.ErrNoListOfLists, mergepatch.ErrPatchContentNotMatchRetainKeys:
		return failed("%v", err)
	}
	return err
}

// listSize is how long a document's lists are.
type listSize struct{ longest, items int }

func lists(v any) listSize {
	var size listSize
	inside := func(e any) {
		s := lists(e)
		size.longest = max(size.longest, s.longest)
		size.items += s.items
	}
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			inside(e)
		}
	case []any:
		for _, e := range v {
			inside(e)
		}
		size.longest = max(size.longest, len(v))
		size.items += len(v)
	}
	return size
}
