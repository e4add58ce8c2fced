package events_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/events"
)

// TestSevenTimesOverSixteenMinutes: what kubectl makes of it.
func TestSevenTimesOverSixteenMinutes(t *testing.T) {
	inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
		s := newScene(t, c, events.Options{})
		for range 7 {
			s.Event(pod("web"), events.Warning, "FailedMount", "no volume %q", "data")
			time.Sleep(2*time.Minute + 20*time.Second)
		}
		if got, want := s.describe(), "2m20s (x7 over 16m)"; !strings.Contains(got, want) {
			t.Errorf("kubectl describe does not say %q:\n%s", want, got)
		}
		got := s.get("default")
		for _, want := range []string{"Last Seen=2m20s", "Type=Warning", "Reason=FailedMount", "Object=pod/web",
			"Source=foo-controller, foo-1", `Message=no volume "data"`, "First Seen=16m", "Count=7"} {
			if !strings.Contains(got, want) {
				t.Errorf("kubectl get does not say %q: %s", want, got)
			}
		}
		e := s.one()
		if e.Series == nil || e.Series.Count != 7 || e.Series.LastObservedTime.Sub(s.start) != 14*time.Minute || !e.EventTime.Time.Equal(s.start) {
			t.Errorf("the event is %v", e)
		}
		s.must("after seven", func(st events.Stats) bool {
			return st.Recorded == 7 && st.Told == 7 && st.Created == 1 && st.Updated == 6 && st.Counted == 6 && st.Combined == 0
		})
	})
}

// kinded is a type that tells its kind.
type kinded struct{ corev1.ConfigMap }

func TestAnEventTellsAllOfIt(t *testing.T) {
	for name, test := range map[string]struct {
		event     events.Event
		regarding corev1.ObjectReference
		namespace string
	}{
		"typed, without a kind": {
			events.Event{Regarding: pod("web")},
			corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "default", Name: "web", UID: "uid-of-pod", ResourceVersion: "7"}, "default",
		},
		"typed, of a group": {
			events.Event{Regarding: &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "system:reader"}}},
			corev1.ObjectReference{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "Role", Namespace: "kube-system", Name: "system:reader"}, "kube-system",
		},
		"outside of namespaces": {
			events.Event{Regarding: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}},
			corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "n1"}, "default",
		},
		"unstructured": {
			events.Event{Regarding: &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "example.com/v1", "kind": "Foo", "metadata": map[string]any{"namespace": "default", "name": "f"}}}},
			corev1.ObjectReference{APIVersion: "example.com/v1", Kind: "Foo", Namespace: "default", Name: "f"}, "default",
		},
		"metadata": {
			events.Event{Regarding: &metav1.PartialObjectMetadata{
				TypeMeta:   metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Foo"},
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: strings.Repeat("long", 60)}}},
			corev1.ObjectReference{APIVersion: "example.com/v1", Kind: "Foo", Namespace: "default", Name: strings.Repeat("long", 60)}, "default",
		},
		"of a scheme": {
			events.Event{Regarding: &kinded{corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "k"}}}},
			corev1.ObjectReference{APIVersion: "v1", Kind: "kinded", Namespace: "default", Name: "k"}, "default",
		},
		"a part of an object": {
			events.Event{Regarding: &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "default", Name: "web", FieldPath: "spec.containers{a}"}},
			corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "default", Name: "web", FieldPath: "spec.containers{a}"}, "default",
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
				scheme := runtime.NewScheme()
				scheme.AddKnownTypes(corev1.SchemeGroupVersion, &kinded{})
				s := newScene(t, c, events.Options{}, client.Scheme(scheme))
				e := test.event
				e.Type, e.Reason, e.Action, e.Note = events.Warning, "Broken", "Mending", "100% gone"
				e.Related, e.Annotations = pod("other"), map[string]string{"a": "b"}
				s.Record(e)
				synctest.Wait()
				time.Sleep(time.Second)
				got := s.one()
				if got.Regarding != test.regarding || got.Namespace != test.namespace {
					t.Errorf("in %s, it is regarding %+v", got.Namespace, got.Regarding)
				}
				if got.Type != "Warning" || got.Reason != "Broken" || got.Action != "Mending" || got.Note != "100% gone" ||
					got.ReportingController != "foo-controller" || got.ReportingInstance != "foo-1" ||
					got.Related == nil || got.Related.Name != "other" || got.Annotations["a"] != "b" || got.Series != nil {
					t.Errorf("the event is %v", got)
				}
				named, may := strings.HasPrefix(got.Name, test.regarding.Name+"."), len(test.regarding.Name) < 200 && !strings.Contains(test.regarding.Name, ":")
				if named != may {
					t.Errorf("it is called %s", got.Name)
				}
			})
		})
	}
}

func TestDefaultsOfAnEvent(t *testing.T) {
	inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
		s := newScene(t, c, events.Options{})
		s.Record(events.Event{Regarding: pod("web"), Reason: "Started"})
		time.Sleep(time.Second)
		if e := s.one(); e.Type != "Normal" || e.Action != "Started" {
			t.Errorf("the event is %v", e)
		}
	})
}

func TestTheSameEventIsOneWhateverTheRevision(t *testing.T) {
	inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
		s := newScene(t, c, events.Options{})
		for i := range 5 {
			p := pod("web")
			p.ResourceVersion = fmt.Sprint(i)
			s.Event(p, events.Normal, "Synced", "done")
			time.Sleep(time.Minute)
		}
		if n := count(s.one()); n != 5 {
			t.Errorf("it was counted %d times", n)
		}
	})
}

func TestOtherEventsAreOthers(t *testing.T) {
	inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
		s := newScene(t, c, events.Options{})
		base := events.Event{Regarding: pod("web"), Reason: "Synced", Note: "done"}
		for _, change := range []func(*events.Event){
			func(*events.Event) {},
			func(e *events.Event) { e.Regarding = pod("db") },
			func(e *events.Event) {
				p := pod("web")
				p.UID = "another"
				e.Regarding = p
			},
			func(e *events.Event) { e.Type = events.Warning },
			func(e *events.Event) { e.Reason = "Synchronized" },
			func(e *events.Event) { e.Action = "Sync" },
			func(e *events.Event) { e.Note = "really done" },
			func(e *events.Event) { e.Related = pod("other") },
		} {
			e := base
			change(&e)
			s.Record(e)
		}
		time.Sleep(time.Second)
		if n := len(s.all()); n != 8 {
			t.Errorf("there are %d events:\n%s", n, s.describe())
		}
	})
}

// TestAHotLoopMakesFewWrites, and its count is exact in the end.
func TestAHotLoopMakesFewWrites(t *testing.T) {
	inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
		s := newScene(t, c, events.Options{})
		for range 36000 {
			s.Event(pod("web"), events.Warning, "Failed", "again")
			time.Sleep(100 * time.Millisecond)
		}
		if n := count(s.one()); n < 36000*10/12 {
			t.Errorf("after an hour the server has heard of %d", n)
		}
		s.cancel()
		if n := count(s.one()); n != 36000 {
			t.Errorf("in the end, it was counted %d times", n)
		}
		if n := len(s.road.writes()); n > 25 {
			t.Errorf("it took %d writes", n)
		}
		s.must("in the end", func(st events.Stats) bool { return st.Told == 36000 && st.Pending == 0 })
	})
}

func TestASilentSeriesEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
		s := newScene(t, c, events.Options{})
		for _, silence := range []time.Duration{29 * time.Minute, 31 * time.Minute, time.Second} {
			s.Event(pod("web"), events.Normal, "Synced", "done")
			time.Sleep(silence)
		}
		var counts []int
		for _, e := range s.all() {
			counts = append(counts, count(e))
		}
		if fmt.Sprint(counts) != "[2 1]" {
			t.Errorf("the events were counted %v times:\n%s", counts, s.describe())
		}
	})
}

// TestAnExpiredEventIsMadeAgain: servers keep events for an hour.
func TestAnExpiredEventIsMadeAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
		s := newScene(t, c, events.Options{SeriesFor: 3 * time.Hour})
		s.Event(pod("web"), events.Normal, "Synced", "done")
		time.Sleep(90 * time.Minute)
		if n := len(s.all()); n != 0 {
			t.Fatalf("the server still has %d events", n)
		}
		s.Event(pod("web"), events.Normal, "Synced", "done")
		time.Sleep(time.Second)
		if e := s.one(); count(e) != 2 || !e.EventTime.Time.Equal(s.start) {
			t.Errorf("the event is %v", e)
		}
		s.must("after it expired", func(st events.Stats) bool { return st.Told == 2 && st.Created == 2 && st.Updated == 0 })
	})
}

func TestSimilarEventsAreCombined(t *testing.T) {
	inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
		s := newScene(t, c, events.Options{})
		for i := range 100 {
			s.Record(events.Event{Regarding: pod("web"), Related: pod(fmt.Sprint("p", i)), Reason: "Created", Note: fmt.Sprintf("created %d", i)})
			time.Sleep(100 * time.Millisecond)
		}
		s.Event(pod("web"), events.Normal, "Scaled", "up") // is not similar
		s.cancel()
		all := s.all()
		if len(all) != 12 {
			t.Fatalf("there are %d events:\n%s", len(all), s.describe())
		}
		combined := all[10]
		if combined.Note != "(combined from similar events): created 10" || count(combined) != 90 || combined.Related != nil {
			t.Errorf("the combined event is %v", combined)
		}
		s.must("in the end", func(st events.Stats) bool {
			return st.Told == 101 && st.Combined == 90 && st.Counted == 89 && st.Created == 12
		})
	})
}

// TestRareSimilarEventsAreToldApart: eleven are too many only within ten minutes.
func TestRareSimilarEventsAreToldApart(t *testing.T) {
	inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
		s := newScene(t, c, events.Options{Burst: 100})
		for i := range 30 {
			s.Event(pod("web"), events.Normal, "Created", "created %d", i)
			time.Sleep(61 * time.Second)
		}
		if st := s.Stats(); st.Combined != 0 || st.Created != 30 {
			t.Errorf("%+v:\n%s", st, s.describe())
		}
	})
}

func TestTooManyNewEventsAreDropped(t *testing.T) {
	inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
		s := newScene(t, c, events.Options{Similar: 1000})
		for i := range 100 {
			s.Event(pod("web"), events.Normal, "Created", "created %d", i)
		}
		s.Event(pod("db"), events.Normal, "Created", "created") // has its own bucket
		time.Sleep(time.Second)
		s.must("at once", func(st events.Stats) bool { return st.Created == 26 && st.Dropped.Spam == 75 })
		for i := range 10 {
			time.Sleep(time.Minute)
			s.Event(pod("web"), events.Normal, "Created", "more %d", i)
		}
		time.Sleep(time.Second)
		s.must("after ten minutes", func(st events.Stats) bool { return st.Created == 28 && st.Dropped.Spam == 83 })
	})
}

// TestCountsWaitWhenThereWereTooMany, and are not lost.
func TestCountsWaitWhenThereWereTooMany(t *testing.T) {
	inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
		s := newScene(t, c, events.Options{Burst: 1})
		for range 3 {
			s.Event(pod("web"), events.Normal, "Synced", "done")
			time.Sleep(30 * time.Second)
		}
		if n := count(s.one()); n != 1 {
			t.Errorf("the server has heard of %d", n)
		}
		s.must("meanwhile", func(st events.Stats) bool { return st.Pending == 2 && st.Dropped.Total() == 0 })
		time.Sleep(5 * time.Minute)
		if e := s.one(); count(e) != 3 || e.Series.LastObservedTime.Sub(s.start) != time.Minute {
			t.Errorf("the event is %v", e)
		}
	})
}

func TestLongNotesAreCut(t *testing.T) {
	inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
		s := newScene(t, c, events.Options{Similar: 1})
		s.Event(pod("web"), events.Normal, "Long", "%s", "x"+strings.Repeat("ü", 2000))
		s.Event(pod("web"), events.Normal, "Long", "%s", strings.Repeat("y", 2000)) // is combined
		time.Sleep(time.Second)
		all := s.all()
		if len(all) != 2 {
			t.Fatalf("there are %d events: %+v", len(all), s.Stats())
		}
		for _, e := range all {
			if len(e.Note) > 1024 || len(e.Note) < 1020 || !strings.HasSuffix(e.Note, "...") || strings.Contains(e.Note, "\ufffd") {
				t.Errorf("the note has %d bytes: %s", len(e.Note), e.Note)
			}
		}
	})
}

// TestFailuresAreRepeated until the server has heard of everything, once.
func TestFailuresAreRepeated(t *testing.T) {
	for _, m := range []mode{hangs, refuses, fails, busy, conflict, unknown, loses} {
		t.Run(string(m), func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
				s := newScene(t, c, events.Options{})
				s.Event(pod("db"), events.Normal, "Synced", "before")
				time.Sleep(time.Second)
				s.road.set(m)
				for range 5 {
					s.Event(pod("web"), events.Normal, "Synced", "new")
					s.Event(pod("db"), events.Normal, "Synced", "before")
					time.Sleep(20 * time.Second)
				}
				s.must("meanwhile", func(st events.Stats) bool { return st.Pending > 0 && st.Dropped.Total() == 0 })
				s.road.set(open)
				time.Sleep(2 * time.Minute)
				all := s.all()
				if len(all) != 2 || count(all[0]) != 6 || count(all[1]) != 5 {
					t.Errorf("%+v:\n%s", s.Stats(), s.describe())
				}
				s.must("in the end", func(st events.Stats) bool { return st.Told == 11 && st.Pending == 0 })
			})
		})
	}
}

func TestAServerThatIsGoneForLongIsGivenUp(t *testing.T) {
	inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
		s := newScene(t, c, events.Options{})
		s.road.set(refuses)
		s.Event(pod("web"), events.Normal, "Synced", "done")
		time.Sleep(4 * time.Minute)
		s.must("after four minutes", func(st events.Stats) bool { return st.Pending == 1 })
		time.Sleep(10 * time.Minute)
		s.must("after fourteen", func(st events.Stats) bool { return st.Pending == 0 && st.Dropped.Unreachable == 1 && st.Series == 0 })
		if n := len(s.road.writes()); n != 15 {
			t.Errorf("it was tried %d times", n)
		}
	})
}

func TestWhatIsRefusedIsDroppedAtOnce(t *testing.T) {
	masters := []string{"system:masters"}
	for name, test := range map[string]struct {
		groups []string
		object func(*testing.T, *scene) *corev1.Pod
	}{
		"without the right": {nil, func(*testing.T, *scene) *corev1.Pod { return pod("web") }},
		"no namespace": {masters, func(*testing.T, *scene) *corev1.Pod {
			p := pod("web")
			p.Namespace = "nowhere"
			return p
		}},
		"a namespace that goes": {masters, func(t *testing.T, s *scene) *corev1.Pod {
			namespaces := client.Of[*corev1.Namespace](s.direct)
			if _, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "going"}}); err != nil {
				t.Fatal(err)
			}
			if err := namespaces.Delete(t.Context(), client.Key{Name: "going"}); err != nil {
				t.Fatal(err)
			}
			p := pod("web")
			p.Namespace = "going"
			return p
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
				s := idleScene(t, c, events.Options{}, c.ConfigFor("somebody", test.groups...))
				p := test.object(t, s)
				s.Event(p, events.Normal, "Synced", "done")
				s.Event(p, events.Normal, "Synced", "done")
				s.run()
				time.Sleep(time.Second)
				s.must("in the end", func(st events.Stats) bool { return st.Dropped.Refused == 2 && st.Pending == 0 && st.Series == 0 })
				if n := len(s.road.writes()); n != 1 {
					t.Errorf("it was tried %d times", n)
				}
			})
		})
	}
}

// TestRecordingNeverWaits: not for a server that hangs, nor for the room to keep more.
func TestRecordingNeverWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
		s := newScene(t, c, events.Options{MaxSeries: 50})
		s.road.set(hangs)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for i := range 1000 {
					s.Event(pod(fmt.Sprint("web-", i%100)), events.Normal, "Synced", "done")
				}
			})
		}
		all.Wait()
		if took := time.Since(s.start); took > 0 {
			t.Errorf("it took %s", took)
		}
		s.must("while it hangs", func(st events.Stats) bool {
			return st.Recorded == 8000 && st.Series == 50 && st.Dropped.Full == 4000 && st.Pending == 4000
		})
		s.road.set(open)
		time.Sleep(2 * time.Minute)
		s.must("after it", func(st events.Stats) bool { return st.Told == 4000 && st.Pending == 0 })
		s.Event(pod("new"), events.Normal, "Synced", "done") // in the place of one that is told
		time.Sleep(time.Second)
		s.must("later", func(st events.Stats) bool { return st.Told == 4001 && st.Series == 50 })
	})
}

func TestWhatIsPendingIsWrittenAtTheEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
		s := newScene(t, c, events.Options{Writers: 2})
		for range 3 {
			for i := range 20 {
				s.Event(pod(fmt.Sprint("web-", i)), events.Normal, "Synced", "done")
			}
		}
		end := time.Now()
		s.cancel()
		if took := time.Since(end); took > 100*time.Millisecond {
			t.Errorf("it took %s", took)
		}
		for _, e := range s.all() {
			if count(e) != 3 {
				t.Errorf("the event is %v", e)
			}
		}
		s.must("in the end", func(st events.Stats) bool { return st.Told == 60 })
		s.Event(pod("web"), events.Normal, "Synced", "late")
		s.must("after the end", func(st events.Stats) bool { return st.Dropped.Stopped == 1 })
	})
}

func TestTheEndIsNotWaitedForLongerThanTheGrace(t *testing.T) {
	for _, m := range []mode{hangs, refuses} {
		t.Run(string(m), func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
				s := newScene(t, c, events.Options{Grace: 3 * time.Second})
				s.road.set(m)
				for i := range 20 {
					s.Event(pod(fmt.Sprint("web-", i)), events.Normal, "Synced", "done")
				}
				time.Sleep(time.Minute)
				end := time.Now()
				s.cancel()
				if took := time.Since(end); took != 3*time.Second {
					t.Errorf("it took %s", took)
				}
				s.must("in the end", func(st events.Stats) bool { return st.Dropped.Stopped == 20 && st.Pending == 0 })
			})
		})
	}
}

func TestEventsBeforeRunAreKept(t *testing.T) {
	inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
		s := idleScene(t, c, events.Options{}, c.Config())
		s.Event(pod("web"), events.Normal, "Synced", "done")
		time.Sleep(time.Minute)
		s.Event(pod("web"), events.Normal, "Synced", "done")
		s.run()
		time.Sleep(time.Second)
		if e := s.one(); count(e) != 2 || !e.EventTime.Time.Equal(s.start) {
			t.Errorf("the event is %v", e)
		}
		if got := fmt.Sprint(s.road.writes()); got != "[POST]" {
			t.Errorf("it took %s", got)
		}
	})
}

// unknownType tells nobody its kind.
type unknownType struct{ corev1.Pod }

func TestEventsThatCannotBeToldAreDropped(t *testing.T) {
	conn, err := client.Connect(&rest.Config{Host: "http://nowhere.invalid"})
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	for name, e := range map[string]events.Event{
		"no object":             {Reason: "R"},
		"a nil object":          {Reason: "R", Regarding: (*corev1.Pod)(nil)},
		"an unknown type":       {Reason: "R", Regarding: &unknownType{}},
		"no metadata":           {Reason: "R", Regarding: &metav1.Status{}},
		"no reason":             {Regarding: pod("a")},
		"a long reason":         {Regarding: pod("a"), Reason: strings.Repeat("R", 129)},
		"a long action":         {Regarding: pod("a"), Reason: "R", Action: strings.Repeat("A", 129)},
		"a strange type":        {Regarding: pod("a"), Reason: "R", Type: "Error"},
		"a related that is nil": {Regarding: pod("a"), Reason: "R", Related: (*corev1.Pod)(nil)},
	} {
		t.Run(name, func(t *testing.T) {
			rec := events.New(conn, events.Options{Component: "foo", Logger: logTo(&log)})
			log.Reset()
			rec.Record(e)
			if st := rec.Stats(); st.Dropped.Bad != 1 || st.Recorded != 1 {
				t.Errorf("%+v", st)
			}
			if !strings.Contains(log.String(), "an event was dropped") {
				t.Errorf("the log says %q", log.String())
			}
		})
	}
}

func TestOptionsMustFit(t *testing.T) {
	conn, err := client.Connect(&rest.Config{Host: "http://nowhere.invalid"})
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]events.Options{
		"no component":    {},
		"a bad component": {Component: "foo controller"},
		"a long instance": {Component: "foo", Instance: strings.Repeat("i", 129)},
	} {
		if err := events.New(conn, o).Run(t.Context()); !errors.Is(err, events.ErrOption) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	rec := events.New(conn, events.Options{Component: "example.com/foo"})
	if err := rec.Run(ctx); err != nil {
		t.Error(err)
	}
	if err := rec.Run(ctx); !errors.Is(err, events.ErrRan) {
		t.Errorf("a second Run returned %v", err)
	}
}

func logTo(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }
