package clientgo

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/even-keel/evenkeel/test/compat/cluster"
)

// connect returns a client of a server, and a namespace.
func connect(t *testing.T, s *cluster.Server) (kubernetes.Interface, string) {
	t.Helper()
	c := clientset(t, s.Admin())
	return c, newNamespace(t, c)
}

func revisionOf(t *testing.T, rv string) int {
	t.Helper()
	return must(strconv.Atoi(rv))(t)
}

func create(t *testing.T, maps corev1client.ConfigMapInterface, name string) string {
	t.Helper()
	return must(maps.Create(t.Context(), configMap(name), metav1.CreateOptions{}))(t).ResourceVersion
}

// TestWatchListEndsWithABookmark: who asks for the state first is told when it
// is complete.
func TestWatchListEndsWithABookmark(t *testing.T) {
	cluster.Each(t, func(t *testing.T, s *cluster.Server) {
		c, ns := connect(t, s)
		names := fill(t, c, ns, 5)
		maps := "/api/v1/namespaces/" + ns + "/configmaps"
		w := watchPath(t, s, query(maps, "watch", "1", "sendInitialEvents", "true", "allowWatchBookmarks", "true", "resourceVersionMatch", "NotOlderThan"))
		last := 0
		for _, name := range names {
			last = max(last, revisionOf(t, w.want("ADDED", name).Object.ResourceVersion))
		}
		b := w.want("BOOKMARK", "")
		if b.Object.Annotations[metav1.InitialEventsAnnotationKey] != "true" || b.Object.Kind != "ConfigMap" || b.Object.APIVersion != "v1" {
			t.Errorf("the bookmark is %+v", b)
		}
		if rv := revisionOf(t, b.Object.ResourceVersion); rv < last {
			t.Errorf("the bookmark says %d, the newest object is of %d", rv, last)
		}
		create(t, c.CoreV1().ConfigMaps(ns), "late")
		w.want("ADDED", "late")
	})
}

// TestWatchesEndWithABookmark: where a watch is about to time out, its client
// learns from where to go on.
func TestWatchesEndWithABookmark(t *testing.T) {
	cluster.Each(t, func(t *testing.T, s *cluster.Server) {
		c, ns := connect(t, s)
		path := "/api/v1/namespaces/" + ns + "/configmaps"
		start := create(t, c.CoreV1().ConfigMaps(ns), "one")
		w := watchPath(t, s, query(path, "watch", "1", "timeoutSeconds", "3", "allowWatchBookmarks", "1", "resourceVersion", start))
		whole := watchPath(t, s, query(path, "watch", "1", "timeoutSeconds", "3", "allowWatchBookmarks", "1"))
		other := create(t, c.CoreV1().ConfigMaps(newNamespace(t, c)), "elsewhere")
		b := w.want("BOOKMARK", "")
		if revisionOf(t, b.Object.ResourceVersion) < revisionOf(t, other) || len(b.Object.Annotations) > 0 {
			t.Errorf("the bookmark is %+v, want one of %s or later", b.Object, other)
		}
		w.wantEnd()
		whole.want("ADDED", "one")
		if b := whole.want("BOOKMARK", ""); b.Object.Annotations[metav1.InitialEventsAnnotationKey] != "true" {
			t.Errorf("after the state came %+v", b.Object)
		}
		whole.want("BOOKMARK", "")
		whole.wantEnd()
	})
}

// TestBookmarksCome waits for the bookmark of about each minute: for a watch
// where nothing happens, and for one that sees nothing of what happens.
func TestBookmarksCome(t *testing.T) {
	t.Parallel()
	s := cluster.Memory.Start(t)
	c, ns := connect(t, s)
	busy := newNamespace(t, c)
	bookmarked := func(path string) *stream {
		list := must(c.CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{}))(t)
		return watchPath(t, s, query(path, "watch", "1", "allowWatchBookmarks", "true", "resourceVersion", list.ResourceVersion))
	}
	idle := bookmarked("/apis/apps/v1/namespaces/" + ns + "/deployments")
	quiet := bookmarked("/api/v1/namespaces/" + ns + "/configmaps")
	deadline := time.After(75 * time.Second)
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	written := 0
	told := map[string]int{}
	take := func(name string, e partialEvent) {
		if e.Type != "BOOKMARK" || e.Object.Kind == "" || e.Object.Name != "" {
			t.Errorf("%s got %+v", name, e)
		}
		told[name] = revisionOf(t, e.Object.ResourceVersion)
		// A bookmark is of about now, not of where the watch began.
		if told[name] < written-10 {
			t.Errorf("%s was told %d when %d had been written", name, told[name], written)
		}
	}
	for i := 0; len(told) < 2; i++ {
		select {
		case <-tick.C:
			written = revisionOf(t, create(t, c.CoreV1().ConfigMaps(busy), fmt.Sprintf("b-%d", i)))
		case e, ok := <-idle.events:
			if !ok {
				t.Fatalf("the idle watch ended with %v", idle.ended)
			}
			take("the idle watch", e)
		case e, ok := <-quiet.events:
			if !ok {
				t.Fatalf("the watch that sees nothing ended with %v", quiet.ended)
			}
			take("the watch that sees nothing", e)
		case <-deadline:
			t.Fatalf("bookmarks came only for %v", told)
		}
	}
}

func TestWatchTimesOut(t *testing.T) {
	cluster.Each(t, func(t *testing.T, s *cluster.Server) {
		c, ns := connect(t, s)
		create(t, c.CoreV1().ConfigMaps(ns), "one")
		w := watchPath(t, s, query("/api/v1/namespaces/"+ns+"/configmaps", "watch", "true", "timeoutSeconds", "1"))
		w.want("ADDED", "one")
		w.wantEnd()
	})
}

func TestOldWatchPaths(t *testing.T) {
	cluster.Each(t, func(t *testing.T, s *cluster.Server) {
		c, ns := connect(t, s)
		ctx := t.Context()
		create(t, c.CoreV1().ConfigMaps(ns), "one")
		last := create(t, c.CoreV1().ConfigMaps(ns), "two")
		must(c.AppsV1().Deployments(ns).Create(ctx, deployment("web"), metav1.CreateOptions{}))(t)

		watchPath(t, s, "/api/v1/watch/namespaces/"+ns+"/configmaps/two").want("ADDED", "two")
		watchPath(t, s, "/apis/apps/v1/watch/deployments").want("ADDED", "web")
		watchPath(t, s, query("/apis/apps/v1/watch/namespaces/"+ns+"/deployments", "labelSelector", "app=web")).want("ADDED", "web")
		watchPath(t, s, "/api/v1/watch/namespaces/"+ns).want("ADDED", ns)
		all := watchPath(t, s, query("/api/v1/watch/configmaps", "resourceVersion", last))
		one := watchPath(t, s, query("/api/v1/watch/namespaces/"+ns+"/configmaps/one", "resourceVersion", last))
		check(t, c.CoreV1().ConfigMaps(ns).Delete(ctx, "two", metav1.DeleteOptions{}))
		check(t, c.CoreV1().ConfigMaps(ns).Delete(ctx, "one", metav1.DeleteOptions{}))
		all.want("DELETED", "two")
		all.want("DELETED", "one")
		one.want("DELETED", "one")
	})
}

// TestWatchResumesAcrossRestarts goes on from a revision of before, from the
// log: the restarted server has seen none of it.
func TestWatchResumesAcrossRestarts(t *testing.T) {
	cluster.EachLasting(t, func(t *testing.T, e cluster.Engine) {
		s := e.Start(t)
		c, ns := connect(t, s)
		maps := c.CoreV1().ConfigMaps(ns)
		start := create(t, maps, "first")
		w := watchPath(t, s, query("/api/v1/namespaces/"+ns+"/configmaps", "watch", "1", "resourceVersion", start))
		want := []string{}
		for i := range 20 {
			name := fmt.Sprintf("m-%02d", i)
			create(t, maps, name)
			want = append(want, name)
			if i == 9 {
				s.Restart()
			}
		}
		// A server that stops ends watches in order, if not always at its last event.
		var got []string
		for seen, ok := w.next(); ok; seen, ok = w.next() {
			got = append(got, seen.Object.Name)
			start = seen.Object.ResourceVersion
		}
		if !errors.Is(w.ended, io.EOF) || len(got) == 0 {
			t.Fatalf("the watch ended with %v after %v", w.ended, got)
		}
		s.Restart()
		w = watchPath(t, s, query("/api/v1/namespaces/"+ns+"/configmaps", "watch", "1", "resourceVersion", start))
		for len(got) < len(want) {
			seen, ok := w.next()
			if !ok {
				t.Fatalf("the resumed watch ended with %v after %v", w.ended, got)
			}
			got = append(got, seen.Object.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("saw %v, want %v", got, want)
		}
		create(t, maps, "last")
		w.want("ADDED", "last")
	})
}

// TestOnlyTheCompactedIsGone: what is in the history can be read and watched
// from, what was compacted is answered with 410.
func TestOnlyTheCompactedIsGone(t *testing.T) {
	cluster.EachLasting(t, func(t *testing.T, e cluster.Engine) {
		s := e.Start(t)
		c, ns := connect(t, s)
		ctx, maps := t.Context(), c.CoreV1().ConfigMaps(ns)
		path := "/api/v1/namespaces/" + ns + "/configmaps"
		fill(t, c, ns, 4)
		page := must(maps.List(ctx, metav1.ListOptions{Limit: 2}))(t)
		old := page.ResourceVersion
		create(t, maps, "x")
		newer := create(t, maps, "y")
		at := metav1.ListOptions{ResourceVersion: old, ResourceVersionMatch: metav1.ResourceVersionMatchExact}

		s.Restart() // the history is on disk, not in memory
		watchPath(t, s, query(path, "watch", "1", "resourceVersion", old)).want("ADDED", "x")
		if list := must(maps.List(ctx, at))(t); len(list.Items) != 4 {
			t.Errorf("at %s there were %v", old, namesOf(list.Items))
		}
		if rest := must(maps.List(ctx, metav1.ListOptions{Limit: 2, Continue: page.Continue}))(t); len(rest.Items) != 2 {
			t.Errorf("the second page holds %v", namesOf(rest.Items))
		}

		s.Compact()
		s.Restart()
		told, _ := watchPath(t, s, query(path, "watch", "1", "resourceVersion", old)).next()
		if told.Type != "ERROR" || told.Object.Code != http.StatusGone || told.Object.Reason != metav1.StatusReasonExpired {
			t.Errorf("a watch from a compacted revision got %+v", told)
		}
		_, err := maps.List(ctx, at)
		refused(t, "a list of a compacted state", err, apierrors.IsResourceExpired)
		_, err = maps.List(ctx, metav1.ListOptions{Limit: 2, Continue: page.Continue})
		refused(t, "a page of a compacted state", err, apierrors.IsResourceExpired)
		status, ok := err.(apierrors.APIStatus)
		if !ok || status.Status().Continue == "" {
			t.Fatalf("no token to go on with: %v", err)
		}
		rest := must(maps.List(ctx, metav1.ListOptions{Continue: status.Status().Continue}))(t)
		if got := namesOf(rest.Items); !slices.Equal(got, []string{"m-002", "m-003", "x", "y"}) {
			t.Errorf("going on found %v", got)
		}

		// The newest revision is never gone.
		w := watchPath(t, s, query(path, "watch", "1", "resourceVersion", newer))
		create(t, maps, "z")
		w.want("ADDED", "z")
	})
}

// TestSlowWatcherHarmsNobody has a client that stops reading. Others get all
// events at once, and writers are not held up.
func TestSlowWatcherHarmsNobody(t *testing.T) {
	cluster.Each(t, func(t *testing.T, s *cluster.Server) {
		c, ns := connect(t, s)
		maps := c.CoreV1().ConfigMaps(ns)
		start := create(t, maps, "first")
		path := query("/api/v1/namespaces/"+ns+"/configmaps", "watch", "1", "resourceVersion", start)
		slow := get(t, s, path) // nobody reads this yet
		defer func() { _ = slow.Body.Close() }()
		fast := watchPath(t, s, path)

		const writers, each = 4, 50
		var all sync.WaitGroup
		for w := range writers {
			all.Go(func() {
				for i := range each {
					cm := configMap(fmt.Sprintf("m-%d-%d", w, i), "padding", strings.Repeat("x", 20_000))
					if _, err := maps.Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		seen := func(w *stream) (last int) {
			t.Helper()
			for i := range writers * each {
				e, ok := w.next()
				if !ok || e.Type != "ADDED" {
					t.Fatalf("after %d events: %+v, %v", i, e, w.ended)
				}
				rv := revisionOf(t, e.Object.ResourceVersion)
				if rv <= last {
					t.Fatalf("revision %d after %d", rv, last)
				}
				last = rv
			}
			return last
		}
		last := seen(fast)
		all.Wait()

		// The slow one goes on where it was.
		late := &stream{t: t, events: make(chan partialEvent, 10_000)}
		go late.read(slow.Body)
		if got := seen(late); got != last {
			t.Errorf("the slow watcher saw up to %d, the fast one up to %d", got, last)
		}
	})
}

// TestRingOverflows has more events than the server keeps at hand: a watch from
// before still gets each of them, and only compaction takes them away.
func TestRingOverflows(t *testing.T) {
	t.Parallel()
	s := cluster.Memory.Start(t)
	c, ns := connect(t, s)
	maps := c.CoreV1().ConfigMaps(ns)
	const writers, each = 8, 650 // the ring holds 4096
	start := ""
	for w := range writers {
		start = create(t, maps, fmt.Sprintf("w-%d", w))
	}
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				if _, err := maps.Update(t.Context(), configMap(fmt.Sprintf("w-%d", w), "n", fmt.Sprint(w, i)), metav1.UpdateOptions{}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	path := query("/api/v1/namespaces/"+ns+"/configmaps", "watch", "1", "resourceVersion", start)
	w := watchPath(t, s, path)
	seen := map[string]bool{}
	for range writers * each {
		e, ok := w.next()
		if !ok || e.Type != "MODIFIED" {
			t.Fatalf("got %+v, %v", e, w.ended)
		}
		seen[e.Object.Data["n"]] = true
	}
	if len(seen) != writers*each {
		t.Errorf("saw %d of %d writes", len(seen), writers*each)
	}
	s.Compact()
	e, _ := watchPath(t, s, path).next()
	if e.Type != "ERROR" || e.Object.Code != http.StatusGone {
		t.Errorf("after compaction got %+v", e)
	}
}
