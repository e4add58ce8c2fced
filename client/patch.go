package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/types"
)

// Patch is a change of an object. Each of its makers takes bytes or a string that
// is JSON (for [ApplyPatch] also YAML), or any value that is written as JSON.
type Patch struct {
	kind types.PatchType
	body any
}

// MergePatch is an object with the fields to set; null removes a field, and lists
// are replaced (RFC 7386).
func MergePatch(body any) Patch { return Patch{types.MergePatchType, body} }

// StrategicPatch is a MergePatch that merges lists by their keys. Only built-in
// kinds have it.
func StrategicPatch(body any) Patch { return Patch{types.StrategicMergePatchType, body} }

// JSONPatch is a list of operations (RFC 6902).
func JSONPatch(body any) Patch { return Patch{types.JSONPatchType, body} }

// ApplyPatch is what its field manager wants of an object: a configuration of
// k8s.io/client-go/applyconfigurations, a map or a document.
func ApplyPatch(body any) Patch { return Patch{types.ApplyPatchType, body} }

func (p Patch) encode() ([]byte, error) {
	switch b := p.body.(type) {
	case []byte:
		return b, nil
	case string:
		return []byte(b), nil
	}
	data, err := json.Marshal(p.body)
	if err != nil {
		return nil, fmt.Errorf("encode a patch of type %s: %w", p.kind, err)
	}
	return data, nil
}

// Patch changes an object and returns what it became.
func (c *Client[T]) Patch(ctx context.Context, key Key, p Patch, opts ...WriteOption) (T, error) {
	return c.patch(ctx, key, "", p, opts)
}

func (c *Client[T]) patch(ctx context.Context, key Key, sub string, p Patch, opts []WriteOption) (T, error) {
	var none T
	r, err := c.patchCall(ctx, key, sub, p, opts)
	if err != nil {
		return none, err
	}
	return c.write(ctx, r)
}

func (c *Client[T]) patchCall(ctx context.Context, key Key, sub string, p Patch, opts []WriteOption) (*call, error) {
	r, err := c.object(ctx, http.MethodPatch, key, sub, c.conn.writeQuery(opts))
	if err != nil {
		return nil, err
	}
	r.media = string(p.kind)
	r.body, err = p.encode()
	return r, err
}

// Apply makes an object what obj says, and leaves alone what it does not say and
// others manage. Fields that this manager applied before and are not in obj any
// more are removed. If another manager has a field, [IsConflict] is true of the
// error, unless [Force] is given.
//
// Go types say more than one might mean: a field without omitempty is always
// sent. Where that matters, use Patch with an [ApplyPatch].
func (c *Client[T]) Apply(ctx context.Context, obj T, opts ...WriteOption) (T, error) {
	return c.apply(ctx, obj, "", opts)
}

func (c *Client[T]) apply(ctx context.Context, obj T, sub string, opts []WriteOption) (T, error) {
	var none T
	if c.codec.partial {
		return none, fmt.Errorf("apply %T: %w", obj, ErrMetadataOnly)
	}
	r, err := c.object(ctx, http.MethodPatch, KeyOf(obj), sub, c.conn.writeQuery(opts))
	if err != nil {
		return none, err
	}
	r.media = string(types.ApplyPatchType)
	if r.body, err = c.applyBody(obj, sub); err != nil {
		return none, err
	}
	return c.write(ctx, r)
}

// applyBody is an object without what cannot be applied: managed fields, and a
// status that says nothing.
func (c *Client[T]) applyBody(obj T, sub string) ([]byte, error) {
	data, err := c.codec.encodeJSON(obj)
	if err != nil {
		return nil, err
	}
	fields, err := parseObject(data)
	if err != nil {
		return nil, err
	}
	if m, ok := fields["metadata"].(map[string]any); ok {
		delete(m, "managedFields")
		if m["creationTimestamp"] == nil {
			delete(m, "creationTimestamp")
		}
	}
	if s, ok := fields["status"].(map[string]any); ok && len(s) == 0 && sub == "" {
		delete(fields, "status")
	}
	return json.Marshal(fields)
}
