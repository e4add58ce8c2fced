package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/even-keel/evenkeel/server"
	"github.com/even-keel/evenkeel/server/auth"
	"github.com/even-keel/evenkeel/storage/embedded"
)

const writesPath = "/debug/evenkeel/writes"

type written struct {
	Revision, Previous                   uint64
	Resource, Namespace, Name, Type      string
	Reconcile, Manager, User, Verb, Time string
	Subresource                          string
}

// writes asks for writes by a query, and describes each in a line.
func (r *running) writes(query string) []string {
	r.t.Helper()
	got := r.do("GET", writesPath+"?"+query, "")
	var list struct{ Writes []written }
	if err := json.Unmarshal([]byte(got.body), &list); err != nil || got.code != 200 {
		r.t.Fatalf("%s was answered %d: %s", query, got.code, got.body)
	}
	var lines []string
	for _, w := range list.Writes {
		line := fmt.Sprintf("%s %s/%s %s", w.Resource, w.Namespace, w.Name, w.Type)
		if w.Reconcile != "" {
			line += fmt.Sprintf(" by %s: %s %s as %s with %s", w.Reconcile, w.Verb, w.Subresource, w.User, w.Manager)
		}
		if (w.Reconcile == "") != (w.Time == "") {
			line += " at " + w.Time
		}
		lines = append(lines, line)
	}
	return lines
}

func (r *running) mustTell(query string, want ...string) {
	r.t.Helper()
	if got := r.writes(query); !slices.Equal(got, want) {
		r.t.Errorf("%s tells\n%s\nnot\n%s", query, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// as sends a write of a reconcile, which must succeed, and returns its revision.
func (r *running) as(id, method, path, body, media string) string {
	r.t.Helper()
	got := r.do(method, path, body, "Evenkeel-Reconcile", id, "Content-Type", media, "User-Agent", "foo/v1")
	if got.code > 201 || strings.Contains(got.body, id) {
		r.t.Fatalf("%s %s was answered %d: %s", method, path, got.code, got.body)
	}
	return fmt.Sprint(got.at("metadata", "resourceVersion"))
}

const pods = "/api/v1/namespaces/default/pods"

// writePod makes a pod, changes it and deletes it, by reconciles and without. It
// returns the pod's first revision.
func (r *running) writePod() string {
	r.t.Helper()
	first := r.as("rec-1", "POST", pods, `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`, "application/json")
	r.as("rec-2", "PATCH", pods+"/p/status?fieldManager=bar", `{"status":{"message":"m"}}`, merge)
	if got := r.do("PATCH", pods+"/p", `{"metadata":{"labels":{"a":"b"}}}`, "Content-Type", merge); got.code != 200 {
		r.t.Fatal(got.body)
	}
	r.as("rec-2", "DELETE", pods+"/p", "", "application/json")
	return first
}

var podWrites = []string{
	"pods default/p DELETED by rec-2: delete  as admin with foo",
	"pods default/p MODIFIED",
	"pods default/p MODIFIED by rec-2: patch status as admin with bar",
	"pods default/p ADDED by rec-1: create  as admin with foo",
}

func TestARevisionKnowsItsReconcile(t *testing.T) {
	r := start(t, memoryStore(t), nil)
	r.as("rec-2", "POST", pods, `{"metadata":{"name":"p2"},"spec":{"containers":[{"name":"c","image":"i"}]}}`, "application/json")
	r.as("rec-3", "POST", "/api/v1/nodes", `{"metadata":{"name":"n"}}`, "application/json")
	first := r.writePod()
	r.mustTell("resource=pods&namespace=default&name=p", podWrites...)
	r.mustTell("resource=pods&namespace=default&name=p&limit=2", podWrites[:2]...)
	r.mustTell("revision="+first, podWrites[3])
	r.mustTell("reconcile=rec-2", podWrites[0], podWrites[2], "pods default/p2 ADDED by rec-2: create  as admin with foo")
	r.mustTell("resource=nodes&name=n", "nodes /n ADDED by rec-3: create  as admin with foo")
	r.mustTell("resource=nodes&name=absent")
	r.mustTell("resource=configmaps&namespace=nowhere")
	if all := r.writes("resource=pods"); len(all) != 5 {
		t.Errorf("of all pods it tells %q", all)
	}
}

func TestClientsDoNotSeeTheReconcile(t *testing.T) {
	r := start(t, memoryStore(t), nil)
	r.as("secret-id", "POST", configMaps, `{"metadata":{"name":"a"}}`, "application/json")
	for what, path := range map[string]string{
		"get": configMaps + "/a", "list": configMaps, "watch": configMaps + "?watch=1&resourceVersion=1&timeoutSeconds=1",
		"table": configMaps + "?includeObject=Object",
	} {
		if got := r.do("GET", path, ""); got.code != 200 || !strings.Contains(got.body, `"name":"a"`) || strings.Contains(got.body, "secret-id") {
			t.Errorf("%s was answered %d: %s", what, got.code, got.body)
		}
	}
}

func TestAReconcileThatCannotBeKeptIsABadRequest(t *testing.T) {
	r := start(t, memoryStore(t), nil)
	create := func(id string) reply {
		return r.do("POST", configMaps, `{"metadata":{"generateName":"a-"}}`, "Evenkeel-Reconcile", id)
	}
	for _, id := range []string{"", strings.Repeat("x", 129), "ü", "a\tb"} {
		if got := create(id); got.code != 400 {
			t.Errorf("%q was answered %d", id, got.code)
		}
	}
	long := strings.Repeat("x", 126) + " ~"
	if got := create(long); got.code != 201 {
		t.Errorf("%q was answered %s", long, got.body)
	}
	if got := r.writes("reconcile=" + url.QueryEscape(long)); len(got) != 1 {
		t.Errorf("it tells %q", got)
	}
	if got := r.do("GET", configMaps, "", "Evenkeel-Reconcile", ""); got.code != 200 {
		t.Errorf("a read was answered %d", got.code)
	}
}

func TestBadQuestionsAboutWrites(t *testing.T) {
	r := start(t, memoryStore(t), nil)
	for query, code := range map[string]int{
		"revision=x": 400, "revision=0": 400, "limit=0": 400, "limit=1001": 400, "name=a": 400, "namespace=a": 400,
		"revision=1": 410, "revision=99999999": 504,
	} {
		if got := r.do("GET", writesPath+"?"+query, ""); got.code != code {
			t.Errorf("%s was answered %d: %s", query, got.code, got.body)
		}
	}
	if got := r.do("POST", writesPath, "{}"); got.code != 405 {
		t.Errorf("a POST was answered %d", got.code)
	}
}

func TestWritesAreToldToThoseWhoMayKnow(t *testing.T) {
	r := start(t, memoryStore(t), nil)
	if got := r.do("GET", writesPath, "", "Authorization", "Bearer "+nobody); got.code != 403 {
		t.Errorf("somebody was answered %d", got.code)
	}
	asked := auth.Attributes{}
	r = start(t, memoryStore(t), func(c *server.Config) {
		c.Authorizer = auth.AuthorizerFunc(func(_ context.Context, _ auth.User, a auth.Attributes) (auth.Decision, error) {
			asked = a
			return auth.Decision{Allowed: true}, nil
		})
	})
	if got := r.do("GET", writesPath, ""); got.code != 200 || asked != (auth.Attributes{Verb: "get", Path: writesPath}) {
		t.Errorf("it was answered %d, after %+v was asked", got.code, asked)
	}
}

func TestReconcilesOutliveTheServerAndGoWithHistory(t *testing.T) {
	dir := t.TempDir()
	open := func() *embedded.Store {
		store, err := embedded.Open(embedded.Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		return store
	}
	store := open()
	r := start(t, store, nil)
	first := r.writePod()
	r.as("rec-4", "POST", configMaps, `{"metadata":{"name":"stays"}}`, "application/json")
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}

	store = open()
	r = start(t, store, nil)
	t.Cleanup(func() {
		_ = r.stop()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	r.mustTell("resource=pods&namespace=default&name=p", podWrites...)
	r.mustTell("resource=configmaps&namespace=default&name=stays", "configmaps default/stays ADDED by rec-4: create  as admin with foo")

	head, err := store.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Compact(t.Context(), head); err != nil {
		t.Fatal(err)
	}
	r.mustTell("resource=pods&namespace=default&name=p")
	r.mustTell("resource=configmaps&namespace=default&name=stays", "configmaps default/stays  by rec-4: create  as admin with foo")
	if got := r.do("GET", writesPath+"?revision="+first, ""); got.code != 410 {
		t.Errorf("a revision that is gone was answered %d: %s", got.code, got.body)
	}
}
