package operator_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/client"
	v1 "github.com/even-keel/evenkeel/examples/cloudmanager/api/v1"
)

// patience is how long is waited for what has to come true.
const patience = 30 * time.Second

// awaitAll waits until check has nothing to say about the objects of a kind, by their
// names. It looks again whenever one changes.
func awaitAll[T client.Object](t testing.TB, c *client.Client[T], check func(map[string]T) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	last := errors.New("the server was not heard of")
	for ctx.Err() == nil { // watches end now and then
		all, complete := map[string]T{}, false
		for event, err := range c.Watch(ctx, client.InitialEvents()) {
			if err != nil {
				break
			}
			switch event.Type {
			case client.Added, client.Modified:
				all[event.Object.GetName()] = event.Object
			case client.Deleted:
				delete(all, event.Object.GetName())
			case client.Bookmark:
				complete = complete || event.InitialEnd()
			}
			if complete {
				if last = check(all); last == nil {
					return
				}
			}
		}
	}
	t.Fatalf("waited for %s: %v", patience, last)
}

// await waits until check has nothing to say about an object.
func await[T client.Object](w *world, c *client.Client[T], name string, check func(T) error) (found T) {
	w.Helper()
	awaitAll(w, c.In(w.ns), func(all map[string]T) error {
		var there bool
		if found, there = all[name]; !there {
			return fmt.Errorf("%s is not there", name)
		}
		return check(found)
	})
	return found
}

func awaitGone[T client.Object](w *world, c *client.Client[T], name string) {
	w.Helper()
	awaitAll(w, c.In(w.ns), func(all map[string]T) error {
		if _, there := all[name]; there {
			return fmt.Errorf("%s is still there", name)
		}
		return nil
	})
}

// poll asks until there is nothing to say, of what nothing tells when it changes.
func poll(t testing.TB, check func() error) {
	t.Helper()
	late, tick := time.After(patience), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for err := check(); err != nil; err = check() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("waited for %s: %v", patience, err)
		}
	}
}

// phase waits until the application is in a phase, of its present generation.
func (w *world) phase(want v1.Phase) *v1.CloudManager {
	w.Helper()
	return w.phaseOf("cloud", want)
}

func (w *world) phaseOf(name string, want v1.Phase) *v1.CloudManager {
	w.Helper()
	return await(w, managers(w.server), name, func(cm *v1.CloudManager) error {
		if cm.Status.Phase != want || cm.Status.ObservedGeneration != cm.Generation {
			return fmt.Errorf("%s is not %s, but %+v at generation %d", name, want, cm.Status, cm.Generation)
		}
		return nil
	})
}

// condition waits until the application has a condition.
func (w *world) condition(kind string, status metav1.ConditionStatus, reason, message string) {
	w.Helper()
	await(w, managers(w.server), "cloud", func(cm *v1.CloudManager) error {
		c := meta.FindStatusCondition(cm.Status.Conditions, kind)
		if c == nil || c.Status != status || c.Reason != reason || !strings.Contains(c.Message, message) || c.ObservedGeneration != cm.Generation {
			return fmt.Errorf("not %s %s %s %q, but %+v", kind, status, reason, message, c)
		}
		return nil
	})
}

// event waits until people are told of something about an application.
func (w *world) event(about, kind, reason, note string) {
	w.Helper()
	awaitAll(w, client.Of[*eventsv1.Event](w.conn).In(w.ns), func(all map[string]*eventsv1.Event) error {
		var heard []string
		for _, e := range all {
			if e.Regarding.Name == about && e.Regarding.Kind == "CloudManager" && e.Type == kind && e.Reason == reason && strings.Contains(e.Note, note) {
				return nil
			}
			heard = append(heard, fmt.Sprint(e.Regarding.Name, e.Type, e.Reason, e.Note))
		}
		return fmt.Errorf("%s %s %s %q is not among %q", about, kind, reason, note, heard)
	})
}

// settled waits until the operator has nothing left to do, and checks that it has not
// kept itself busy.
func (w *world) settled() {
	w.Helper()
	poll(w, func() error {
		return errors.Join(w.idle(), upToDate(w, managers(w.server)), upToDate(w, secrets(w.server)),
			upToDate(w, statefulSets(w.server)), upToDate(w, deployments(w.server)))
	})
	if st := w.op.Status(); st.HotTotal > 0 || st.Panics > 0 {
		w.Errorf("hot loops: %d, now %v; panics: %d", st.HotTotal, st.Hot, st.Panics)
	}
}

func (w *world) idle() error {
	st := w.op.Status()
	if st.Queue.Ready+st.Queue.Running+st.Queue.Delayed+st.Active > 0 {
		return fmt.Errorf("there is work: %+v", st.Queue)
	}
	for _, in := range w.op.Informers() {
		if in.Pending > 0 {
			return fmt.Errorf("%s: %d are yet to be told", in.Kind, in.Pending)
		}
	}
	if last := w.op.Recent(); len(last) == 0 || len(last[0].Writes) > 0 && last[0].Writes[0].Error == "" {
		return fmt.Errorf("the last reconcile wrote: %+v", last)
	}
	return nil
}

// upToDate compares what the operator's cache has with what is there.
func upToDate[T client.Object](w *world, live *client.Client[T]) error {
	revisions := func(c *client.Client[T]) (all []string) {
		for obj, err := range c.In(w.ns).List(w.Context()) {
			if err != nil {
				w.Fatal(err)
			}
			all = append(all, obj.GetName()+"@"+obj.GetResourceVersion())
		}
		slices.Sort(all)
		return all
	}
	if has, is := revisions(client.Of[T](w.mgr)), revisions(live); !slices.Equal(has, is) {
		return fmt.Errorf("the cache has %q of %q", has, is)
	}
	return nil
}

// has settles, and checks which objects there are in the end.
func (w *world) has(want ...string) {
	w.Helper()
	w.settled()
	var got []string
	got = append(got, names(w, "Deployment/", deployments(w.server))...)
	got = append(got, names(w, "Secret/", secrets(w.server))...)
	got = append(got, names(w, "StatefulSet/", statefulSets(w.server))...)
	if !slices.Equal(got, want) {
		w.Errorf("there are %q, not %q", got, want)
	}
}

func names[T client.Object](w *world, kind string, c *client.Client[T]) (all []string) {
	w.Helper()
	for obj, err := range c.In(w.ns).List(w.Context()) {
		if err != nil {
			w.Fatal(err)
		}
		all = append(all, kind+obj.GetName())
	}
	slices.Sort(all)
	return all
}
