package client_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/even-keel/evenkeel/client"
)

func TestServedTellsResourcesOfAllGroups(t *testing.T) {
	conn, _ := connect(t)
	served, err := conn.Served(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]client.ServedResource{}
	for _, r := range served.Resources {
		found[r.GroupVersionResource.String()] = r
	}
	pods := found["/v1, Resource=pods"]
	if pods.Kind != "Pod" || !pods.Namespaced || !pods.Can("list", "watch", "deletecollection") || pods.Can("list", "fly") {
		t.Errorf("pods are %+v", pods)
	}
	if roles := found["rbac.authorization.k8s.io/v1, Resource=clusterroles"]; roles.Kind != "ClusterRole" || roles.Namespaced {
		t.Errorf("cluster roles are %+v", roles)
	}
	if reviews := found["authorization.k8s.io/v1, Resource=subjectaccessreviews"]; !reviews.Can("create") || reviews.Can("list") {
		t.Errorf("reviews are %+v", reviews)
	}
	if len(served.Stale) != 0 {
		t.Errorf("stale: %v", served.Stale)
	}
}

func TestServedTellsWhatTheServerCannot(t *testing.T) {
	const stale = `{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"metrics.example.com"},"versions":[{"version":"v1","freshness":"Stale"}]}]}`
	for name, test := range map[string]struct {
		answer string
		want   string
	}{
		"a group that is down":                {stale, "[metrics.example.com/v1] <nil>"},
		"a server that tells one by one only": {`{"kind":"APIGroupList","groups":[]}`, "[] malformed answer"},
		"no document":                         {`[`, "[] malformed answer"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := theServer.InFront(t, func(w http.ResponseWriter, r *http.Request, server http.Handler) {
				if r.URL.Path != "/apis" {
					server.ServeHTTP(w, r)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, test.answer)
			})
			conn, _ := connectAs(t, cfg)
			served, err := conn.Served(t.Context())
			if errors.Is(err, client.ErrMalformed) {
				err = client.ErrMalformed
			}
			if got := fmt.Sprint(served.Stale, err); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
