package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/server/watch"
	"github.com/even-keel/evenkeel/storage"
)

// reports are the statuses that definitions are to get, the latest of each.
type reports struct {
	definitions *definitions
	more        chan struct{}

	mu      sync.Mutex
	pending map[string]report
}

// report is for a definition that still is as it was seen. One that is not will
// be looked at again.
type report struct {
	seen   *watch.Object
	status apiextensionsv1.CustomResourceDefinitionStatus
}

func newReports(d *definitions) *reports {
	return &reports{definitions: d, more: make(chan struct{}, 1), pending: map[string]report{}}
}

func (r *reports) put(seen *watch.Object, status apiextensionsv1.CustomResourceDefinitionStatus) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending[seen.Name] = report{seen, status}
	select {
	case r.more <- struct{}{}:
	default:
	}
}

func (r *reports) take() []report {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := slices.Collect(maps.Values(r.pending))
	clear(r.pending)
	slices.SortFunc(taken, func(a, b report) int { return int(a.seen.Revision) - int(b.seen.Revision) })
	return taken
}

// run writes reports until ctx ends.
func (r *reports) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.more:
		}
		for _, one := range r.take() {
			_, err := r.definitions.edit(ctx, one.seen, func(d *storedDefinition) { d.Status = one.status })
			if err != nil && ctx.Err() == nil {
				r.definitions.api.log.Error("the status of a custom resource definition was not written", "name", one.seen.Name, "error", err)
			}
		}
	}
}

// storedDefinition is a definition whose spec, which is most of it, is left as
// it is stored.
type storedDefinition struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ObjectMeta                              `json:"metadata"`
	Spec            json.RawMessage                                `json:"spec"`
	Status          apiextensionsv1.CustomResourceDefinitionStatus `json:"status"`
}

// withoutSpec is the definition as far as it is not its spec.
func (d storedDefinition) withoutSpec() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{TypeMeta: d.TypeMeta, ObjectMeta: d.Metadata, Status: d.Status}
}

// edit changes the status or the finalizers of a definition, as its status
// endpoint would. It reports false if the definition is no longer as it was seen.
func (d *definitions) edit(ctx context.Context, seen *watch.Object, change func(*storedDefinition)) (done bool, err error) {
	var now storedDefinition
	if err := json.Unmarshal(seen.AppendJSON(make([]byte, 0, seen.Len())), &now); err != nil {
		return false, fmt.Errorf("decode %s: %w", seen.Name, err)
	}
	was := now.withoutSpec().DeepCopy()
	change(&now)
	is := now.withoutSpec()
	r := d.resource()
	// Nobody comes to own anything of the spec through the status.
	if _, err := r.fields("status").Update(was, is, ownManager); err != nil {
		d.api.log.Warn("managed fields were not updated", "resource", r.storage, "name", seen.Name, "error", err)
	}
	now.Metadata.ManagedFields = is.ManagedFields
	if finished(is) {
		_, err = d.api.remove(ctx, r, seen)
	} else {
		err = d.replace(ctx, seen, now)
	}
	if errors.Is(err, storage.ErrConflict) {
		return false, nil
	}
	return err == nil, err
}

func (d *definitions) replace(ctx context.Context, seen *watch.Object, with storedDefinition) error {
	with.Metadata.ResourceVersion = watch.Placeholder
	text, err := json.Marshal(with)
	if err != nil {
		return fmt.Errorf("encode %s: %w", seen.Name, err)
	}
	value, err := watch.Stored(text)
	if err != nil {
		return err
	}
	result, err := d.api.store.Commit(ctx, storage.Replace(watch.Key(definitionStorage, "", seen.Name), value, seen.Revision))
	if err != nil {
		return err
	}
	return d.api.hub.Wait(ctx, result.Revision)
}
