package custom

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/even-keel/evenkeel/server/auth"
	"github.com/even-keel/evenkeel/test/compat/cluster"
)

// review is what of a ConversionReview matters here.
type review struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Request    *request  `json:"request,omitempty"`
	Response   *response `json:"response,omitempty"`
}

type request struct {
	UID     string   `json:"uid"`
	Version string   `json:"desiredAPIVersion"`
	Objects []object `json:"objects"`
}

type response struct {
	UID     string        `json:"uid"`
	Objects []object      `json:"convertedObjects"`
	Result  metav1.Status `json:"result"`
}

// hook is a webhook over HTTPS that takes hosts apart and puts them together.
// spoil, if any, changes its answers.
type hook struct {
	*httptest.Server
	ca    []byte
	calls atomic.Int64
	spoil atomic.Pointer[func(w http.ResponseWriter, r *http.Request, answer *review) bool]
}

// newHook starts a hook at an address, which is known by that and other names.
func newHook(t *testing.T, at string, names ...string) *hook {
	t.Helper()
	c := must(auth.NewCredentials(auth.CredentialOptions{Hosts: append(names, at)}))(t)
	h := &hook{ca: c.CAPEM}
	h.Server = &httptest.Server{
		Listener: must(net.Listen("tcp", net.JoinHostPort(at, "0")))(t),
		Config:   &http.Server{Handler: http.HandlerFunc(h.serve)},
	}
	h.TLS = &tls.Config{Certificates: []tls.Certificate{c.Serving}}
	h.Config.ErrorLog = log.New(io.Discard, "", 0)
	h.StartTLS()
	t.Cleanup(h.Close)
	return h
}

// answers has the hook answer otherwise; false says that it has answered itself.
func (h *hook) answers(spoil func(w http.ResponseWriter, r *http.Request, answer *review) bool) {
	h.spoil.Store(&spoil)
}

func (h *hook) serve(w http.ResponseWriter, r *http.Request) {
	h.calls.Add(1)
	var in review
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	out := review{APIVersion: in.APIVersion, Kind: in.Kind, Response: &response{UID: in.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}}
	for _, o := range in.Request.Objects {
		out.Response.Objects = append(out.Response.Objects, convert(o, in.Request.Version))
	}
	if spoil := h.spoil.Load(); spoil != nil && !(*spoil)(w, r, &out) {
		return
	}
	_ = json.NewEncoder(w).Encode(out)
}

func convert(o object, to string) object {
	spec, _ := o["spec"].(object)
	switch at, ok := spec["host"].(string); {
	case ok && strings.HasSuffix(to, "/v2"):
		name, port, _ := net.SplitHostPort(at)
		o["spec"] = object{"name": name, "port": port}
	case !ok && strings.HasSuffix(to, "/v1"):
		o["spec"] = object{"host": net.JoinHostPort(fmt.Sprint(spec["name"]), fmt.Sprint(spec["port"]))}
	}
	o["apiVersion"] = to
	return o
}

// converted defines hosts whose versions the hook converts.
func converted(h *hook, at object) *unstructured.Unstructured {
	at["caBundle"] = h.ca
	crd := hosts(version("v1", true, object{"host": text}), version("v2", false, object{"name": text, "port": text}))
	crd.Object["spec"].(object)["conversion"] = object{
		"strategy": "Webhook", "webhook": object{"conversionReviewVersions": []any{"v1"}, "clientConfig": at},
	}
	// Bytes are base64 in JSON, which only encoding them makes of them.
	out := &unstructured.Unstructured{}
	data, err := json.Marshal(crd.Object)
	if err == nil {
		err = out.UnmarshalJSON(data)
	}
	if err != nil {
		panic(err)
	}
	return out
}

// TestAWebhookConverts reads and writes both versions, of which one is stored.
func TestAWebhookConverts(t *testing.T) {
	cluster.Each(t, func(t *testing.T, s *cluster.Server) {
		h, c := newHook(t, "127.0.0.1"), connect(t, s)
		define(t, c, converted(h, object{"url": h.URL + "/convert"}))
		bothVersions(t, c)

		// A list is one call, and what was converted is not converted again.
		before := h.calls.Load()
		for range 3 {
			must(c.Resource(v2).List(t.Context(), metav1.ListOptions{}))(t)
		}
		if calls := h.calls.Load() - before; calls > 1 {
			t.Errorf("three lists made %d calls", calls)
		}
	})
}

func bothVersions(t *testing.T, c dynamic.Interface) {
	t.Helper()
	ctx := t.Context()
	first, second := c.Resource(v1).Namespace("default"), c.Resource(v2).Namespace("default")
	must(first.Create(ctx, host("v1", "a", object{"host": "x:1"}), metav1.CreateOptions{}))(t)
	made := must(second.Create(ctx, host("v2", "b", object{"name": "y", "port": "2"}), metav1.CreateOptions{}))(t)
	if made.GetAPIVersion() != group+"/v2" || field(made, "spec", "name") != "y" {
		t.Errorf("created: %v", made.Object)
	}
	if got := must(second.Get(ctx, "a", metav1.GetOptions{}))(t); field(got, "spec", "name") != "x" || field(got, "spec", "port") != "1" {
		t.Errorf("a in v2: %v", got.Object)
	}
	if got := must(first.Get(ctx, "b", metav1.GetOptions{}))(t); field(got, "spec", "host") != "y:2" {
		t.Errorf("b in v1: %v", got.Object)
	}
	must(second.Apply(ctx, "a", host("v2", "a", object{"port": "3"}), metav1.ApplyOptions{FieldManager: "me", Force: true}))(t)
	if got := must(first.Get(ctx, "a", metav1.GetOptions{}))(t); field(got, "spec", "host") != "x:3" {
		t.Errorf("a in v1 after it was changed in v2: %v", got.Object)
	}
	if list := must(second.List(ctx, metav1.ListOptions{}))(t); len(list.Items) != 2 || field(&list.Items[0], "spec", "name") != "x" {
		t.Errorf("listed: %v", list.Items)
	}
	events := must(second.Watch(ctx, metav1.ListOptions{ResourceVersion: "0"}))(t)
	defer events.Stop()
	for range 2 {
		if e := <-events.ResultChan(); e.Object.GetObjectKind().GroupVersionKind().Version != "v2" {
			t.Errorf("watched: %v", e)
		}
	}
}

// TestAWebhookBehindAService is found through the service's endpoints, and must
// show that it is the service.
func TestAWebhookBehindAService(t *testing.T) {
	t.Parallel()
	s := cluster.Memory.Start(t, cluster.ExpectErrors)
	at := outward(t)
	h, c := newHook(t, at, "hook.default.svc"), connect(t, s)
	serveHook(t, must(kubernetes.NewForConfig(s.Admin()))(t), h)
	define(t, c, converted(h, object{"service": object{"name": "hook", "namespace": "default", "path": "/convert", "port": int64(8443)}}))
	bothVersions(t, c)

	h.answers(func(w http.ResponseWriter, r *http.Request, _ *review) bool { return r.URL.Path == "/convert" })
	must(c.Resource(v1).Namespace("default").Create(t.Context(), host("v1", "c", object{"host": "z:1"}), metav1.CreateOptions{}))(t)
	must(c.Resource(v2).Namespace("default").Get(t.Context(), "c", metav1.GetOptions{}))(t)
}

// outward returns an address of this machine that is not its loopback: none of
// those can be an endpoint.
func outward(t *testing.T) string {
	t.Helper()
	for _, a := range must(net.InterfaceAddrs())(t) {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	t.Fatal("this machine has no address but its loopback's")
	return ""
}

// serveHook makes a service whose one endpoint is the hook.
func serveHook(t *testing.T, c kubernetes.Interface, h *hook) {
	t.Helper()
	at := h.Listener.Addr().(*net.TCPAddr)
	must(c.CoreV1().Services("default").Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "hook"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "https", Port: 8443}}},
	}, metav1.CreateOptions{}))(t)
	must(c.DiscoveryV1().EndpointSlices("default").Create(t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "hook-1", Labels: map[string]string{discoveryv1.LabelServiceName: "hook"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("https"), Port: ptr.To(int32(at.Port))}},
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{at.IP.String()}}},
	}, metav1.CreateOptions{}))(t)
}

// impatiently reads something, if that does not take long.
func impatiently(t *testing.T, s *cluster.Server, path string) (code int, said string) {
	t.Helper()
	c := must(rest.HTTPClientFor(s.Admin()))(t)
	r := must(c.Get("https://" + s.Address + path + "?timeout=500ms"))(t)
	defer func() { _ = r.Body.Close() }()
	return r.StatusCode, string(must(io.ReadAll(r.Body))(t))
}

// TestAWebhookThatFails says why, and harms nothing: what is stored is read as
// before, and all is well again when the webhook is.
func TestAWebhookThatFails(t *testing.T) {
	cases := map[string]struct {
		spoil func(http.ResponseWriter, *http.Request, *review) bool
		want  string
	}{
		"refuses": {func(_ http.ResponseWriter, _ *http.Request, a *review) bool {
			a.Response.Result = metav1.Status{Status: metav1.StatusFailure, Message: "not today"}
			return true
		}, "not today"},
		"returns too few": {func(_ http.ResponseWriter, _ *http.Request, a *review) bool {
			a.Response.Objects = nil
			return true
		}, "returned 0 objects, expected 1"},
		"renames": {func(_ http.ResponseWriter, _ *http.Request, a *review) bool {
			a.Response.Objects[0]["metadata"].(object)["name"] = "z"
			return true
		}, "must have the same name: a != z"},
		"answers another": {func(_ http.ResponseWriter, _ *http.Request, a *review) bool {
			a.Response.UID = "other"
			return true
		}, `got \"other\"`},
		"keeps the version": {func(_ http.ResponseWriter, _ *http.Request, a *review) bool {
			a.Response.Objects[0]["apiVersion"] = group + "/v1"
			return true
		}, "invalid groupVersion"},
		"is broken": {func(w http.ResponseWriter, _ *http.Request, _ *review) bool {
			http.Error(w, "oops", http.StatusInternalServerError)
			return false
		}, "prevented the request from succeeding"},
		"talks nonsense": {func(w http.ResponseWriter, _ *http.Request, _ *review) bool {
			_, _ = w.Write([]byte("{"))
			return false
		}, "json parse error"},
		"hangs up": {func(http.ResponseWriter, *http.Request, *review) bool { panic(http.ErrAbortHandler) }, "EOF"},
		"takes too long": {func(_ http.ResponseWriter, r *http.Request, _ *review) bool {
			<-r.Context().Done()
			return false
		}, "context deadline exceeded"},
	}
	t.Parallel()
	s := cluster.Memory.Start(t, cluster.ExpectErrors)
	h, c := newHook(t, "127.0.0.1"), connect(t, s)
	define(t, c, converted(h, object{"url": h.URL}))
	first, second := c.Resource(v1).Namespace("default"), c.Resource(v2).Namespace("default")
	must(first.Create(t.Context(), host("v1", "a", object{"host": "x:1"}), metav1.CreateOptions{}))(t)
	for name, test := range cases {
		h.answers(test.spoil)
		if code, said := impatiently(t, s, "/apis/"+group+"/v2/namespaces/default/hosts"); code < 500 || !strings.Contains(said, test.want) {
			t.Errorf("a webhook that %s: %d %s", name, code, said)
		}
		must(first.Get(t.Context(), "a", metav1.GetOptions{}))(t)
		must(first.List(t.Context(), metav1.ListOptions{}))(t)
	}
	h.spoil.Store(nil)
	must(second.Get(t.Context(), "a", metav1.GetOptions{}))(t)

	// A dead one is no hindrance to deleting what it would convert.
	redefine(t, c, func(crd *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(crd.Object, "https://127.0.0.1:1/", "spec", "conversion", "webhook", "clientConfig", "url")
	})
	eventually(t, "the dead webhook is asked", func(ctx context.Context) bool {
		_, err := second.Get(ctx, "a", metav1.GetOptions{})
		return err != nil && strings.Contains(err.Error(), "connection refused")
	})
	if err := c.Resource(definitions).Delete(t.Context(), hosts().GetName(), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the definition is gone", func(ctx context.Context) bool {
		_, err := c.Resource(definitions).Get(ctx, hosts().GetName(), metav1.GetOptions{})
		return err != nil
	})
}
