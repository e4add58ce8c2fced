package clientgo

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/test/compat/cluster"
)

// dial opens a WebSocket as a browser would.
func dial(t *testing.T, s *cluster.Server, path string, header http.Header) *websocket.Conn {
	t.Helper()
	dialer := websocket.Dialer{TLSClientConfig: must(rest.TLSConfigFor(s.Admin()))(t), HandshakeTimeout: 10 * time.Second}
	conn, resp, err := dialer.DialContext(t.Context(), "wss://"+s.Address+path, header)
	if err != nil {
		t.Fatalf("%v: %+v", err, resp)
	}
	t.Cleanup(func() { _ = conn.Close() })
	check(t, conn.SetReadDeadline(time.Now().Add(20*time.Second)))
	return conn
}

func TestWatchOverWebSocket(t *testing.T) {
	cluster.Each(t, func(t *testing.T, s *cluster.Server) {
		c, ns := connect(t, s)
		maps := c.CoreV1().ConfigMaps(ns)
		create(t, maps, "one")
		path := query("/api/v1/namespaces/"+ns+"/configmaps", "watch", "1", "timeoutSeconds", "3")
		conn := dial(t, s, path, http.Header{"Origin": {"https://console.example.com"}})
		want := func(event, name string) {
			t.Helper()
			kind, message, err := conn.ReadMessage()
			check(t, err)
			var got partialEvent
			check(t, json.Unmarshal(message, &got))
			if kind != websocket.TextMessage || got.Type != event || got.Object.Name != name {
				t.Errorf("message of kind %d: %s; want %s %s", kind, message, event, name)
			}
		}
		want("ADDED", "one")
		create(t, maps, "two")
		want("ADDED", "two")
		check(t, maps.Delete(t.Context(), "one", metav1.DeleteOptions{}))
		want("DELETED", "one")
		if _, message, err := conn.ReadMessage(); err == nil {
			t.Errorf("after its timeout the watch sent %s", message)
		}
	})
}

// TestWatchOverWebSocketInProtobuf: each message is one event, without the
// length that goes before it in a stream.
func TestWatchOverWebSocketInProtobuf(t *testing.T) {
	t.Parallel()
	s := cluster.Memory.Start(t)
	c, ns := connect(t, s)
	create(t, c.CoreV1().ConfigMaps(ns), "one")
	conn := dial(t, s, "/api/v1/watch/namespaces/"+ns+"/configmaps", http.Header{"Accept": {runtime.ContentTypeProtobuf}})
	kind, message, err := conn.ReadMessage()
	check(t, err)
	var e metav1.WatchEvent
	if err := e.Unmarshal(message); err != nil || kind != websocket.BinaryMessage {
		t.Fatalf("message of kind %d: %v: %q", kind, err, message)
	}
	obj := must(runtime.Decode(scheme.Codecs.UniversalDeserializer(), e.Object.Raw))(t)
	if got := obj.(metav1.Object).GetName(); e.Type != "ADDED" || got != "one" {
		t.Errorf("%s %s", e.Type, got)
	}
}

func TestLargeListsAreCompressed(t *testing.T) {
	cluster.Each(t, func(t *testing.T, s *cluster.Server) {
		c, ns := connect(t, s)
		path := "/api/v1/namespaces/" + ns + "/configmaps"
		small := get(t, s, path, "Accept-Encoding", "gzip")
		if encoding := small.Header.Get("Content-Encoding"); encoding != "" {
			t.Errorf("a small list comes as %s", encoding)
		}
		for i, name := range []string{"a", "b", "c", "d"} {
			cm := configMap(name, "text", strings.Repeat(strings.Repeat(name, 10+i)+"\n", 4000))
			must(c.CoreV1().ConfigMaps(ns).Create(t.Context(), cm, metav1.CreateOptions{}))(t)
		}
		for name, accept := range encodings {
			plain := get(t, s, path, "Accept", accept)
			packed := get(t, s, path, "Accept", accept, "Accept-Encoding", "gzip")
			if plain.Header.Get("Content-Encoding") != "" || packed.Header.Get("Content-Encoding") != "gzip" {
				t.Fatalf("%s: encodings %q and %q", name, plain.Header.Get("Content-Encoding"), packed.Header.Get("Content-Encoding"))
			}
			whole, short := must(io.ReadAll(plain.Body))(t), must(io.ReadAll(packed.Body))(t)
			unpacked := must(io.ReadAll(must(gzip.NewReader(bytes.NewReader(short)))(t)))(t)
			if !bytes.Equal(whole, unpacked) {
				t.Errorf("%s: %d bytes were unpacked, %d come plain, and they differ", name, len(unpacked), len(whole))
			}
			if len(short)*5 > len(whole) {
				t.Errorf("%s: %d bytes became %d", name, len(whole), len(short))
			}
		}
		list := must(c.CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{}))(t)
		if len(list.Items) != 4 {
			t.Errorf("client-go read %v", namesOf(list.Items))
		}
		w := get(t, s, path+"?watch=1", "Accept-Encoding", "gzip")
		defer func() { _ = w.Body.Close() }()
		if encoding := w.Header.Get("Content-Encoding"); encoding != "" {
			t.Errorf("a watch comes as %s", encoding)
		}
	})
}
