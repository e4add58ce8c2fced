package controllerruntime

import (
	"io"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

// TestOperatorsReconcile follows an operator through the life of what it is for.
func TestOperatorsReconcile(t *testing.T) {
	each(t, func(w *world) {
		m := w.manager(nil)
		check(w, (&copier{name: "one"}).setUp(m))
		w.start(m)
		source := w.source("app", map[string]string{"image": "app:1"})
		check(w, w.Create(w.Context(), source))
		w.mustBeCopied("app", "app:1")
		w.mustBeSigned("app", "one")
		w.mustBeTold(source)

		// What is changed.
		check(w, w.Patch(w.Context(), source, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"image":"app:2"}}`))))
		w.mustBeCopied("app", "app:2")

		// What somebody else deletes or changes comes back.
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "app", Namespace: w.ns}}
		check(w, w.Delete(w.Context(), secret))
		w.mustBeCopied("app", "app:2")
		check(w, w.Patch(w.Context(), secret, client.RawPatch("application/merge-patch+json", []byte(`{"stringData":{"image":"forged"}}`))))
		w.mustBeCopied("app", "app:2")

		// What the operator has no opinion on is others' to change.
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "app", Namespace: w.ns}}
		check(w, w.Patch(w.Context(), d, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":3}}`))))
		check(w, w.Patch(w.Context(), source, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"image":"app:3"}}`))))
		w.mustBeCopied("app", "app:3")
		if w.read("app", d); *d.Spec.Replicas != 3 {
			w.Errorf("apply took back the replicas: %d", *d.Spec.Replicas)
		}

		check(w, w.Delete(w.Context(), source))
		w.eventually("the ConfigMap is let go", func() (bool, any) {
			var left corev1.ConfigMap
			return !w.read("app", &left), left.ObjectMeta
		})
		if w.read("app", secret) || w.read("app", d) {
			w.Error("what was deleted before the finalizer is still there")
		}
	})
}

func (w *world) mustBeCopied(name, image string) {
	w.Helper()
	var source corev1.ConfigMap
	w.read(name, &source)
	w.eventually(name+" is copied", func() (bool, any) {
		var secret corev1.Secret
		var d appsv1.Deployment
		if !w.read(name, &secret) || !w.read(name, &d) {
			return false, "nothing"
		}
		got := []string{string(secret.Data["image"]), d.Spec.Template.Spec.Containers[0].Image}
		owned := metav1.IsControlledBy(&secret, &source) && metav1.IsControlledBy(&d, &source)
		return owned && slices.Equal(got, []string{image, image}), got
	})
}

func (w *world) mustBeSigned(name, by string) {
	w.Helper()
	w.eventually(name+" is signed", func() (bool, any) {
		var source corev1.ConfigMap
		there := w.read(name, &source)
		return there && source.Annotations[copiedBy] == by && slices.Contains(source.Finalizers, finalizer), source.ObjectMeta
	})
}

func (w *world) mustBeTold(of client.Object) {
	w.Helper()
	w.eventually("the event is there", func() (bool, any) {
		var events eventsv1.EventList
		check(w, w.List(w.Context(), &events, client.InNamespace(w.ns)))
		return slices.ContainsFunc(events.Items, func(e eventsv1.Event) bool {
			return e.Regarding.UID == of.GetUID() && e.Reason == "Copied" && e.Related.Kind == "Secret" && e.ReportingController == "one"
		}), events.Items
	})
}

// TestCachesAreIndexed: caches list by fields of one's own choice, and an
// uncached reader knows the server's.
func TestCachesAreIndexed(t *testing.T) {
	each(t, func(w *world) {
		m := w.manager(nil)
		check(w, m.GetFieldIndexer().IndexField(w.Context(), &corev1.ConfigMap{}, "data.tier", func(obj client.Object) []string {
			return []string{obj.(*corev1.ConfigMap).Data["tier"]}
		}))
		w.start(m)
		for name, tier := range map[string]string{"a": "front", "b": "back", "c": "front"} {
			check(w, w.Create(w.Context(), w.source(name, map[string]string{"tier": tier})))
		}
		listed := func(from client.Reader, by client.MatchingFields) (names []string) {
			w.Helper()
			var list corev1.ConfigMapList
			check(w, from.List(w.Context(), &list, client.InNamespace(w.ns), by))
			for _, cm := range list.Items {
				names = append(names, cm.Name)
			}
			slices.Sort(names)
			return names
		}
		w.eventually("the cache lists by tier", func() (bool, any) {
			got := listed(m.GetClient(), client.MatchingFields{"data.tier": "front"})
			return slices.Equal(got, []string{"a", "c"}), got
		})
		if got := listed(m.GetAPIReader(), client.MatchingFields{"metadata.name": "b"}); !slices.Equal(got, []string{"b"}) {
			w.Errorf("listed by name: %v", got)
		}
		var some corev1.ConfigMapList
		err := m.GetAPIReader().List(w.Context(), &some, client.InNamespace(w.ns), client.MatchingFields{"data.tier": "front"})
		if !apierrors.IsBadRequest(err) {
			w.Errorf("the server lists by a field that it does not know: %v", err)
		}
		check(w, w.Delete(w.Context(), w.source("a", nil)))
		w.eventually("the cache forgets", func() (bool, any) {
			got := listed(m.GetClient(), client.MatchingFields{"data.tier": "front"})
			return slices.Equal(got, []string{"c"}), got
		})
	})
}

// TestOneManagerLeads: of two managers one works; when it stops the other does.
func TestOneManagerLeads(t *testing.T) {
	each(t, func(w *world) {
		elect := func(o *ctrl.Options) {
			o.LeaderElection, o.LeaderElectionID, o.LeaderElectionNamespace = true, "copier", w.ns
			o.LeaderElectionReleaseOnCancel = true
			o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = ptr.To(10*time.Second), ptr.To(8*time.Second), ptr.To(50*time.Millisecond)
		}
		first, second := w.manager(elect), w.manager(elect)
		check(w, (&copier{name: "first"}).setUp(first))
		check(w, (&copier{name: "second"}).setUp(second))
		stop := w.start(first)
		<-first.Elected()
		w.start(second)
		check(w, w.Create(w.Context(), w.source("a", map[string]string{"image": "a:1"})))
		w.mustBeSigned("a", "first")
		select {
		case <-second.Elected():
			w.Error("both lead")
		default:
		}
		holder := w.holder()
		stop()
		<-second.Elected()
		check(w, w.Create(w.Context(), w.source("b", map[string]string{"image": "b:1"})))
		w.mustBeSigned("b", "second")
		if now := w.holder(); now == holder || now == "" {
			w.Errorf("the lease was held by %q, and is by %q", holder, now)
		}
	})
}

// holder is who holds the lease.
func (w *world) holder() string {
	w.Helper()
	var lease coordinationv1.Lease
	if !w.read("copier", &lease) {
		w.Fatal("there is no lease")
	}
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

// TestManagersAreHealthy: a manager says that it is ready once its cache is in
// sync, and nothing after it has stopped.
func TestManagersAreHealthy(t *testing.T) {
	each(t, func(w *world) {
		address := freeAddress(w)
		m := w.manager(func(o *ctrl.Options) { o.HealthProbeBindAddress = address })
		check(w, m.AddHealthzCheck("ping", healthz.Ping))
		check(w, m.AddReadyzCheck("cache", func(r *http.Request) error {
			var list corev1.ConfigMapList
			return m.GetClient().List(r.Context(), &list)
		}))
		stop := w.start(m)
		for _, path := range []string{"/healthz", "/readyz"} {
			w.eventually(path, func() (bool, any) {
				code, body := ask(w, "http://"+address+path)
				return code == http.StatusOK, body
			})
		}
		stop()
		if code, _ := ask(w, "http://"+address+"/healthz"); code != 0 {
			w.Errorf("after its end the manager answers %d", code)
		}
	})
}

// ask returns the answer of a probe; code 0 is that there was none.
func ask(w *world, url string) (code int, body string) {
	w.Helper()
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := c.Do(must(http.NewRequestWithContext(w.Context(), http.MethodGet, url, nil))(w))
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = r.Body.Close() }()
	return r.StatusCode, string(must(io.ReadAll(r.Body))(w))
}

func freeAddress(w *world) string {
	w.Helper()
	l := must(net.Listen("tcp", "127.0.0.1:0"))(w)
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}
