package revision

import (
	"context"
	"errors"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/client"
)

// ErrCollisions says that all names that a revision could have are taken.
var ErrCollisions = errors.New("too many revisions have the same hash")

// attempts is how many names are tried for a revision.
const attempts = 10

// maxPrefix is how much of the owner's name is in that of a revision.
const maxPrefix = 223

// Subject is an object and the template that is to be its newest revision.
type Subject struct {
	Owner    client.Object
	Kind     schema.GroupVersionKind
	Template *corev1.PodTemplateSpec
	// Collisions is how often a name was found taken, as the owner's status tells.
	Collisions int32
	// HashLabel is the label of revisions that tells their hash.
	HashLabel string
}

// Record makes the subject's template the newest revision of its history, and returns
// the history with it as the last. If there was a revision of the template, it gets a
// new number, which is what a rollback is. The subject counts collisions.
func Record(ctx context.Context, revisions *client.Client[*appsv1.ControllerRevision], h History, s *Subject) (History, error) {
	data, err := Data(s.Template)
	if err != nil {
		return nil, fmt.Errorf("record the template of %s: %w", client.KeyOf(s.Owner), err)
	}
	found := h.with(data)
	switch {
	case found == nil:
		found, err = s.create(ctx, revisions, data, h.next())
	case found != h[len(h)-1]:
		found = found.DeepCopy()
		found.Revision = h.next()
		found, err = revisions.Update(ctx, found)
	default:
		return h, nil
	}
	if err != nil {
		return nil, fmt.Errorf("record the template of %s: %w", client.KeyOf(s.Owner), err)
	}
	var out History
	for _, r := range h {
		if r.Name != found.Name {
			out = append(out, r)
		}
	}
	return append(out, found), nil
}

// create makes a revision under the first name that is free, or is that of one with
// the same data that the owner controls.
func (s *Subject) create(ctx context.Context, revisions *client.Client[*appsv1.ControllerRevision], data []byte, number int64) (*appsv1.ControllerRevision, error) {
	for range attempts {
		r, err := revisions.Create(ctx, s.revision(data, number))
		if !client.IsAlreadyExists(err) {
			return r, err
		}
		there, err := revisions.Live().Get(ctx, client.KeyOf(s.revision(data, number)))
		switch {
		case client.IsNotFound(err):
			continue // it has just been deleted
		case err != nil:
			return nil, err
		case same(there.Data.Raw, data) && metav1.IsControlledBy(there, s.Owner):
			return there, nil
		}
		s.Collisions++
	}
	return nil, ErrCollisions
}

func (s *Subject) revision(data []byte, number int64) *appsv1.ControllerRevision {
	h := hash(data, s.Collisions)
	labels := maps.Clone(s.Template.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[s.HashLabel] = h
	prefix := s.Owner.GetName()
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Owner.GetNamespace(), Name: prefix[:min(len(prefix), maxPrefix)] + "-" + h,
			Labels: labels, Annotations: maps.Clone(s.Owner.GetAnnotations()),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s.Owner, s.Kind)},
		},
		Data:     runtime.RawExtension{Raw: data},
		Revision: number,
	}
}

// Trim deletes revisions.
func Trim(ctx context.Context, revisions *client.Client[*appsv1.ControllerRevision], surplus []*appsv1.ControllerRevision) error {
	for _, r := range surplus {
		err := revisions.Delete(ctx, client.KeyOf(r), client.IfUID(r.UID))
		if err != nil && !client.IsNotFound(err) && !client.IsConflict(err) {
			return fmt.Errorf("delete revision %s: %w", client.KeyOf(r), err)
		}
	}
	return nil
}
