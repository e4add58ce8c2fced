package informers

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/even-keel/evenkeel/test/compat/cluster"
)

// soak is how long informers are kept: EVENKEEL_SOAK, such as 10s.
func soak(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("EVENKEEL_SOAK")
	if text == "" {
		return time.Minute
	}
	return must(time.ParseDuration(text))(t)
}

// TestInformersTellTheTruth writes at random while connections are cut and
// servers restarted, on all engines at once. In the end caches and handlers must
// agree with a fresh list, and handlers must have seen a legal history.
func TestInformersTellTheTruth(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	all := keep(t, 2, cluster.ExpectErrors) // writers meet a server that stops
	ctx, stop := context.WithTimeout(t.Context(), soak(t))
	defer stop()
	var busy sync.WaitGroup
	for _, w := range all {
		busy.Go(func() { w.disturb(ctx, seed, soak(t)/5) })
	}
	busy.Wait()
	for _, w := range all {
		t.Run(w.Name, func(t *testing.T) {
			t.Logf("%d writes, %d cuts", w.truth.len(), w.proxy.Cuts())
			if w.truth.len() < 100 || w.proxy.Cuts() < 10 {
				t.Error("hardly anything happened")
			}
			w.mustSettle(t)
			for name, k := range w.informers {
				if k.states() < 2 {
					t.Errorf("%s did not start over when the server had forgotten", name)
				}
			}
		})
	}
}

// disturb writes, cuts and restarts until ctx ends. Early on it has the server
// forget: reflectors that start over wait ever longer.
func (w *watched) disturb(ctx context.Context, seed uint64, every time.Duration) {
	var busy sync.WaitGroup
	for i := range 3 {
		wr := &writer{c: w.client, namespaces: w.namespaces, truth: w.truth, rng: rand.New(rand.NewPCG(seed, uint64(i)))}
		busy.Go(func() { wr.run(ctx) })
	}
	busy.Go(func() { cut(ctx, w.proxy, rand.New(rand.NewPCG(seed, 100))) })
	for n := 1; pause(ctx, every); n++ {
		if n == 1 {
			w.forget(ctx)
		} else {
			w.server.Restart()
		}
	}
	busy.Wait()
}

// forget has the server forget what informers have missed: they must ask for the
// state again.
func (w *watched) forget(ctx context.Context) {
	w.proxy.Shut()
	w.proxy.CutAll()
	for before := w.truth.len(); w.truth.len() < before+20 && pause(ctx, 10*time.Millisecond); {
	}
	w.server.Compact()
	w.server.Restart() // what it has in memory it need not forget
	w.proxy.Open()
}

// cut cuts connections until ctx ends.
func cut(ctx context.Context, p *cluster.Proxy, rng *rand.Rand) {
	for pause(ctx, time.Duration(50+rng.IntN(400))*time.Millisecond) {
		if rng.IntN(10) == 0 {
			p.CutAll()
		} else {
			p.CutOne()
		}
	}
}

// pause waits, and reports whether ctx has not ended.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return ctx.Err() == nil
	}
}

func newNamespaces(t *testing.T, c kubernetes.Interface, n int) (names []string) {
	t.Helper()
	for range n {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "soak-"}}
		names = append(names, must(c.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}))(t).Name)
	}
	return names
}

// writer writes config maps of few names, so that writers meet.
type writer struct {
	c          kubernetes.Interface
	namespaces []string
	truth      *ledger
	rng        *rand.Rand
}

func (w *writer) run(ctx context.Context) {
	for pause(ctx, time.Duration(w.rng.IntN(30))*time.Millisecond) {
		// A request that has begun is waited for: its outcome is to be known.
		if cm := w.write(context.WithoutCancel(ctx)); cm != nil {
			w.truth.add(cm)
		}
	}
}

// write makes one write and returns the object if that was acknowledged.
func (w *writer) write(ctx context.Context) *corev1.ConfigMap {
	maps := w.c.CoreV1().ConfigMaps(w.namespaces[w.rng.IntN(len(w.namespaces))])
	cm := w.object()
	var err error
	switch w.rng.IntN(10) {
	case 0, 1:
		_ = maps.Delete(ctx, cm.Name, metav1.DeleteOptions{})
		return nil
	case 2, 3:
		color := fmt.Sprintf(`{"metadata":{"labels":{"color":%q}}}`, cm.Labels["color"])
		cm, err = maps.Patch(ctx, cm.Name, types.MergePatchType, []byte(color), metav1.PatchOptions{})
	case 4, 5:
		cm, err = maps.Create(ctx, cm, metav1.CreateOptions{})
	default:
		if cm, err = maps.Update(ctx, cm, metav1.UpdateOptions{}); apierrors.IsNotFound(err) {
			cm, err = maps.Create(ctx, w.object(), metav1.CreateOptions{})
		}
	}
	if err != nil {
		return nil
	}
	return cm
}

func (w *writer) object() *corev1.ConfigMap {
	value := fmt.Sprint(w.rng.Uint64())
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name:        fmt.Sprintf("m-%02d", w.rng.IntN(30)),
			Labels:      map[string]string{"color": []string{"red", "green", "blue"}[w.rng.IntN(3)]},
			Annotations: map[string]string{"value": value}, // for clients of metadata
		},
		Data: map[string]string{"value": value, "padding": strings.Repeat("x", w.rng.IntN(2000))},
	}
}

// settleWithin is how long an informer may take to come to rest: reflectors
// wait up to 30 s after repeated failures.
const settleWithin = 75 * time.Second

// mustEqual waits until an informer holds what a list holds, and then looks
// closely.
func (k *kept) mustEqual(t *testing.T, name string, fresh *corev1.ConfigMapList) {
	t.Helper()
	selector := must(labels.Parse(k.selector))(t)
	want, objects := map[string]uint64{}, map[string]*corev1.ConfigMap{}
	for i := range fresh.Items {
		if cm := &fresh.Items[i]; selector.Matches(labels.Set(cm.Labels)) {
			want[keyOf(cm)], objects[keyOf(cm)] = revisionOf(cm), cm
		}
	}
	cached := func() map[string]uint64 {
		out := map[string]uint64{}
		for _, obj := range k.GetStore().List() {
			out[keyOf(obj.(metav1.Object))] = revisionOf(obj.(metav1.Object))
		}
		return out
	}
	ctx, cancel := context.WithTimeout(t.Context(), settleWithin)
	defer cancel()
	same := func() bool {
		return equality.Semantic.DeepEqual(cached(), want) && equality.Semantic.DeepEqual(k.present(), want)
	}
	for !same() && pause(ctx, 20*time.Millisecond) {
	}
	if !same() {
		t.Errorf("%s: the cache differs from a fresh list: %s; its handler's view: %s", name, difference(cached(), want), difference(k.present(), want))
	}
	for _, obj := range k.GetStore().List() {
		if cm := objects[keyOf(obj.(metav1.Object))]; cm != nil && !equalObject(obj, cm) {
			t.Errorf("%s: cached %+v, listed %+v", name, obj, cm)
		}
	}
	told, breaches := k.found()
	for _, b := range breaches {
		t.Errorf("%s: %s", name, b)
	}
	t.Logf("%s: %d objects, told %d times, %d lists, %d streamed lists, %d watches",
		name, len(want), told, k.lists.Load(), k.streamed.Load(), k.watches.Load())
}

// equalObject compares a cached object of any client with one that was listed.
func equalObject(cached any, listed *corev1.ConfigMap) bool {
	switch o := cached.(type) {
	case *unstructured.Unstructured:
		var cm corev1.ConfigMap
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &cm); err != nil {
			return false
		}
		cm.TypeMeta = metav1.TypeMeta{}
		return equality.Semantic.DeepEqual(&cm, listed)
	case *metav1.PartialObjectMetadata:
		return equality.Semantic.DeepEqual(o.ObjectMeta, listed.ObjectMeta)
	}
	return equality.Semantic.DeepEqual(cached, listed)
}
