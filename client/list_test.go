package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/client"
)

func TestListsComeInOnePieceOrInPages(t *testing.T) {
	eachEncoding(t, func(t *testing.T, conn *client.Conn, ns string) {
		maps := client.Of[*corev1.ConfigMap](conn).In(ns)
		makeMaps(t, maps, "a", 7)
		want, revision, err := maps.All(t.Context())
		if err != nil || len(want) != 7 || revision == "" {
			t.Fatalf("all are %q at %q, %v", names(want), revision, err)
		}
		one := must[*corev1.ConfigMap](t)(maps.Get(t.Context(), client.KeyOf(want[3])))
		if diff := cmp.Diff(one, want[3]); diff != "" {
			t.Errorf("an item of a list is not what a get returns:\n%s", diff)
		}
		for _, chunk := range []int{1, 3, 7, 8} {
			var got []*corev1.ConfigMap
			for m, err := range maps.List(t.Context(), client.Chunk(chunk)) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, m)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("pages of %d:\n%s", chunk, diff)
			}
		}
	})
}

func TestPagesAreOfOneRevision(t *testing.T) {
	conn, ns := connect(t)
	maps := client.Of[*corev1.ConfigMap](conn).In(ns)
	makeMaps(t, maps, "a", 4)
	list, err := maps.ListRaw(t.Context(), client.Chunk(2))
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close()
	var buf []byte
	if _, err := list.Next(&buf); err != nil {
		t.Fatal(err)
	}
	first := list.Revision()
	if list.Remaining() != 2 {
		t.Errorf("%d remain", list.Remaining())
	}
	makeMaps(t, maps, "b", 1)
	if err := maps.Delete(t.Context(), client.Key{Name: "a-003"}); err != nil {
		t.Fatal(err)
	}
	n := 1
	for {
		_, err := list.Next(&buf)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 4 || list.Revision() != first {
		t.Errorf("%d objects at %q, which began at %q", n, list.Revision(), first)
	}
	if _, err := list.Next(&buf); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %v", err)
	}
}

func TestRawItemsOutliveTheNext(t *testing.T) {
	eachEncoding(t, func(t *testing.T, conn *client.Conn, ns string) {
		maps := client.Of[*corev1.ConfigMap](conn).In(ns)
		makeMaps(t, maps, "a", 20)
		list, err := maps.ListRaw(t.Context(), client.Chunk(6))
		if err != nil {
			t.Fatal(err)
		}
		defer list.Close()
		var raws []client.Raw
		var batch []byte // one buffer for all: it only grows
		for {
			raw, err := list.Next(&batch)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			raws = append(raws, raw)
		}
		for i, raw := range raws {
			m, err := maps.Decode(raw)
			if err != nil || m.Name != fmt.Sprintf("a-%03d", i) {
				t.Errorf("item %d is %v, %v", i, m, err)
			}
		}
		if len(raws) != 20 {
			t.Errorf("there are %d", len(raws))
		}
	})
}

func TestListsAreNarrowed(t *testing.T) {
	conn, ns := connect(t)
	maps := client.Of[*corev1.ConfigMap](conn).In(ns)
	makeMaps(t, maps, "a", 3)
	for name, test := range map[string]struct {
		opts []client.ReadOption
		want string
	}{
		"a label":               {[]client.ReadOption{client.Label("app", "a-001")}, "a-001"},
		"an expression":         {[]client.ReadOption{client.Labels("app!=a-001")}, "a-000 a-002"},
		"two that must fit":     {[]client.ReadOption{client.Labels("app!=a-001"), client.Labels("app!=a-002")}, "a-000"},
		"a field":               {[]client.ReadOption{client.Field("metadata.name", "a-002")}, "a-002"},
		"fields and labels":     {[]client.ReadOption{client.Fields("metadata.name!=a-002"), client.Label("app", "a-002")}, ""},
		"any state":             {[]client.ReadOption{client.NotOlderThan("0")}, "a-000 a-001 a-002"},
		"options made before":   {[]client.ReadOption{client.Options(client.ReadOptions{Chunk: 2})}, "a-000 a-001 a-002"},
		"fields, one by one":    {[]client.ReadOption{client.Fields("metadata.name!=a-002"), client.Fields("metadata.name!=a-001")}, "a-000"},
		"with a page too large": {[]client.ReadOption{client.Chunk(1000)}, "a-000 a-001 a-002"},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := maps.All(t.Context(), test.opts...)
			if err != nil || names(got) != test.want {
				t.Errorf("%q, %v; want %q", names(got), err, test.want)
			}
		})
	}
	for name, opt := range map[string]client.ReadOption{"labels": client.Labels("a in"), "fields": client.Fields("a<b")} {
		if _, _, err := maps.All(t.Context(), opt); err == nil || !strings.Contains(err.Error(), "selector") {
			t.Errorf("%s that cannot be parsed: %v", name, err)
		}
	}
	_, revision, err := maps.All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	makeMaps(t, maps, "b", 1)
	if got, at, err := maps.All(t.Context(), client.At(revision)); err != nil || len(got) != 3 || at != revision {
		t.Errorf("at %s: %q at %s, %v", revision, names(got), at, err)
	}
}

// expired answers as a server does that has forgotten a revision.
func expired(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusGone)
	_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"too old"}`)
}

func TestExpiredPagesAreListedAgain(t *testing.T) {
	var refused atomic.Int32
	conn, ns := connectAs(t, theServer.InFront(t, func(w http.ResponseWriter, r *http.Request, server http.Handler) {
		if r.URL.Query().Get("continue") != "" {
			refused.Add(1)
			expired(w)
			return
		}
		server.ServeHTTP(w, r)
	}))
	maps := client.Of[*corev1.ConfigMap](conn).In(ns)
	makeMaps(t, maps, "a", 5)
	seen := 0
	var failure error
	for _, err := range maps.List(t.Context(), client.Chunk(2)) {
		if failure = err; err == nil {
			seen++
		}
	}
	if seen != 2 || !client.IsExpired(failure) {
		t.Errorf("%d objects, then %v", seen, failure)
	}
	all, _, err := maps.All(t.Context(), client.Chunk(2))
	if err != nil || len(all) != 5 || refused.Load() != 2 {
		t.Errorf("%q after %d refusals, %v", names(all), refused.Load(), err)
	}
}

func TestAListThatBreaksOffIsAnError(t *testing.T) {
	for name, accept := range map[string]string{"json": "application/json", "protobuf": "application/vnd.kubernetes.protobuf"} {
		t.Run(name, func(t *testing.T) {
			conn, ns := connectAs(t, theServer.InFront(t, func(w http.ResponseWriter, r *http.Request, server http.Handler) {
				if r.Method != http.MethodGet {
					server.ServeHTTP(w, r)
					return
				}
				r.Header.Set("Accept", accept)
				r.Header.Del("Accept-Encoding")
				server.ServeHTTP(&cutting{ResponseWriter: w, left: 700}, r)
			}))
			maps := client.Of[*corev1.ConfigMap](conn).In(ns)
			makeMaps(t, maps, "a", 5)
			objects, _, err := maps.All(t.Context())
			if err == nil || len(objects) == 5 {
				t.Errorf("%d objects and no error", len(objects))
			}
		})
	}
}

// cutting ends an answer after some bytes, as if it were complete.
type cutting struct {
	http.ResponseWriter
	left int
}

func (c *cutting) WriteHeader(code int) {
	c.Header().Del("Content-Length")
	c.ResponseWriter.WriteHeader(code)
}

func (c *cutting) Write(p []byte) (int, error) {
	n := min(len(p), c.left)
	c.left -= n
	_, err := c.ResponseWriter.Write(p[:n])
	return len(p), err
}

func (c *cutting) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func TestAListEndsWithItsContext(t *testing.T) {
	conn, ns := connect(t)
	maps := client.Of[*corev1.ConfigMap](conn).In(ns)
	makeMaps(t, maps, "a", 4)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var failure error
	for _, err := range maps.List(ctx, client.Chunk(1)) {
		cancel()
		failure = err
	}
	if !errors.Is(failure, context.Canceled) {
		t.Errorf("the error is %v", failure)
	}
}

func TestAllNamespaces(t *testing.T) {
	conn, ns := connect(t)
	_, other := connect(t)
	maps := client.Of[*corev1.ConfigMap](conn)
	for _, in := range []string{ns, other} {
		m := configMap("everywhere", nil)
		m.Labels["in"] = ns
		must[*corev1.ConfigMap](t)(maps.In(in).Create(t.Context(), m))
	}
	all, _, err := maps.All(t.Context(), client.Label("in", ns))
	if err != nil || len(all) != 2 {
		t.Errorf("%d, %v", len(all), err)
	}
	partial := client.Of[*metav1.PartialObjectMetadata](conn, client.Kind(configMaps))
	parts, _, err := partial.All(t.Context(), client.Label("in", ns), client.Chunk(1))
	if err != nil || len(parts) != 2 {
		t.Errorf("%d, %v", len(parts), err)
	}
}

func TestAListIsClosedByAnother(t *testing.T) {
	reached := make(chan struct{}, 1)
	conn, ns := connectAs(t, theServer.InFront(t, func(w http.ResponseWriter, r *http.Request, server http.Handler) {
		if r.URL.Query().Get("continue") != "" {
			reached <- struct{}{}
			<-r.Context().Done() // a page that never comes
			return
		}
		server.ServeHTTP(w, r)
	}))
	maps := client.Of[*corev1.ConfigMap](conn).In(ns)
	makeMaps(t, maps, "a", 3)
	list, err := maps.ListRaw(t.Context(), client.Chunk(2))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		var buf []byte
		for {
			if _, err := list.Next(&buf); err != nil {
				ended <- err
				return
			}
		}
	}()
	<-reached
	list.Close()
	if err := <-ended; errors.Is(err, io.EOF) {
		t.Errorf("it ended as if it were whole: %v", err)
	}
}
