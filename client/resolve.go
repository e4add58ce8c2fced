package client

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// mapping knows how kinds are served that are not built in. It asks the server
// for one group and version when a kind of it is wanted, and again whenever a
// kind is missing: what does not exist is not remembered.
type mapping struct {
	conn *Conn

	mu       sync.Mutex
	versions map[schema.GroupVersion]*version
}

// version is what is known of one group and version.
type version struct {
	// turn is held by the one that asks; others who want to know the same wait
	// for its answer.
	turn chan struct{}

	mu        sync.Mutex
	resources []Resource
	answers   int
}

func (m *mapping) version(gv schema.GroupVersion) *version {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.versions[gv]
	if v == nil {
		v = &version{turn: make(chan struct{}, 1)}
		m.versions[gv] = v
	}
	return v
}

func (v *version) known() ([]Resource, int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.resources, v.answers
}

func (v *version) learn(resources []Resource) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.resources = resources
	v.answers++
}

// Resolve finds out how the server serves a kind. While it does not, the error
// is one that [IsNoKind] knows, and the next call asks again.
func (c *Conn) Resolve(ctx context.Context, kind schema.GroupVersionKind) (Resource, error) {
	r, err := c.mapping.find(ctx, kind.GroupVersion(), func(r Resource) bool { return r.Kind == kind.Kind })
	if err == nil && r == nil {
		err = &meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}}
	}
	if err != nil {
		return Resource{}, err
	}
	return *r, nil
}

// ResolveResource is Resolve for the name of a resource.
func (c *Conn) ResolveResource(ctx context.Context, resource schema.GroupVersionResource) (Resource, error) {
	r, err := c.mapping.find(ctx, resource.GroupVersion(), func(r Resource) bool { return r.Resource == resource.Resource })
	if err == nil && r == nil {
		err = &meta.NoResourceMatchError{PartialResource: resource}
	}
	if err != nil {
		return Resource{}, err
	}
	return *r, nil
}

// find returns nil if the server serves no such resource.
func (m *mapping) find(ctx context.Context, gv schema.GroupVersion, fits func(Resource) bool) (*Resource, error) {
	v := m.version(gv)
	known, answers := v.known()
	if r := first(known, fits); r != nil {
		return r, nil
	}
	select {
	case v.turn <- struct{}{}:
		defer func() { <-v.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if known, now := v.known(); now != answers { // somebody else has asked meanwhile
		return first(known, fits), nil
	}
	known, err := m.discover(ctx, gv)
	if err != nil {
		return nil, fmt.Errorf("discover %s: %w", gv, err)
	}
	v.learn(known)
	return first(known, fits), nil
}

func first(all []Resource, fits func(Resource) bool) *Resource {
	for i := range all {
		if fits(all[i]) {
			return &all[i]
		}
	}
	return nil
}

// forget makes the next call ask again.
func (m *mapping) forget(gv schema.GroupVersion) { m.version(gv).learn(nil) }

// discover returns nothing for a version that is not served.
func (m *mapping) discover(ctx context.Context, gv schema.GroupVersion) ([]Resource, error) {
	var list metav1.APIResourceList
	err := m.conn.getJSON(ctx, versionPath(gv), &list)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []Resource
	for _, r := range list.APIResources {
		if strings.Contains(r.Name, "/") {
			continue
		}
		out = append(out, Resource{GroupVersionResource: gv.WithResource(r.Name), Kind: r.Kind, Namespaced: r.Namespaced})
	}
	return out, nil
}

// versionPath is where the API of a version is.
func versionPath(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "/api/" + gv.Version
	}
	return "/apis/" + gv.Group + "/" + gv.Version
}

// getJSON reads a document that is not an object of a resource.
func (c *Conn) getJSON(ctx context.Context, path string, into any) error {
	body, err := c.read(ctx, &call{method: http.MethodGet, path: path, accept: mediaJSON})
	if err != nil {
		return err
	}
	defer body.free()
	return decodeJSON(body.bytes, into)
}
