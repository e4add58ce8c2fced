package cache_test

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/cache"
)

func randomText(r *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('!' + r.IntN(90))
	}
	return string(b)
}

// The dictionary changes several times, and every body is read with its own.
func TestCompactObjectsComeBackAsTheyWere(t *testing.T) {
	r := seeded(t)
	store := cache.New(cache.Options[*corev1.ConfigMap]{Compact: cache.Protobuf[corev1.ConfigMap]()})
	want := map[string]*corev1.ConfigMap{}
	for i := range 5000 {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: strconv.Itoa(i), Annotations: map[string]string{"everyone": "has this one"}}}
		switch i % 1000 {
		case 3: // does not compress
			cm.BinaryData = map[string][]byte{"x": []byte(randomText(r, 5000))}
		case 500: // is larger than any dictionary
			cm.Data = map[string]string{"x": strings.Repeat(randomText(r, 100), 9000)}
		default:
			cm.Data = map[string]string{"x": randomText(r, r.IntN(50))}
		}
		want[cm.Name] = cm.DeepCopy()
		store.Set(cm)
	}
	for cm := range store.List() {
		if diff := gocmp.Diff(want[cm.Name], cm); diff != "" {
			t.Fatalf("want (-), got (+):\n%s", diff)
		}
		delete(want, cm.Name)
	}
	if len(want) > 0 {
		t.Errorf("%d are missing", len(want))
	}
}

func TestCompactIsSmall(t *testing.T) {
	size := func(opts cache.Options[*corev1.Pod]) int {
		store := cache.New(opts)
		for i := range 500 {
			pod := newPod("web-"+strconv.Itoa(i), "web", "n1")
			for j := range 20 {
				pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: "Ready", Message: strconv.Itoa(i * j)})
			}
			store.Set(pod)
		}
		return store.Stats().ObjectBytes
	}
	hot, compact := size(cache.Options[*corev1.Pod]{}), size(cache.Options[*corev1.Pod]{Compact: podCodec()})
	if compact*4 > hot {
		t.Errorf("%d bytes compact, %d hot", compact, hot)
	}
}

func TestQueriesOfACompactStoreDecodeNothing(t *testing.T) {
	codec := podCodec()
	decoded, decode := 0, codec.Decode
	codec.Decode = func(b []byte) (*corev1.Pod, error) {
		decoded++
		return decode(b)
	}
	store := cache.New(cache.Options[*corev1.Pod]{Compact: codec, Indexes: map[string]func(*corev1.Pod) []string{"byNode": byNode}})
	for i := range 50 {
		store.Set(newPod("web-"+strconv.Itoa(i), "web", "n"+strconv.Itoa(i%2)))
	}
	if n := store.Count(cache.Label("app", "web"), cache.Index("byNode", "n1")); n != 25 || decoded != 0 {
		t.Errorf("%d pods, %d decoded", n, decoded)
	}
	for e := range store.Snapshot().Entries(cache.Label("app", "web")) {
		_ = e.Labels().Get("app")
	}
	if decoded != 0 {
		t.Errorf("listing entries decoded %d", decoded)
	}
	for range store.List() {
		break
	}
	if decoded != 1 {
		t.Errorf("the first object of a list decoded %d", decoded)
	}
}

func TestAnObjectThatDoesNotEncodeIsKeptAsItIs(t *testing.T) {
	codec := podCodec()
	codec.Encode = func(*corev1.Pod) ([]byte, error) { return nil, errors.New("no") }
	store := cache.New(cache.Options[*corev1.Pod]{Compact: codec})
	store.Set(newPod("web-1", "web", "n1"))
	if pod, ok := store.Get("default", "web-1"); !ok || pod.Spec.NodeName != "n1" {
		t.Errorf("got %v", pod)
	}
}
