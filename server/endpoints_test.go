package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/even-keel/evenkeel/server"
)

func TestHealth(t *testing.T) {
	store := &slowStore{Store: memoryStore(t)}
	r := start(t, store, nil)
	for path, want := range map[string]string{
		"/healthz": "ok", "/livez": "ok", "/readyz": "ok", "/healthz/ping": "ok", "/livez/etcd": "ok",
		"/readyz?verbose":               "[+]ping ok\n[+]etcd ok\n[+]serving ok\nreadyz check passed\n",
		"/healthz?verbose&exclude=etcd": "[+]ping ok\n[+]etcd excluded: ok\nhealthz check passed\n",
		"/livez?verbose":                "[+]ping ok\n[+]etcd ok\nlivez check passed\n",
	} {
		got := r.do("GET", path, "")
		if got.code != 200 || got.body != want || got.header.Get("Cache-Control") != "no-cache, private" {
			t.Errorf("%s: %d %q %v", path, got.code, got.body, got.header)
		}
	}
	for _, path := range []string{"/healthz/", "/healthz/nope", "/livez/x/y"} {
		if got := r.do("GET", path, ""); got.code != 404 {
			t.Errorf("%s: %d %q", path, got.code, got.body)
		}
	}
	store.sick.Store(true)
	got := r.do("GET", "/healthz", "", "Authorization", "")
	if got.code != 500 || got.body != "[+]ping ok\n[-]etcd failed: reason withheld\nhealthz check failed\n" {
		t.Errorf("unhealthy: %d %q", got.code, got.body)
	}
	if !strings.Contains(r.log.String(), "the disk is full") {
		t.Error("the log does not say why")
	}
	if got := r.do("GET", "/healthz?exclude=etcd", ""); got.code != 200 {
		t.Errorf("without the store: %d", got.code)
	}
}

func TestWhoMayAsk(t *testing.T) {
	r := start(t, memoryStore(t), nil)
	for name, c := range map[string]struct {
		authorization, path string
		code                int
		reason, message     string
	}{
		"bad token":        {"Bearer nope", "/api/v1/pods", 401, "Unauthorized", "Unauthorized"},
		"anonymous":        {"", "/api/v1/pods", 403, "Forbidden", `pods is forbidden: User "system:anonymous" cannot list resource "pods" in API group "" at the cluster scope`},
		"anonymous path":   {"", "/apis", 403, "Forbidden", `forbidden: User "system:anonymous" cannot get path "/apis"`},
		"nobody":           {"Bearer " + nobody, "/api/v1/namespaces/x/pods/y", 403, "Forbidden", `pods "y" is forbidden: User "somebody" cannot get resource "pods" in API group "" in the namespace "x"`},
		"nobody, watching": {"Bearer " + nobody, "/api/v1/namespaces/x/pods?watch=1", 403, "Forbidden", `pods is forbidden: User "somebody" cannot watch resource "pods" in API group "" in the namespace "x"`},
	} {
		t.Run(name, func(t *testing.T) {
			got := r.do("GET", c.path, "", "Authorization", c.authorization)
			message, _ := got.at("message").(string)
			if got.code != c.code || got.at("reason") != c.reason || !strings.HasPrefix(message, c.message) {
				t.Errorf("%d %s", got.code, got.body)
			}
			if nosniff := got.header.Get("X-Content-Type-Options") == "nosniff"; nosniff != (c.code == 403) {
				t.Errorf("headers: %v", got.header)
			}
		})
	}
	if got := r.do("GET", "/version", "", "Authorization", ""); got.code != 200 || got.at("minor") != "37" {
		t.Errorf("version: %d %s", got.code, got.body)
	}
	if got := r.do("POST", "/version", ""); got.code != 405 {
		t.Errorf("POST /version: %d", got.code)
	}
}

// What a client makes up must not become a label: each would be kept for ever.
func TestMetricsCountWhatIsKnown(t *testing.T) {
	r := start(t, memoryStore(t), nil)
	r.do("GET", "/api/v1/namespaces/default/configmaps", "")
	for i := range 20 {
		r.do("GET", fmt.Sprintf("/apis/made.up%d/v1/things%d/x/sub%d", i, i, i), "")
		r.do(fmt.Sprintf("MADEUP%d", i), "/api/v1/configmaps", "")
		r.do("GET", fmt.Sprintf("/api/v1/namespaces/default/configmaps/x/sub%d", i), "", "Authorization", "")
	}
	got := r.do("GET", "/metrics", "")
	for _, name := range []string{
		"apiserver_request_total", "apiserver_request_duration_seconds_bucket", "apiserver_current_inflight_requests",
		"process_resident_memory_bytes", "go_goroutines",
		`apiserver_request_total{code="200",group="",resource="configmaps",subresource="",verb="LIST",version="v1"} 1`,
	} {
		if !strings.Contains(got.body, name) {
			t.Errorf("there is no %s", name)
		}
	}
	for _, word := range []string{"made.up", "things", "MADEUP", "sub1"} {
		if strings.Contains(got.body, word) {
			t.Errorf("a client's %q is a label", word)
		}
	}
}

func TestServicesGetAddresses(t *testing.T) {
	store := memoryStore(t)
	r := start(t, store, nil)
	const services = "/api/v1/namespaces/default/services"
	service := func(name, spec string) string {
		return `{"apiVersion":"v1","kind":"Service","metadata":{"name":"` + name + `"},"spec":{"ports":[{"port":80}]` + spec + `}}`
	}
	claimed := func(ip any) int {
		return r.do("GET", fmt.Sprintf("/apis/networking.k8s.io/v1/ipaddresses/%v", ip), "").code
	}

	got := r.do("POST", services, service("a", ""))
	ip := got.at("spec", "clusterIP")
	if got.code != 201 || ip == nil || claimed(ip) != 200 {
		t.Fatalf("create: %d %s", got.code, got.body)
	}
	for name, c := range map[string]struct {
		body string
		code int
	}{
		"explicit":     {service("b", `,"clusterIP":"10.0.0.7"`), 201},
		"taken":        {service("c", fmt.Sprintf(`,"clusterIP":%q`, ip)), 422},
		"outside":      {service("d", `,"clusterIP":"10.9.0.1"`), 422},
		"headless":     {service("e", `,"clusterIP":"None"`), 201},
		"port":         {service("f", `,"type":"NodePort","ports":[{"port":80,"nodePort":30012}]`), 201},
		"port outside": {service("h", `,"type":"NodePort","ports":[{"port":80,"nodePort":80}]`), 422},
		"dry run":      {service("i", `,"clusterIP":"10.0.0.9"`), 201},
	} {
		path := services
		if name == "dry run" {
			path += "?dryRun=All"
		}
		if got := r.do("POST", path, c.body); got.code != c.code {
			t.Errorf("%s: %d %s", name, got.code, got.body)
		}
	}
	if got := r.do("POST", services, service("g", `,"type":"NodePort","ports":[{"port":80,"nodePort":30012}]`)); got.code != 422 {
		t.Errorf("a taken port: %d %s", got.code, got.body)
	}
	if claimed("10.0.0.9") != 404 {
		t.Error("a dry run claims an address")
	}
	// To a name outside the cluster, and back: the address is given up, and one taken.
	if got := r.do("PATCH", services+"/a", `{"spec":{"type":"ExternalName","externalName":"x.example","clusterIP":null,"clusterIPs":null}}`, "Content-Type", "application/merge-patch+json"); got.code != 200 || claimed(ip) != 404 {
		t.Errorf("to ExternalName: %d %s, claim %d", got.code, got.body, claimed(ip))
	}
	got = r.do("PATCH", services+"/a", `{"spec":{"type":"ClusterIP","externalName":null}}`, "Content-Type", "application/merge-patch+json")
	if ip = got.at("spec", "clusterIP"); got.code != 200 || claimed(ip) != 200 {
		t.Errorf("and back: %d %s", got.code, got.body)
	}
	if got := r.do("DELETE", services+"/a", ""); got.code != 200 || claimed(ip) != 404 {
		t.Errorf("delete gives back: %d, claim %d", got.code, claimed(ip))
	}

	// A claim that no service holds is dropped at a start, if it is old: another
	// server may be about to store the service of a new one.
	orphan := `{"metadata":{"name":"10.0.0.12","labels":{"ipaddress.kubernetes.io/managed-by":"ipallocator.k8s.io","ipaddress.kubernetes.io/ip-family":"IPv4"}},"spec":{"parentRef":{"resource":"services","namespace":"default","name":"gone"}}}`
	if got := r.do("POST", "/apis/networking.k8s.io/v1/ipaddresses", orphan); got.code != 201 {
		t.Fatalf("claim: %d %s", got.code, got.body)
	}
	for later, want := range []int{200, 404} { // now, and in an hour
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
		r = start(t, store, func(c *server.Config) {
			c.Now = func() time.Time { return time.Now().Add(time.Duration(later) * time.Hour) }
		})
		if claimed("10.0.0.12") != want || claimed("10.0.0.7") != 200 {
			t.Errorf("after a start %d hours later: orphan %d, held %d", later, claimed("10.0.0.12"), claimed("10.0.0.7"))
		}
	}
	if got := r.do("GET", services+"/kubernetes", ""); got.at("spec", "clusterIP") != "10.0.0.1" {
		t.Errorf("kubernetes: %s", got.body)
	}
}
