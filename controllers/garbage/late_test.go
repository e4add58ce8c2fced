package garbage_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/evenkeeltest"
)

// slowWriter sends nothing while its gate is locked.
type slowWriter struct {
	http.ResponseWriter
	gate *sync.RWMutex
}

func (w slowWriter) Write(p []byte) (int, error) {
	w.gate.RLock()
	defer w.gate.RUnlock()
	return w.ResponseWriter.Write(p)
}

func (w slowWriter) Flush() {
	w.gate.RLock()
	defer w.gate.RUnlock()
	_ = http.NewResponseController(w.ResponseWriter).Flush()
}

// TestOrphansStayThatTheCollectorHearsOfLate: the watch of a dependent's kind is
// behind that of its owner's, so that the owner is gone when the dependent appears.
func TestOrphansStayThatTheCollectorHearsOfLate(t *testing.T) {
	env := evenkeeltest.Start(t)
	env.Apply(definition(widget, "widgets", "Namespaced"))
	s := &scene{Env: env, t: t, conn: env.Conn()}
	var gate sync.RWMutex
	cfg := env.InFront(t, func(w http.ResponseWriter, r *http.Request, server http.Handler) {
		if strings.HasSuffix(r.URL.Path, "/secrets") {
			w = slowWriter{w, &gate}
		}
		server.ServeHTTP(w, r)
	})
	env.Run(func(ctx context.Context, _ *rest.Config) error { return collect(ctx, cfg) })
	s.settle()
	root, other := s.make(configMap, "root"), s.make(configMap, "other")
	gate.Lock()
	child := s.make(secret, "child", ownedBy(root))
	grown := s.make(secret, "grown", ownedBy(other))
	s.delete(root, orphan)
	s.delete(other, background)
	s.gone(root, other)
	gate.Unlock()
	s.gone(grown)
	s.eventually(child, ownersAre())
	s.there(child)
}

// TestOwnersGoWithTheirDefinition: the collector was away when a definition and its
// objects were deleted, so that no event told of these, and nobody can be asked.
func TestOwnersGoWithTheirDefinition(t *testing.T) {
	env := evenkeeltest.Start(t)
	env.Apply(definition(widget, "widgets", "Namespaced"))
	s := &scene{Env: env, t: t, conn: env.Conn()}
	var away atomic.Bool
	cfg := env.InFront(t, func(w http.ResponseWriter, r *http.Request, server http.Handler) {
		if away.Load() && strings.HasSuffix(r.URL.Path, "/planets") {
			http.Error(w, "not now", http.StatusServiceUnavailable)
			return
		}
		server.ServeHTTP(w, r)
	})
	env.Run(func(ctx context.Context, _ *rest.Config) error { return collect(ctx, cfg) })
	env.Apply(definition(planet, "planets", "Cluster"))
	s.gone(s.make(planet, "known", ownedByNobody(planet, "nobody"))) // it watches planets
	sun := s.make(planet, "sun")
	tree := s.make(configMap, "tree", ownedBy(sun))
	s.settle()
	away.Store(true)
	env.Cut()
	crd := newObject(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"), "planets.example.com", in(""))
	s.delete(crd, background)
	s.gone(crd)
	away.Store(false)
	s.gone(tree)
}
