package informer_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/even-keel/evenkeel/informer"
)

// TestABookmarkMovesWhereAWatchGoesOnFrom: of a kind that nothing happens to, the
// revision must not grow old until the server has forgotten it.
func TestABookmarkMovesWhereAWatchGoesOnFrom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{answer: func(r *http.Request) *http.Response {
			switch {
			case r.URL.Query().Get("sendInitialEvents") != "":
				return stream(func(t *tape) {
					t.send(oneMap, "ADDED", "a", 3)
					t.send(endMark, 7)
					t.wait(time.Minute)
					t.send(bookmark, 50)
				})
			case r.URL.Query().Get("resourceVersion") == "50":
				return stream(func(t *tape) {
					t.send(bookmark, 60)
					t.wait(time.Minute)
				})
			}
			return quiet(time.Hour)
		}}
		set := informer.NewSet(s.connect(t), informer.Config{})
		in := informer.For[*corev1.ConfigMap](set)
		set.Start()
		time.Sleep(5 * time.Minute)
		set.Shutdown()
		var asked []string
		for _, a := range s.log() {
			asked = append(asked, a.query)
		}
		if want := []string{"watchlist", "watch from 50", "watch from 60"}; !slices.Equal(asked, want) {
			t.Errorf("it asked for %q, not %q", asked, want)
		}
		if got := in.Snapshot().Revision(); got != "60" || in.Count() != 1 {
			t.Errorf("the cache is complete up to %s, with %d objects", got, in.Count())
		}
	})
}

const (
	firstPage = `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"7","continue":"more"},"items":[{"metadata":{"name":"a","namespace":"ns","uid":"u1","resourceVersion":"3"}}]}`
	lastPage  = `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"b","namespace":"ns","uid":"u2","resourceVersion":"4"}}]}`
	onePage   = `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"c","namespace":"ns","uid":"u3","resourceVersion":"8"}}]}`
)

func TestAStateIsListedInPages(t *testing.T) {
	for name, test := range map[string]struct {
		expires bool
		asked   []string // limit, continue
		has     string
	}{
		"to the last": {false, []string{"2 ", "2 more"}, "a b at 7"},
		// A server that forgets faster than pages can be read is asked for all at once.
		"or in one, if they expire": {true, []string{"2 ", "2 more", " "}, "c at 9"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var asked []string
				list := func(q url.Values) *http.Response {
					mu.Lock()
					defer mu.Unlock()
					asked = append(asked, q.Get("limit")+" "+q.Get("continue"))
					switch {
					case q.Get("continue") != "" && test.expires:
						return refusal(410, "Expired")
					case q.Get("continue") != "":
						return stream(func(t *tape) { t.send(lastPage) })
					case q.Get("limit") == "":
						return stream(func(t *tape) { t.send(onePage) })
					}
					return stream(func(t *tape) { t.send(firstPage) })
				}
				s := &script{answer: func(r *http.Request) *http.Response {
					if isWatch(r) {
						return quiet(time.Hour)
					}
					return list(r.URL.Query())
				}}
				set := informer.NewSet(s.connect(t), informer.Config{PageSize: 2})
				in := informer.For[*corev1.ConfigMap](set, informer.NoWatchList())
				set.Start()
				if err := in.WaitForSync(t.Context()); err != nil {
					t.Fatal(err)
				}
				set.Shutdown()
				if !slices.Equal(asked, test.asked) {
					t.Errorf("it asked for %q, not %q", asked, test.asked)
				}
				var names []string
				for m := range in.List() {
					names = append(names, m.Name)
				}
				if got := strings.Join(names, " ") + " at " + string(in.Snapshot().Revision()); got != test.has {
					t.Errorf("the cache has %s, not %s", got, test.has)
				}
			})
		})
	}
}
