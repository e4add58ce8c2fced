package server_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/even-keel/evenkeel/server"
	"github.com/even-keel/evenkeel/server/auth"
	"github.com/even-keel/evenkeel/storage"
)

const (
	leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
	merge  = "application/merge-patch+json"
)

// lead makes a lease that a holds, and returns the fence of its term.
func (r *running) lead() string {
	r.t.Helper()
	made := r.do("POST", leases, `{"metadata":{"name":"l"},"spec":{"holderIdentity":"a","leaseTransitions":3}}`)
	if made.code != 201 {
		r.t.Fatal(made.body)
	}
	return fmt.Sprintf("default/l/%s/3/a", made.at("metadata", "uid"))
}

// lease changes the lease, for an elector whose writes carry no fence.
func (r *running) lease(spec string) {
	r.t.Helper()
	if got := r.do("PATCH", leases+"/l", `{"spec":`+spec+`}`, "Content-Type", merge); got.code != 200 {
		r.t.Fatal(got.body)
	}
}

func isFenced(got reply) bool {
	return got.code == 409 && got.at("reason") == "Conflict" && strings.Contains(got.body, `"causes":[{"reason":"FenceLost"`)
}

// fencedWrites are a write of each kind, to what makeFenced has made.
var fencedWrites = map[string]struct{ method, path, body, media string }{
	"create":            {"POST", configMaps, `{"metadata":{"name":"new"}}`, ""},
	"update":            {"PUT", configMaps + "/a", `{"metadata":{"name":"a"},"data":{"a":"1"}}`, ""},
	"patch":             {"PATCH", configMaps + "/a", `{"data":{"a":"1"}}`, merge},
	"apply":             {"PATCH", configMaps + "/a?fieldManager=m", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"b":"1"}}`, "application/apply-patch+yaml"},
	"apply what is new": {"PATCH", configMaps + "/new?fieldManager=m", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"new"}}`, "application/apply-patch+yaml"},
	"delete":            {"DELETE", configMaps + "/a", "", ""},
	"delete all":        {"DELETE", configMaps, "", ""},
	"status":            {"PATCH", "/api/v1/namespaces/default/pods/p/status", `{"status":{"message":"m"}}`, merge},
	"binding":           {"POST", "/api/v1/namespaces/default/pods/p/binding", `{"metadata":{"name":"p"},"target":{"kind":"Node","name":"n"}}`, ""},
	"eviction":          {"POST", "/api/v1/namespaces/default/pods/p/eviction", `{"metadata":{"name":"p"}}`, ""},
	"scale":             {"PATCH", "/apis/apps/v1/namespaces/default/replicasets/r/scale", `{"spec":{"replicas":3}}`, merge},
	"service":           {"POST", "/api/v1/namespaces/default/services", `{"metadata":{"name":"s"},"spec":{"type":"NodePort","ports":[{"port":80}]}}`, ""},
	"the lease itself":  {"PATCH", leases + "/l", `{"metadata":{"labels":{"a":"b"}}}`, merge},
}

func (r *running) makeFenced() {
	r.t.Helper()
	for path, body := range map[string]string{
		configMaps:                        `{"metadata":{"name":"a"}}`,
		"/api/v1/namespaces/default/pods": `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`,
		"/apis/apps/v1/namespaces/default/replicasets": `{"metadata":{"name":"r"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`,
	} {
		if got := r.do("POST", path, body); got.code != 201 {
			r.t.Fatal(got.body)
		}
	}
}

func (r *running) fenced(name, fence string) reply {
	w := fencedWrites[name]
	media := w.media
	if media == "" {
		media = "application/json"
	}
	return r.do(w.method, w.path, w.body, "Content-Type", media, "Evenkeel-Fence", fence)
}

func TestWritesOfThePresentTermHappen(t *testing.T) {
	for name := range fencedWrites {
		t.Run(name, func(t *testing.T) {
			r := start(t, memoryStore(t), nil)
			fence := r.lead()
			r.makeFenced()
			if got := r.fenced(name, fence); got.code > 201 {
				t.Errorf("answered %d: %s", got.code, got.body)
			}
		})
	}
}

func TestWritesOfAPastTermAreRefused(t *testing.T) {
	store := memoryStore(t)
	r := start(t, store, nil)
	fence := r.lead()
	r.makeFenced()
	head := func() storage.Revision {
		at, err := store.Head(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	for name, lost := range map[string]struct{ spec, why string }{
		"taken by another": {`{"holderIdentity":"b","leaseTransitions":4}`, `held by \"b\", with 4 transitions`},
		"taken anew":       {`{"holderIdentity":"a","leaseTransitions":5}`, `held by \"a\", with 5 transitions`},
		"released":         {`{"holderIdentity":"","leaseTransitions":3}`, "it has been released"},
	} {
		t.Run(name, func(t *testing.T) {
			r.lease(lost.spec)
			before := head()
			for write := range fencedWrites {
				if got := r.fenced(write, fence); !isFenced(got) || !strings.Contains(got.body, lost.why) {
					t.Errorf("%s was answered %d: %s", write, got.code, got.body)
				}
			}
			if after := head(); after != before {
				t.Errorf("something was written: %d came after %d", after, before)
			}
		})
	}
	r.lease(`{"holderIdentity":"a","leaseTransitions":3}`)
	if got := r.fenced("patch", fence); got.code != 200 {
		t.Errorf("in its term again it was answered %d: %s", got.code, got.body)
	}
	r.do("DELETE", leases+"/l", "")
	if got := r.fenced("patch", fence); !isFenced(got) || !strings.Contains(got.body, "there is no such lease") {
		t.Errorf("without a lease it was answered %d: %s", got.code, got.body)
	}
	r.lead()
	if got := r.fenced("patch", fence); !isFenced(got) || !strings.Contains(got.body, "another lease has its name") {
		t.Errorf("with another lease it was answered %d: %s", got.code, got.body)
	}
}

func TestAFenceThatCannotBeReadIsABadRequest(t *testing.T) {
	r := start(t, memoryStore(t), nil)
	r.lead()
	r.makeFenced()
	for _, fence := range []string{"", "x", "a/b/c/d", "default/l/u/x/h", "default/l/u/-1/h", "default/l/u/3/", "default/l//3/a", "default/l/u/3/%zz"} {
		if got := r.fenced("patch", fence); got.code != 400 {
			t.Errorf("%q was answered %d: %s", fence, got.code, got.body)
		}
		if got := r.do("GET", configMaps+"/a", "", "Evenkeel-Fence", fence); got.code != 200 {
			t.Errorf("a read with %q was answered %d", fence, got.code)
		}
	}
}

// delayed is a store whose next guarded write comes late: something is done first.
type delayed struct {
	storage.Store
	first atomic.Pointer[func()]
}

func (s *delayed) Commit(ctx context.Context, w storage.Write) (storage.Result, error) {
	if w.Guard != nil {
		if first := s.first.Swap(nil); first != nil {
			(*first)()
		}
	}
	return s.Store.Commit(ctx, w)
}

// The leader is deposed when its write has passed every check and is about to be
// committed.
func TestAFenceHoldsAtTheMomentOfTheCommit(t *testing.T) {
	for name := range fencedWrites {
		t.Run(name, func(t *testing.T) {
			store := &delayed{Store: memoryStore(t)}
			r := start(t, store, nil)
			fence := r.lead()
			r.makeFenced()
			var taken storage.Revision
			take := func() {
				r.lease(`{"holderIdentity":"b","leaseTransitions":4}`)
				taken, _ = store.Head(t.Context())
			}
			store.first.Store(&take)
			if got := r.fenced(name, fence); !isFenced(got) {
				t.Errorf("it was answered %d: %s", got.code, got.body)
			}
			if head, err := store.Head(t.Context()); err != nil || taken == 0 || head != taken {
				t.Errorf("something was written: %d came after %d, %v", head, taken, err)
			}
		})
	}
}

func TestARenewalDoesNotLoseTheFence(t *testing.T) {
	for name := range fencedWrites {
		t.Run(name, func(t *testing.T) {
			store := &delayed{Store: memoryStore(t)}
			r := start(t, store, nil)
			fence := r.lead()
			r.makeFenced()
			renewals := 0
			var renew func()
			renew = func() {
				if renewals++; renewals < 3 {
					store.first.Store(&renew)
				}
				r.lease(fmt.Sprintf(`{"leaseDurationSeconds":%d}`, renewals))
			}
			store.first.Store(&renew)
			if got := r.fenced(name, fence); got.code > 201 {
				t.Errorf("it was answered %d: %s", got.code, got.body)
			}
			if renewals != 3 {
				t.Errorf("there were %d renewals", renewals)
			}
		})
	}
}

// Who may not read the lease learns nothing of it.
func TestALostFenceTellsNoSecrets(t *testing.T) {
	r := start(t, memoryStore(t), func(c *server.Config) {
		c.Authorizer = auth.AuthorizerFunc(func(_ context.Context, u auth.User, a auth.Attributes) (auth.Decision, error) {
			return auth.Decision{Allowed: u.In(auth.GroupMasters) || a.Resource == "configmaps"}, nil
		})
	})
	fence := r.lead()
	r.lease(`{"holderIdentity":"secret-b","leaseTransitions":4}`)
	late := func(fence string) reply {
		return r.do("POST", configMaps, `{"metadata":{"name":"late"}}`, "Evenkeel-Fence", fence, "Authorization", "Bearer "+nobody)
	}
	lost, guessed := late(fence), late("default/l/guess/4/secret-b")
	if !isFenced(lost) || strings.Contains(lost.body, "secret-b") || lost.body != guessed.body {
		t.Errorf("it was answered %s, and a guess %s", lost.body, guessed.body)
	}
	absent := late("default/absent/guess/4/b")
	if strings.ReplaceAll(absent.body, "absent", "l") != lost.body {
		t.Errorf("of a lease that does not exist it was answered %s", absent.body)
	}
}
