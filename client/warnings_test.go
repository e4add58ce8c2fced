package client_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/even-keel/evenkeel/client"
)

type heard []string

func (h *heard) HandleWarningHeader(_ int, _, text string) { *h = append(*h, text) }

func TestWarningsAreLoggedOnce(t *testing.T) {
	cfg := theServer.InFront(t, func(w http.ResponseWriter, r *http.Request, server http.Handler) {
		w.Header().Add("Warning", `299 - "use something newer"`)
		server.ServeHTTP(w, r)
	})
	var log bytes.Buffer
	conn, ns := connectAs(t, cfg, client.Logger(slog.New(slog.NewTextHandler(&log, nil))))
	maps := client.Of[*corev1.ConfigMap](conn).In(ns)
	makeMaps(t, maps, "a", 3)
	if n := strings.Count(log.String(), "use something newer"); n != 1 {
		t.Errorf("it was logged %d times:\n%s", n, log.String())
	}
	var h heard
	cfg.WarningHandler = &h
	conn, ns = connectAs(t, cfg)
	makeMaps(t, client.Of[*corev1.ConfigMap](conn).In(ns), "a", 3)
	if len(h) != 3 {
		t.Errorf("a handler of one's own heard %v", h)
	}
}
