package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/even-keel/evenkeel/client"
)

func TestWatchesTellWhatHappens(t *testing.T) {
	eachEncoding(t, func(t *testing.T, conn *client.Conn, ns string) {
		ctx := t.Context()
		maps := client.Of[*corev1.ConfigMap](conn).In(ns)
		_, revision, err := maps.All(ctx)
		if err != nil {
			t.Fatal(err)
		}
		made := must[*corev1.ConfigMap](t)(maps.Create(ctx, configMap("a", nil)))
		changed := made.DeepCopy()
		changed.Data = map[string]string{"k": "2"}
		changed = must[*corev1.ConfigMap](t)(maps.Update(ctx, changed))
		if err := maps.Delete(ctx, client.KeyOf(made)); err != nil {
			t.Fatal(err)
		}
		var got []client.Event[*corev1.ConfigMap]
		for e, err := range maps.Watch(ctx, client.From(revision)) {
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, e); len(got) == 3 {
				break
			}
		}
		gone := changed.DeepCopy()
		gone.ResourceVersion = got[2].Object.ResourceVersion
		want := []client.Event[*corev1.ConfigMap]{{client.Added, made}, {client.Modified, changed}, {client.Deleted, gone}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestWatchesOfAnyForm(t *testing.T) {
	conn, ns := connect(t)
	makeMaps(t, client.Of[*corev1.ConfigMap](conn).In(ns), "a", 2)
	watchInitial(t, client.Of[*corev1.ConfigMap](conn).In(ns))
	watchInitial(t, client.Of[*unstructured.Unstructured](conn, client.Kind(configMaps)).In(ns))
	watchInitial(t, client.Of[*metav1.PartialObjectMetadata](conn, client.Kind(configMaps)).In(ns))
}

// watchInitial expects two objects of a namespace, and the bookmark after them.
func watchInitial[T client.Object](t *testing.T, c *client.Client[T]) {
	t.Helper()
	var got []T
	for e, err := range c.Watch(t.Context(), client.InitialEvents()) {
		if err != nil {
			t.Fatal(err)
		}
		if e.InitialEnd() {
			if e.Object.GetResourceVersion() == "" {
				t.Error("the bookmark has no revision")
			}
			break
		}
		if e.Type != client.Added || e.Object.GetObjectKind().GroupVersionKind() != configMaps {
			t.Errorf("%s of %v", e.Type, e.Object)
		}
		got = append(got, e.Object)
	}
	if names(got) != "a-000 a-001" {
		t.Errorf("%T: the state is %q", c, names(got))
	}
}

func TestARawWatchStandsOnceItIsOpen(t *testing.T) {
	eachEncoding(t, func(t *testing.T, conn *client.Conn, ns string) {
		maps := client.Of[*corev1.ConfigMap](conn).In(ns)
		w, err := maps.WatchRaw(t.Context(), client.Bookmarks(), client.Labels("app"))
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		makeMaps(t, maps, "a", 10)
		var frames []client.Frame
		var buf []byte
		for len(frames) < 10 {
			f, err := w.Next(&buf)
			if err != nil {
				t.Fatal(err)
			}
			if f.Type != client.Bookmark {
				frames = append(frames, f)
			}
		}
		for i, f := range frames {
			m, err := maps.Decode(f.Object)
			if err != nil || m.Name != fmt.Sprintf("a-%03d", i) || f.Type != client.Added {
				t.Errorf("event %d: %s of %v, %v", i, f.Type, m, err)
			}
		}
		w.Close()
		if _, err := w.Next(&buf); err == nil {
			t.Error("an event after Close")
		}
	})
}

func TestAWatchEndsWithItsContext(t *testing.T) {
	conn, ns := connect(t)
	maps := client.Of[*corev1.ConfigMap](conn).In(ns)
	makeMaps(t, maps, "a", 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var failure error
	for _, err := range maps.Watch(ctx) {
		cancel()
		failure = err
	}
	if !errors.Is(failure, context.Canceled) {
		t.Errorf("the error is %v", failure)
	}
}

func TestTheServerEndsAWatch(t *testing.T) {
	conn, ns := connect(t)
	for _, err := range client.Of[*corev1.ConfigMap](conn).In(ns).Watch(t.Context(), client.Timeout(time.Millisecond)) {
		t.Errorf("it should just end: %v", err)
	}
}

func TestErrorsOfWatches(t *testing.T) {
	const status = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old","reason":"Expired","code":410}`
	for name, test := range map[string]struct {
		answer string
		is     func(error) bool
	}{
		"an error event":       {`{"type":"ERROR","object":` + status + "}\n", client.IsExpired},
		"cut within an event":  {`{"type":"ADDED","object":{"metadata":{"na`, isUnexpectedEOF},
		"an unknown type":      {`{"type":"NEWS","object":{}}`, isMalformed},
		"no type":              {`{"object":{}}`, isMalformed},
		"not an event":         {`[1]`, isMalformed},
		"an object that isn't": {`{"type":"ADDED","object":{"metadata":7}}`, func(err error) bool { return err != nil }},
	} {
		t.Run(name, func(t *testing.T) {
			conn, _ := connectAs(t, theServer.InFront(t, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, test.answer)
			}))
			var failure error
			for _, err := range client.Of[*corev1.ConfigMap](conn).Watch(t.Context(), client.From("1")) {
				failure = err
			}
			if !test.is(failure) {
				t.Errorf("the error is %v", failure)
			}
		})
	}
}

func isUnexpectedEOF(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }
func isMalformed(err error) bool     { return errors.Is(err, client.ErrMalformed) }
