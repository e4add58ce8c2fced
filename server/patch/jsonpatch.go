package patch

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	kjson "sigs.k8s.io/json"
)

// jsonPatchOp is what a strict decoder expects an operation to be.
type jsonPatchOp struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	From  string `json:"from"`
	Value any    `json:"value"`
}

// JSON applies a JSON patch (RFC 6902) to a JSON document.
//
// It differs from the RFC where the real server's library does: replacing a
// field that is not there adds it, copying one that is not there makes a null,
// a missing field passes a test for null, negative indices count from the end.
func JSON(doc, patch []byte) ([]byte, error) {
	ops, err := decodeOperations(patch)
	if err != nil {
		return nil, err
	}
	d := &document{}
	if err := decode(doc, &d.root); err != nil {
		return nil, fmt.Errorf("decode the document to patch: %w", err)
	}
	for i, op := range ops {
		if err := d.apply(op); err != nil {
			if errors.Is(err, ErrTooLarge) {
				return nil, err
			}
			return nil, failed("operation %d of a JSON patch: %v", i, err)
		}
	}
	if isDeeper(d.root, MaxDepth) {
		return nil, failed("a JSON patch nests the document deeper than %d", MaxDepth)
	}
	return json.Marshal(d.root)
}

func decodeOperations(patch []byte) ([]operation, error) {
	if err := checkDepth(patch); err != nil {
		return nil, err
	}
	if _, err := strictJSON(patch); err != nil {
		return nil, err
	}
	var ops []operation
	if err := json.Unmarshal(patch, &ops); err != nil {
		return nil, invalid("error decoding patch: %v", err)
	}
	if len(ops) > MaxOperations {
		return nil, tooLarge("The allowed maximum operations in a JSON patch is %d, got %d", MaxOperations, len(ops))
	}
	return ops, nil
}

// strictJSON decodes a JSON patch as the real server's handler does and returns
// the duplicate and unknown members that it finds.
func strictJSON(patch []byte) ([]error, error) {
	var ops []jsonPatchOp
	strict, err := kjson.UnmarshalStrict(patch, &ops)
	if err != nil { // the text names the type, which in the real server is another
		return nil, invalid("error decoding patch: %s", strings.ReplaceAll(err.Error(), "patch.jsonPatchOp", "handlers.jsonPatchOp"))
	}
	for i, err := range strict {
		strict[i] = fmt.Errorf("json patch %w", err)
	}
	return strict, nil
}

// operation is one step of a JSON patch. Members are told apart by case.
type operation map[string]json.RawMessage

func (o operation) text(member string) (string, error) {
	var s *string
	if err := json.Unmarshal(o[member], &s); err != nil || s == nil {
		return "", fmt.Errorf("no %s", member)
	}
	return *s, nil
}

// value returns the member value, decoded; without one, null and false.
func (o operation) value() (any, bool) {
	raw, ok := o["value"]
	if !ok {
		return nil, false
	}
	var v any
	if err := decode(raw, &v); err != nil {
		return nil, false // cannot be: it was decoded before
	}
	return v, true
}

// document is what a JSON patch is being applied to.
type document struct {
	root   any
	copied int // bytes, by copy operations
	moved  int // items of lists
}

func (d *document) apply(op operation) error {
	kind, err := op.text("op")
	if err != nil {
		return err
	}
	path, err := op.text("path")
	if err != nil {
		return err
	}
	switch kind {
	case "add":
		v, _ := op.value()
		return d.add(path, v)
	case "remove":
		_, err := d.remove(path)
		return err
	case "replace":
		return d.replace(path, op)
	case "test":
		return d.test(path, op)
	case "move", "copy":
		return d.transfer(kind, path, op)
	}
	return fmt.Errorf("unknown operation %q", kind)
}

func (d *document) replace(path string, op operation) error {
	v, _ := op.value()
	if path == "" {
		switch v.(type) {
		case map[string]any, []any:
			d.root = v
			return nil
		}
		return errors.New("the whole can only become an object or a list")
	}
	at, err := d.find(path)
	if err != nil {
		return err
	}
	return at.set(v)
}

func (d *document) test(path string, op operation) error {
	want, given := op.value()
	got := d.root
	if path != "" {
		at, err := d.find(path)
		if err != nil {
			return err
		}
		if got, err = at.get(); err != nil {
			return err
		}
	} else if !given {
		return errors.New("no value to test for")
	}
	if !equal(got, want) {
		return fmt.Errorf("test of %q failed", path)
	}
	return nil
}

func (d *document) transfer(kind, path string, op operation) error {
	from, err := op.text("from")
	if err != nil {
		return err
	}
	var v any
	if kind == "move" {
		v, err = d.remove(from)
	} else {
		v, err = d.copyOf(from)
	}
	if err != nil {
		return err
	}
	return d.add(path, v)
}

func (d *document) copyOf(from string) (any, error) {
	at, err := d.find(from)
	if err != nil {
		return nil, err
	}
	v, err := at.get()
	if err != nil {
		return nil, err
	}
	return d.clone(v)
}

// clone copies a value and counts it, about as long as it is in JSON.
func (d *document) clone(v any) (any, error) {
	var err error
	switch w := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(w))
		for k, e := range w {
			d.copied += len(k) + len(`"":,`)
			if m[k], err = d.clone(e); err != nil {
				return nil, err
			}
		}
		v = m
	case []any:
		l := make([]any, len(w))
		for i, e := range w {
			if l[i], err = d.clone(e); err != nil {
				return nil, err
			}
		}
		v = l
	case string:
		d.copied += len(w)
	case json.Number:
		d.copied += len(w)
	}
	if d.copied += len(`{}`); d.copied > MaxCopied {
		return nil, fmt.Errorf("copies add more than %d bytes", MaxCopied)
	}
	return v, nil
}

// equal compares decoded values. Numbers are equal if they are written alike.
func equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			if w, ok := b[k]; !ok || !equal(v, w) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !equal(a[i], b[i]) {
				return false
			}
		}
		return true
	}
	switch b.(type) {
	case map[string]any, []any:
		return false
	}
	return a == b
}
