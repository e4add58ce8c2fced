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
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/test/compat/cluster"
)

// soak is how long informers are kept: EVENKEEL_SOAK, such as 1m.
func soak(t *testing.T) time.Duration {
	text := os.Getenv("EVENKEEL_SOAK")
	if text == "" {
		return 4 * time.Second
	}
	return must(time.ParseDuration(text))(t)
}

// TestInformersTellTheTruth writes at random while connections are cut, and the
// server is restarted if its objects outlive it. In the end caches and handlers
// must agree with a fresh list, and handlers must have seen a legal history.
func TestInformersTellTheTruth(t *testing.T) {
	for _, e := range cluster.Engines {
		t.Run(e.Name, func(t *testing.T) { keepInformers(t, e) })
	}
}

func keepInformers(t *testing.T, e cluster.Engine) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	// Writers meet a server that stops.
	s := e.Start(t, cluster.ExpectErrors)
	c := must(kubernetes.NewForConfig(s.Admin()))(t)
	namespaces := newNamespaces(t, c, 2)
	proxy := cluster.NewProxy(t, s.Address)
	truth := newLedger()
	all := keep(t, func() *rest.Config { return s.AdminAt(proxy.Address) }, truth)

	ctx, stop := context.WithTimeout(t.Context(), soak(t))
	defer stop()
	var busy sync.WaitGroup
	for i := range 3 {
		w := &writer{c: c, namespaces: namespaces, truth: truth, rng: rand.New(rand.NewPCG(seed, uint64(i)))}
		busy.Go(func() { w.run(ctx) })
	}
	busy.Go(func() { cut(ctx, proxy, rand.New(rand.NewPCG(seed, 100))) })
	restarts := 0
	for e.Lasting && pause(ctx, soak(t)/3) {
		s.Restart()
		restarts++
	}
	busy.Wait()

	t.Logf("%d writes, %d cuts, %d restarts", truth.len(), proxy.Cuts(), restarts)
	if truth.len() < 100 {
		t.Errorf("only %d writes were made", truth.len())
	}
	fresh := must(c.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{}))(t)
	for name, k := range all {
		k.mustEqual(t, name, fresh)
	}
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
	for pause(ctx, time.Duration(w.rng.IntN(6))*time.Millisecond) {
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
