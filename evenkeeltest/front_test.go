package evenkeeltest_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
)

func TestWhatIsInFrontAnswersOrHandsOn(t *testing.T) {
	t.Run("outside", func(t *testing.T) { inFront(t, evenkeeltest.Start(t)) })
	t.Run("in a bubble", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { inFront(t, evenkeeltest.Start(t, evenkeeltest.Bubble())) })
	})
}

func inFront(t *testing.T, env *evenkeeltest.Env) {
	var busy, asked atomic.Int32
	busy.Store(1)
	cfg := env.InFront(t, func(w http.ResponseWriter, r *http.Request, server http.Handler) {
		asked.Add(1)
		if busy.Add(-1) >= 0 {
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return
		}
		server.ServeHTTP(w, r)
	})
	conn, err := client.Connect(cfg, client.Retries(0))
	if err != nil {
		t.Fatal(err)
	}
	maps := client.Of[*corev1.ConfigMap](conn).In("default")
	if _, err := maps.Create(t.Context(), config("a")); err == nil {
		t.Error("nobody was in front of the server")
	}
	if _, err := maps.Create(t.Context(), config("a")); err != nil {
		t.Error(err)
	}
	seen := 0
	for event, err := range maps.Watch(t.Context(), client.InitialEvents()) { // one event after the other
		if err != nil {
			t.Fatal(err)
		}
		if event.Type != client.Added {
			continue
		}
		if seen++; seen == 3 {
			break
		}
		if _, err := maps.Create(t.Context(), config([]string{"b", "c"}[seen-1])); err != nil {
			t.Fatal(err)
		}
	}
	if n := asked.Load(); n < 4 {
		t.Errorf("%d requests came by", n)
	}
}
