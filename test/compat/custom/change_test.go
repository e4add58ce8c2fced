package custom

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/even-keel/evenkeel/test/compat/cluster"
)

// stores has a definition say in which version objects are stored.
func stores(which string, versions ...string) func(crd *unstructured.Unstructured) {
	return func(crd *unstructured.Unstructured) {
		var all []any
		for _, v := range versions {
			all = append(all, version(v, v == which, object{"host": text}))
		}
		crd.Object["spec"].(object)["versions"] = all
	}
}

// TestStorageMigrates goes from one stored version to another: each write
// rewrites, and when none is left the old version can go.
func TestStorageMigrates(t *testing.T) {
	cluster.Each(t, func(t *testing.T, s *cluster.Server) {
		c := connect(t, s)
		define(t, c, hosts(version("v1", true, object{"host": text})))
		first := c.Resource(v1).Namespace("default")
		must(first.Create(t.Context(), host("v1", "a", object{"host": "x"}), metav1.CreateOptions{}))(t)
		redefine(t, c, stores("v2", "v1", "v2"))
		if crd := must(c.Resource(definitions).Get(t.Context(), name, metav1.GetOptions{}))(t); !sameStrings(stored(crd), "v1", "v2") {
			t.Errorf("stored versions: %v", stored(crd))
		}
		second := c.Resource(v2).Namespace("default")
		var u *unstructured.Unstructured
		eventually(t, "the new version is served", func(ctx context.Context) (ok bool) {
			var err error
			u, err = second.Get(ctx, "a", metav1.GetOptions{})
			return err == nil
		})
		// To write what was read is to store it anew, once.
		before := u.GetResourceVersion()
		u = must(second.Update(t.Context(), u, metav1.UpdateOptions{}))(t)
		if after := u.GetResourceVersion(); after == before {
			t.Error("an update that changes nothing but the stored version was none")
		}
		if again := must(second.Update(t.Context(), u, metav1.UpdateOptions{}))(t); again.GetResourceVersion() != u.GetResourceVersion() {
			t.Error("an update that changes nothing at all was one")
		}

		crd := must(c.Resource(definitions).Get(t.Context(), name, metav1.GetOptions{}))(t)
		stores("v2", "v2")(crd)
		if _, err := c.Resource(definitions).Update(t.Context(), crd, metav1.UpdateOptions{}); err == nil || !strings.Contains(err.Error(), "must remain in spec.versions until a storage migration") {
			t.Errorf("a stored version was removed: %v", err)
		}
		eventually(t, "the stored versions are trimmed", func(ctx context.Context) bool {
			crd := must(c.Resource(definitions).Get(ctx, name, metav1.GetOptions{}))(t)
			_ = unstructured.SetNestedStringSlice(crd.Object, []string{"v2"}, "status", "storedVersions")
			_, err := c.Resource(definitions).UpdateStatus(ctx, crd, metav1.UpdateOptions{})
			return err == nil
		})
		redefine(t, c, stores("v2", "v2"))
		eventually(t, "the old version is gone", func(ctx context.Context) bool {
			_, err := first.Get(ctx, "a", metav1.GetOptions{})
			return err != nil
		})
		if got := must(second.Get(t.Context(), "a", metav1.GetOptions{}))(t); field(got, "spec", "host") != "x" {
			t.Errorf("after its first version went: %v", got.Object)
		}
	})
}

func stored(crd *unstructured.Unstructured) []string {
	s, _, _ := unstructured.NestedStringSlice(crd.Object, "status", "storedVersions")
	return s
}

func sameStrings(got []string, want ...string) bool {
	return strings.Join(got, ",") == strings.Join(want, ",")
}

// TestWatchesEndWithWhatTheyWatch: a watch goes on while its definition is only
// labelled, ends when the kind becomes another, and sees all objects go when the
// kind does.
func TestWatchesEndWithWhatTheyWatch(t *testing.T) {
	cluster.Each(t, func(t *testing.T, s *cluster.Server) {
		c := connect(t, s)
		define(t, c, hosts(version("v1", true, object{"host": text})))
		all := c.Resource(v1).Namespace("default")
		made := must(all.Create(t.Context(), host("v1", "a", object{"host": "x"}), metav1.CreateOptions{}))(t)

		w := must(all.Watch(t.Context(), metav1.ListOptions{ResourceVersion: made.GetResourceVersion()}))(t)
		defer w.Stop()
		redefine(t, c, func(crd *unstructured.Unstructured) { crd.SetLabels(map[string]string{"a": "b"}) })
		made.SetLabels(map[string]string{"seen": "yes"})
		made = must(all.Update(t.Context(), made, metav1.UpdateOptions{}))(t)
		if e := <-w.ResultChan(); e.Type != watch.Modified {
			t.Errorf("watched %v", e)
		}
		redefine(t, c, stores("v1", "v1", "v2"))
		for range w.ResultChan() {
		}

		w = must(all.Watch(t.Context(), metav1.ListOptions{ResourceVersion: made.GetResourceVersion()}))(t)
		defer w.Stop()
		if err := c.Resource(definitions).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		var kinds []watch.EventType
		for e := range w.ResultChan() {
			kinds = append(kinds, e.Type)
		}
		if len(kinds) != 1 || kinds[0] != watch.Deleted {
			t.Errorf("watched the kind go: %v", kinds)
		}
	})
}

// TestKindsOutliveTheServer: a server that comes back serves what is defined
// from its first answer on.
func TestKindsOutliveTheServer(t *testing.T) {
	cluster.EachLasting(t, func(t *testing.T, e cluster.Engine) {
		s := e.Start(t)
		c := connect(t, s)
		define(t, c, hosts(version("v1", true, object{"host": text})))
		must(c.Resource(v1).Namespace("default").Create(t.Context(), host("v1", "a", object{"host": "x"}), metav1.CreateOptions{}))(t)
		s.Restart()
		c = connect(t, s)
		if got := must(c.Resource(v1).Namespace("default").Get(t.Context(), "a", metav1.GetOptions{}))(t); field(got, "spec", "host") != "x" {
			t.Errorf("after a restart: %v", got.Object)
		}
	})
}

// TestTwoServersServeWhatOneDefines: what is defined, changed and deleted at one
// of the servers on an etcd is so at the other.
func TestTwoServersServeWhatOneDefines(t *testing.T) {
	t.Parallel()
	shared := cluster.NewEtcd(t, 1)
	a, b := connect(t, shared.Start(t)), connect(t, shared.Start(t))
	define(t, a, hosts(version("v1", true, object{"host": text})))
	eventually(t, "the first server serves it", func(ctx context.Context) bool { // the other may be who established it
		_, err := a.Resource(v1).Namespace("default").Create(ctx, host("v1", "a", object{"host": "x"}), metav1.CreateOptions{})
		return err == nil
	})
	eventually(t, "the other server serves it", func(ctx context.Context) bool {
		got, err := b.Resource(v1).Namespace("default").Get(ctx, "a", metav1.GetOptions{})
		return err == nil && field(got, "spec", "host") == "x"
	})
	redefine(t, b, stores("v1", "v1", "v2"))
	eventually(t, "the first server serves the new version", func(ctx context.Context) bool {
		_, err := a.Resource(v2).Namespace("default").Get(ctx, "a", metav1.GetOptions{})
		return err == nil
	})
	if err := b.Resource(definitions).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both have stopped serving it", func(ctx context.Context) bool {
		_, first := a.Resource(v1).Namespace("default").List(ctx, metav1.ListOptions{})
		_, second := b.Resource(v1).Namespace("default").List(ctx, metav1.ListOptions{})
		return first != nil && second != nil
	})
}
