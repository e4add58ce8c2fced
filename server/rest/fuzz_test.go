package rest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/even-keel/evenkeel/server/kinds"
	"github.com/even-keel/evenkeel/server/rest"
	"github.com/even-keel/evenkeel/server/watch"
	"github.com/even-keel/evenkeel/storage/embedded"
)

// newAPI returns an API over a store in memory, with a namespace, a ConfigMap, a
// Pod and a Deployment in it.
func newAPI(t testing.TB) *rest.API {
	t.Helper()
	api, _ := newAPIAt(t, time.Now())
	return api
}

// clock is a time that tests set.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func newAPIAt(t testing.TB, now time.Time) (*rest.API, *clock) {
	t.Helper()
	at := &clock{now: now}
	store, err := embedded.Open(embedded.Options{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	hub := watch.New(store)
	ctx, cancel := context.WithCancel(context.Background())
	if err := hub.Load(ctx); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- hub.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	api := rest.New(rest.Config{Store: store, Hub: hub, Kinds: kinds.All(), Scheme: kinds.Scheme(), Address: "127.0.0.1:6443", Now: at.Now})
	for path, body := range map[string]string{
		"/api/v1/namespaces": `{"metadata":{"name":"default"}}`,
	} {
		mustCreate(t, api, path, body)
	}
	mustCreate(t, api, maps, `{"metadata":{"name":"a","labels":{"app":"x"}},"data":{"a":"1"}}`)
	mustCreate(t, api, "/api/v1/namespaces/default/pods", podJSON)
	mustCreate(t, api, deployments, deploymentJSON)
	return api, at
}

const (
	maps           = "/api/v1/namespaces/default/configmaps"
	deployments    = "/apis/apps/v1/namespaces/default/deployments"
	podJSON        = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i","resources":{"limits":{"cpu":"1"}}}]}}`
	deploymentJSON = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`
)

func mustCreate(t testing.TB, api *rest.API, path, body string) {
	t.Helper()
	if got := send(api, "POST", path, "application/json", "", []byte(body)); got.Code != http.StatusCreated {
		t.Fatalf("POST %s: %d %s", path, got.Code, got.Body)
	}
}

// send makes a request that ends by itself, be it a watch.
func send(api *rest.API, method, path, media, accept string, body []byte) *httptest.ResponseRecorder {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	target, err := url.ParseRequestURI(path)
	if err != nil {
		target = &url.URL{Path: "/"}
	}
	r := (&http.Request{
		Method: method, URL: target, Header: http.Header{}, Body: http.NoBody, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(ctx)
	if body != nil {
		r.Body = http.MaxBytesReader(nil, readCloser{bytes.NewReader(body)}, 4<<20)
	}
	r.Header.Set("Content-Type", media)
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	w := httptest.NewRecorder()
	api.ServeHTTP(w, r)
	return w
}

type readCloser struct{ *bytes.Reader }

func (readCloser) Close() error { return nil }

// expected are the messages of the 500s that the real server was seen to give,
// too.
var expected = []string{
	"resourceVersion should not be set on objects to be created", "strconv.ParseUint", "failed to create typed patch object",
	"target.name: Required value", "target.kind: Unsupported value", "does not contain declared merge key",
}

// check fails unless an answer is an object, a Status or a document, and the
// server still answers.
func check(t *testing.T, api *rest.API, got *httptest.ResponseRecorder, request string) {
	t.Helper()
	media := got.Header().Get("Content-Type")
	if got.Code >= 500 && got.Code != http.StatusGatewayTimeout && got.Code != http.StatusNotImplemented {
		known := false
		for _, e := range expected {
			known = known || strings.Contains(got.Body.String(), e)
		}
		if !known {
			t.Errorf("%s: %d %.500s", request, got.Code, got.Body)
		}
	}
	if media == "application/json" && got.Code != http.StatusNotModified && got.Body.Len() > 0 && !bytes.Contains(got.Body.Bytes(), []byte(`{"type":"`)) {
		var m metav1.TypeMeta
		if err := json.Unmarshal(got.Body.Bytes(), &m); err != nil {
			t.Errorf("%s: %d with %v: %.300s", request, got.Code, err, got.Body)
		}
		if got.Code >= 400 && m.Kind != "Status" {
			t.Errorf("%s: %d without a Status: %.300s", request, got.Code, got.Body)
		}
	}
	if alive := send(api, "GET", maps, "", "", nil); alive.Code != http.StatusOK {
		t.Errorf("after %s the server answers %d %s", request, alive.Code, alive.Body)
	}
}

func FuzzBody(f *testing.F) {
	const js, yaml, proto = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
	for _, seed := range []string{podJSON, deploymentJSON, `{"metadata":{"generateName":"g-"},"data":{"a":"1"}}`, `[]`, `null`, `{"kind":"Secret","apiVersion":"v1"}`, `{"metadata":{"name":"x","ownerReferences":[{"uid":"1"},{"uid":"1"}],"finalizers":["x"]}}`} {
		f.Add(0, js, []byte(seed))
		f.Add(1, js, []byte(seed))
		f.Add(2, yaml, []byte(seed))
	}
	f.Add(1, yaml, []byte("metadata: &a {name: x}\nspec: *a\n"))
	f.Add(1, js, []byte(`{"metadata":{"name":"q"},"spec":{"containers":[{"name":"c","image":"i","resources":{"limits":{"cpu":"1e-9999999"}}}]}}`))
	var pod bytes.Buffer
	if err := protobuf.NewSerializer(kinds.Scheme(), kinds.Scheme()).Encode(&corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Name: "x"}}, &pod); err != nil {
		f.Fatal(err)
	}
	f.Add(1, proto, pod.Bytes())
	api := newAPI(f)
	paths := []string{maps, "/api/v1/namespaces/default/pods", deployments, "/api/v1/namespaces/default/services", "/api/v1/nodes", "/apis/batch/v1/namespaces/default/jobs", "/api/v1/namespaces/default/persistentvolumeclaims"}
	f.Fuzz(func(t *testing.T, which int, media string, body []byte) {
		path := paths[(which%len(paths)+len(paths))%len(paths)] + "?dryRun=All"
		check(t, api, send(api, "POST", path, media, "", body), path)
		check(t, api, send(api, "PUT", maps+"/a?dryRun=All", media, "", body), "PUT")
		check(t, api, send(api, "DELETE", maps+"/a?dryRun=All", media, "", append(bytes.Clone(body), []byte(" ")...)), "DELETE")
	})
}

func FuzzPatch(f *testing.F) {
	types := []string{"application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json", "application/apply-patch+yaml"}
	for i, seed := range []string{`[{"op":"add","path":"/spec/replicas","value":2}]`, `{"spec":{"replicas":2},"metadata":{"labels":{"a":"b"}}}`, `{"spec":{"template":{"spec":{"containers":[{"name":"c","$patch":"delete"}]}}}}`, deploymentJSON, `{"kind":null,"metadata":null}`, `[{"op":"copy","from":"","path":"/spec"}]`} {
		f.Add(i, []byte(seed))
		f.Add(i+1, []byte(seed))
	}
	api := newAPI(f)
	f.Fuzz(func(t *testing.T, which int, body []byte) {
		media := types[(which%4+4)%4]
		for _, path := range []string{"/d", "/d/status", "/d/scale"} {
			check(t, api, send(api, "PATCH", deployments+path+"?dryRun=All&fieldManager=m", media, "", body), media+" "+path)
		}
	})
}

func FuzzSelectors(f *testing.F) {
	for _, seed := range []string{"app=x", "app in (a,b)", "!app", "n>2", "metadata.name=a", "metadata.name!=a,metadata.namespace=default", "spec.nodeName=", `a=\,`, "=", "("} {
		f.Add(seed, seed, "")
	}
	f.Add("", "", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJkZWZhdWx0L2EifQ")
	f.Add("", "", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiLi4vYSJ9")
	api := newAPI(f)
	f.Fuzz(func(t *testing.T, labels, fields, token string) {
		q := url.Values{"labelSelector": {labels}, "fieldSelector": {fields}, "limit": {"1"}}
		if token != "" {
			q.Set("continue", token)
		}
		for _, path := range []string{maps, "/api/v1/pods", "/apis/events.k8s.io/v1/events"} {
			check(t, api, send(api, "GET", path+"?"+q.Encode(), "", "", nil), path+"?"+q.Encode())
		}
	})
}

func FuzzRequest(f *testing.F) {
	for _, seed := range [][3]string{
		{"GET", "/api/v1/namespaces/default/pods?watch=1&timeoutSeconds=1&resourceVersion=0", "application/json;as=Table;g=meta.k8s.io;v=v1"},
		{"GET", "/apis/apps/v1/deployments?limit=1&resourceVersion=0", "application/vnd.kubernetes.protobuf"},
		{"GET", "/api//v1", "application/json;q=0.1,application/yaml"}, {"GET", "/openapi/v3/api/v1?hash=x", ""}, {"GET", "/", ""},
		{"DELETE", "/api/v1/namespaces/default/configmaps/a?dryRun=All&propagationPolicy=Orphan", "*/*"},
		{"GET", "/apis", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}, {"OPTIONS", "/api/v1/nodes/..", ","},
		{"POST", "/api/v1/namespaces/default/pods/p/binding?dryRun=All", ""}, {"GET", "/api/v1/watch/namespaces/default/pods/p?timeoutSeconds=1", "application/yaml"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	api := newAPI(f)
	f.Fuzz(func(t *testing.T, method, path, accept string) {
		target, err := url.ParseRequestURI(path)
		if err != nil || method == "" || strings.ContainsAny(method, " \r\n") {
			return
		}
		q := target.Query()
		q.Set("dryRun", "All")       // the objects must stay
		q.Set("timeoutSeconds", "1") // watches must end
		if strings.Contains(path, "resourceVersion") {
			q.Set("resourceVersion", "0") // those of the future are waited for
		}
		target.RawQuery = q.Encode()
		check(t, api, send(api, method, target.String(), "application/json", accept, []byte("{}")), method+" "+target.String())
	})
}
