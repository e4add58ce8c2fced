package client_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/even-keel/evenkeel/client"
)

func TestWritesCarryTheHeadersOfTheirContext(t *testing.T) {
	var mu sync.Mutex
	var saw []string
	cfg := theServer.InFront(t, func(w http.ResponseWriter, r *http.Request, server http.Handler) {
		mu.Lock()
		saw = append(saw, r.Method+" "+strings.Join(r.Header.Values("X-Who"), "+")+" "+r.Header.Get("X-Why")+" "+r.Header.Get("Content-Type"))
		mu.Unlock()
		server.ServeHTTP(w, r)
	})
	conn, ns := connectAs(t, jsonOnly(cfg))
	maps := client.Of[*corev1.ConfigMap](conn).In(ns)
	pods := client.Of[*corev1.Pod](conn).In(ns)
	ctx := client.WithHeader(t.Context(), "x-who", "before")
	ctx = client.WithHeader(ctx, "X-Who", "me")
	ctx = client.WithHeader(ctx, "X-Why", "so")
	ctx = client.WithHeader(ctx, "Content-Type", "text/plain")
	key := client.Key{Name: "a"}

	for name, test := range map[string]struct {
		do   func(context.Context) error
		want string
	}{
		"get":              {func(ctx context.Context) error { _, err := maps.Get(ctx, key); return err }, "GET   "},
		"list":             {func(ctx context.Context) error { _, _, err := maps.All(ctx); return err }, "GET   "},
		"create":           {func(ctx context.Context) error { _, err := maps.Create(ctx, configMap("a", nil)); return err }, "POST me so application/json"},
		"update":           {func(ctx context.Context) error { _, err := maps.Update(ctx, configMap("a", nil)); return err }, "PUT me so application/json"},
		"patch":            {func(ctx context.Context) error { _, err := maps.Patch(ctx, key, client.MergePatch(`{}`)); return err }, "PATCH me so application/merge-patch+json"},
		"delete":           {func(ctx context.Context) error { return maps.Delete(ctx, key) }, "DELETE me so application/json"},
		"deletecollection": {func(ctx context.Context) error { return maps.DeleteCollection(ctx) }, "DELETE me so application/json"},
		"subresource": {func(ctx context.Context) error {
			_, err := client.Sub[*policyv1.Eviction](pods, "eviction").Create(ctx, key, &policyv1.Eviction{})
			return err
		}, "POST me so application/json"},
	} {
		t.Run(name, func(t *testing.T) {
			for what, ctx := range map[string]context.Context{"with": ctx, "without": t.Context()} {
				mu.Lock()
				saw = nil
				mu.Unlock()
				_ = test.do(ctx) // whether it exists does not matter
				want := test.want
				if what == "without" {
					want = strings.Replace(want, " me so ", "   ", 1)
				}
				mu.Lock()
				if !slices.Equal(saw, []string{want}) {
					t.Errorf("%s: the server got %q, not %q", what, saw, want)
				}
				mu.Unlock()
			}
		})
	}
}

func TestAHeaderThatCannotBeSentFailsTheWrite(t *testing.T) {
	conn, ns := connect(t)
	maps := client.Of[*corev1.ConfigMap](conn).In(ns)
	ctx := client.WithHeader(t.Context(), client.ReconcileHeader, "a\nb")
	if _, err := maps.Create(ctx, configMap("a", nil)); err == nil || !strings.Contains(err.Error(), "header") {
		t.Errorf("it returned %v", err)
	}
	if _, err := maps.Get(t.Context(), client.Key{Name: "a"}); !client.IsNotFound(err) {
		t.Errorf("it was written: %v", err)
	}
}

func ExampleWithHeader() {
	conn, ns := example()
	ctx := client.WithHeader(context.Background(), client.ReconcileHeader, "foo-17")
	_, err := client.Of[*corev1.ConfigMap](conn).In(ns).Create(ctx, configMap("a", nil))
	fmt.Println(err)
	// Output: <nil>
}
