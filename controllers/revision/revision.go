// Package revision keeps the templates that an object has had, in ControllerRevisions.
// It is for kinds whose controllers make pods of a template themselves: StatefulSets
// and DaemonSets. `kubectl rollout history` and `undo` read what it writes.
package revision

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/even-keel/evenkeel/client"
)

// Data is what a revision keeps of a template: a strategic merge patch that puts it in
// the place of the object's. kubectl sends it to roll back, and compares it byte by
// byte to find out whether there is a need to.
func Data(t *corev1.PodTemplateSpec) ([]byte, error) {
	encoded, err := json.Marshal(t)
	if err != nil {
		return nil, fmt.Errorf("encode a template: %w", err)
	}
	var fields map[string]any
	if err := json.Unmarshal(encoded, &fields); err != nil {
		return nil, fmt.Errorf("encode a template: %w", err)
	}
	fields["$patch"] = "replace"
	return json.Marshal(map[string]any{"spec": map[string]any{"template": fields}})
}

// Template is the template that a revision keeps.
func Template(r *appsv1.ControllerRevision) (*corev1.PodTemplateSpec, error) {
	var kept struct {
		Spec struct {
			Template corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(r.Data.Raw, &kept); err != nil {
		return nil, fmt.Errorf("read revision %s: %w", client.KeyOf(r), err)
	}
	return &kept.Spec.Template, nil
}

// History is the revisions of one object, oldest first.
type History []*appsv1.ControllerRevision

// Sorted returns revisions as a history.
func Sorted(revisions []*appsv1.ControllerRevision) History {
	return slices.SortedFunc(slices.Values(revisions), func(a, b *appsv1.ControllerRevision) int {
		return cmp.Or(cmp.Compare(a.Revision, b.Revision), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
}

// Named returns the revision of a name, nil if there is none.
func (h History) Named(name string) *appsv1.ControllerRevision {
	for _, r := range h {
		if r.Name == name {
			return r
		}
	}
	return nil
}

// with returns the last revision that keeps data, nil if none does.
func (h History) with(data []byte) *appsv1.ControllerRevision {
	for _, r := range slices.Backward(h) {
		if same(r.Data.Raw, data) {
			return r
		}
	}
	return nil
}

// next is the number of the revision to come.
func (h History) next() int64 {
	if len(h) == 0 {
		return 1
	}
	return h[len(h)-1].Revision + 1
}

// Surplus are the oldest of the revisions that are not alive, beyond a limit: 10 if it
// is nil. A negative limit is none.
func (h History) Surplus(limit *int32, alive func(*appsv1.ControllerRevision) bool) []*appsv1.ControllerRevision {
	keep := 10
	if limit != nil {
		keep = int(*limit)
	}
	past := slices.DeleteFunc(slices.Clone(h), alive)
	if keep < 0 || len(past) <= keep {
		return nil
	}
	return past[:len(past)-keep]
}

// same compares data, whose fields a store may have put into another order.
func same(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, errA := canonical(a)
	y, errB := canonical(b)
	return errA == nil && errB == nil && bytes.Equal(x, y)
}

func canonical(data []byte) ([]byte, error) {
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// hash names data; collisions tell it from others of the same hash. It is the one that
// kube-controller-manager gives revisions of StatefulSets.
func hash(data []byte, collisions int32) string {
	h := fnv.New32()
	_, _ = h.Write(data) // a hash takes all
	_, _ = h.Write(strconv.AppendInt(nil, int64(collisions), 10))
	return rand.SafeEncodeString(strconv.FormatUint(uint64(h.Sum32()), 10))
}
