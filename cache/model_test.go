package cache_test

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"

	"github.com/even-keel/evenkeel/cache"
)

// seeded returns a generator whose seed is in the log of a failed test.
func seeded(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func byNode(p *corev1.Pod) []string { return []string{p.Spec.NodeName} }

// byIP has none, one or two values.
func byIP(p *corev1.Pod) (ips []string) {
	for _, ip := range p.Status.PodIPs {
		ips = append(ips, ip.IP)
	}
	return ips
}

// world makes random pods, of few names and labels, so that they meet. Every other
// one has the labels of the last pod of its name, as most updates do.
type world struct {
	*rand.Rand
	revision int
	labels   map[cache.Key]map[string]string
}

func (w *world) key() cache.Key {
	return cache.Key{Namespace: "ns" + strconv.Itoa(w.IntN(4)), Name: fmt.Sprintf("%c-%d", 'a'+w.IntN(3), w.IntN(60))}
}

func (w *world) pod() *corev1.Pod {
	w.revision++
	k := w.key()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: k.Namespace, Name: k.Name,
		ResourceVersion: strconv.Itoa(w.revision), UID: types.UID("uid-" + strconv.Itoa(w.IntN(3))),
	}}
	pod.Labels = w.someLabels(k)
	pod.Spec.NodeName = "node-" + strconv.Itoa(w.IntN(5))
	for range w.IntN(3) {
		pod.Status.PodIPs = append(pod.Status.PodIPs, corev1.PodIP{IP: fmt.Sprintf("10.%d.0.%d", w.IntN(3), w.IntN(20))})
	}
	return pod
}

func (w *world) someLabels(of cache.Key) map[string]string {
	if last, ok := w.labels[of]; ok && w.IntN(2) == 0 {
		return maps.Clone(last)
	}
	var some map[string]string
	for _, key := range []string{"app", "tier", "zone"} {
		if w.IntN(3) > 0 {
			some = labels.Merge(some, labels.Set{key: w.value()})
		}
	}
	if w.labels == nil {
		w.labels = map[cache.Key]map[string]string{}
	}
	w.labels[of] = maps.Clone(some)
	return some
}

func (w *world) value() string { return []string{"", "1", "2", "web", "db"}[w.IntN(5)] }

// model is a store as simple as can be. A snapshot of it is a copy.
type model map[cache.Key]*corev1.Pod

// list is what a store must list: a scan of everything, then a sort.
func (m model) list(fits ...func(*corev1.Pod) bool) []*corev1.Pod {
	var out []*corev1.Pod
	for _, pod := range m {
		if !slices.ContainsFunc(fits, func(f func(*corev1.Pod) bool) bool { return !f(pod) }) {
			out = append(out, pod)
		}
	}
	slices.SortFunc(out, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// narrowing is a query, and what it means.
type narrowing struct {
	name  string
	query cache.Query
	fits  func(*corev1.Pod) bool
}

// narrowing returns a random query over one of the indexes that there are.
func (w *world) narrowing(ips bool) narrowing {
	switch n := w.IntN(12); {
	case n == 0:
		a, b := w.key().Namespace, w.key().Namespace
		return narrowing{"in namespaces " + a + " " + b, cache.InNamespace(a, b),
			func(p *corev1.Pod) bool { return p.Namespace == a || p.Namespace == b }}
	case n == 1:
		v := w.value()
		return narrowing{"app=" + v, cache.Label("app", v),
			func(p *corev1.Pod) bool { got, ok := p.Labels["app"]; return ok && got == v }}
	case n == 2:
		prefix := w.key().Name[:1+w.IntN(3)]
		return narrowing{"prefix " + prefix, cache.Prefix(prefix),
			func(p *corev1.Pod) bool { return strings.HasPrefix(p.Name, prefix) }}
	case n == 3:
		a, b := w.pod().Spec.NodeName, w.pod().Spec.NodeName
		return narrowing{"nodes " + a + " " + b, cache.Index("byNode", a, b),
			func(p *corev1.Pod) bool { return p.Spec.NodeName == a || p.Spec.NodeName == b }}
	case n == 4:
		k := w.key()
		return narrowing{"field name " + k.Name, cache.Field("metadata.name", k.Name),
			func(p *corev1.Pod) bool { return p.Name == k.Name }}
	case n == 5 && ips:
		return narrowing{"ip prefix 10.1", cache.IndexPrefix("byIP", "10.1."),
			func(p *corev1.Pod) bool {
				return slices.ContainsFunc(byIP(p), func(ip string) bool { return strings.HasPrefix(ip, "10.1.") })
			}}
	case n == 6:
		k := w.key()
		return narrowing{"after " + k.String(), cache.After(k), func(p *corev1.Pod) bool {
			return cmp.Or(cmp.Compare(p.Namespace, k.Namespace), cmp.Compare(p.Name, k.Name)) > 0
		}}
	}
	if n := w.IntN(9); n == 0 && ips {
		from, to := fmt.Sprintf("10.%d", w.IntN(3)), fmt.Sprintf("10.%d.0.%d", w.IntN(3), w.IntN(20))
		return narrowing{"ips from " + from + " to " + to, cache.IndexRange("byIP", from, to), func(p *corev1.Pod) bool {
			return slices.ContainsFunc(byIP(p), func(ip string) bool { return ip >= from && ip < to })
		}}
	} else if n == 1 {
		k := w.key()
		return narrowing{"until " + k.String(), cache.Until(k), func(p *corev1.Pod) bool {
			return cmp.Or(cmp.Compare(p.Namespace, k.Namespace), cmp.Compare(p.Name, k.Name)) < 0
		}}
	}
	s := w.selector()
	return narrowing{"selector " + s.String(), cache.Selector(s),
		func(p *corev1.Pod) bool { return s.Matches(labels.Set(p.Labels)) }}
}

func (w *world) selector() labels.Selector {
	s := labels.NewSelector()
	for range 1 + w.IntN(3) {
		key := []string{"app", "tier", "zone", "none"}[w.IntN(4)]
		op := []selection.Operator{selection.In, selection.NotIn, selection.Equals, selection.DoubleEquals,
			selection.NotEquals, selection.Exists, selection.DoesNotExist, selection.GreaterThan, selection.LessThan}[w.IntN(9)]
		var values []string
		switch op {
		case selection.In, selection.NotIn:
			values = []string{w.value(), w.value()}
		case selection.Exists, selection.DoesNotExist:
		case selection.GreaterThan, selection.LessThan:
			values = []string{strconv.Itoa(w.IntN(3))}
		default:
			values = []string{w.value()}
		}
		r, err := labels.NewRequirement(key, op, values)
		if err != nil {
			panic(err)
		}
		s = s.Add(*r)
	}
	return s
}

// check compares a snapshot with the model by some random lists.
func (w *world) check(t *testing.T, got cache.Snapshot[*corev1.Pod], want model, ips bool) {
	t.Helper()
	equal(t, "all", got.List(), want.list())
	for range 6 {
		var names []string
		var queries []cache.Query
		var fits []func(*corev1.Pod) bool
		after, until := false, false // of which the last counts
		for range 1 + w.IntN(3) {
			n := w.narrowing(ips)
			if strings.HasPrefix(n.name, "after") && after || strings.HasPrefix(n.name, "until") && until {
				continue
			}
			after, until = after || strings.HasPrefix(n.name, "after"), until || strings.HasPrefix(n.name, "until")
			names, queries, fits = append(names, n.name), append(queries, n.query), append(fits, n.fits)
		}
		name, listed := strings.Join(names, ", "), want.list(fits...)
		equal(t, name, got.List(queries...), listed)
		if n := got.Count(queries...); n != len(listed) {
			t.Fatalf("%s: count %d, want %d", name, n, len(listed))
		}
		if !after && !until {
			slices.Reverse(listed)
			equal(t, name+", descending", got.List(append(queries, cache.Descending())...), listed)
		}
	}
	k := w.key()
	if pod, ok := got.Get(k.Namespace, k.Name); ok != (want[k] != nil) || ok && pod.ResourceVersion != want[k].ResourceVersion {
		t.Fatalf("get %s: %v", k, pod)
	}
}

func equal(t *testing.T, what string, got iter.Seq[*corev1.Pod], want []*corev1.Pod) {
	t.Helper()
	if diff := gocmp.Diff(slices.Collect(ids(slices.Values(want))), slices.Collect(ids(got))); diff != "" {
		t.Fatalf("%s: want (-), got (+):\n%s", what, diff)
	}
}

func ids(pods iter.Seq[*corev1.Pod]) iter.Seq[string] {
	return func(yield func(string) bool) {
		for p := range pods {
			if !yield(p.Namespace + "/" + p.Name + "@" + p.ResourceVersion) {
				return
			}
		}
	}
}

// step makes a random batch, applies it to both, and checks what Apply reports.
func (w *world) step(t *testing.T, store *cache.Store[*corev1.Pod], m model) {
	t.Helper()
	before := maps.Clone(m)
	var b cache.Batch[*corev1.Pod]
	replaces := w.IntN(12) == 0
	if replaces {
		clear(m)
		var pods []*corev1.Pod
		for range w.IntN(200) {
			pod := w.pod()
			if old := before[cache.KeyOf(pod)]; old != nil && w.IntN(2) == 0 {
				pod = old.DeepCopy() // a list brings back much that is known
			}
			pods = append(pods, pod)
			m[cache.KeyOf(pod)] = pod.DeepCopy()
		}
		b.Replace(pods)
	}
	for range w.IntN(12) {
		if w.IntN(3) > 0 {
			pod := w.pod()
			m[cache.KeyOf(pod)] = pod.DeepCopy()
			b.Set(pod)
		} else {
			k := w.key()
			delete(m, k)
			b.Delete(k)
		}
	}
	b.Complete(cache.Revision(strconv.Itoa(w.revision)))
	for _, c := range store.Apply(&b) {
		if c.Old.Exists() != (before[c.Key()] != nil) {
			t.Fatalf("%s: Apply says that it was there: %t", c.Key(), c.Old.Exists())
		}
		if c.Old.Exists() && string(c.Old.Revision()) != before[c.Key()].ResourceVersion {
			t.Fatalf("%s: Apply says that it was at %s", c.Key(), c.Old.Revision())
		}
		if c.New.Exists() {
			before[c.Key()] = c.New.Object()
		} else {
			delete(before, c.Key())
		}
	}
	equal(t, "state before and what Apply reports", slices.Values(before.list()), m.list())
}

func TestStoreBehavesAsAModelAndSnapshotsNeverChange(t *testing.T) {
	for name, opts := range kept() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &world{Rand: seeded(t)}
			store, m := cache.New(opts), model{}
			type taken struct {
				snapshot cache.Snapshot[*corev1.Pod]
				want     model
				ips      bool
				revision int
			}
			var all []taken
			for i := range 300 {
				w.step(t, store, m)
				if i == 100 {
					if err := store.AddIndex("byIP", byIP); err != nil {
						t.Fatal(err)
					}
				}
				all = append(all, taken{store.Snapshot(), maps.Clone(m), i >= 100, w.revision})
				last := all[len(all)-1]
				w.check(t, last.snapshot, last.want, last.ips)
			}
			for _, s := range all {
				w.check(t, s.snapshot, s.want, s.ips)
			}
		})
	}
}

// kept are the ways in which a store can keep its objects.
func kept() map[string]cache.Options[*corev1.Pod] {
	indexes := map[string]func(*corev1.Pod) []string{"byNode": byNode}
	return map[string]cache.Options[*corev1.Pod]{
		"hot":      {Indexes: indexes},
		"detector": {Indexes: indexes, DetectMutations: true},
		"compact":  {Indexes: indexes, Compact: podCodec()},
	}
}

func podCodec() *cache.Codec[*corev1.Pod] {
	return &cache.Codec[*corev1.Pod]{
		Encode: (*corev1.Pod).Marshal,
		Decode: func(b []byte) (*corev1.Pod, error) {
			pod := &corev1.Pod{}
			return pod, pod.Unmarshal(b)
		},
	}
}

// Each writer's objects carry the number of its batch; a reader must never see
// two numbers in one snapshot, nor go back to an earlier one.
func TestReadersSeeWholeBatchesWhileWritersWrite(t *testing.T) {
	const batches, size = 200, 20
	for name, opts := range kept() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := cache.New(opts)
			var writing, reading sync.WaitGroup
			stop := make(chan struct{})
			for range 4 {
				reading.Go(func() {
					last := 0
					for {
						select {
						case <-stop:
							return
						default:
						}
						seen := map[string]bool{}
						for pod := range store.List(cache.Label("round", "all"), cache.InNamespace("default")) {
							seen[pod.Spec.NodeName] = true
						}
						for node := range seen {
							n, _ := strconv.Atoi(node)
							if len(seen) > 1 || n < last {
								t.Errorf("saw batches %v after %d", slices.Collect(maps.Keys(seen)), last)
								return
							}
							last = n
						}
					}
				})
			}
			writing.Go(func() {
				for n := range batches {
					var pods []*corev1.Pod
					for i := range size {
						pods = append(pods, &corev1.Pod{
							ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: strconv.Itoa(i), Labels: map[string]string{"round": "all"}},
							Spec:       corev1.PodSpec{NodeName: strconv.Itoa(n)},
						})
					}
					store.Set(pods...)
				}
			})
			writing.Go(func() {
				for n := range 20 {
					if err := store.AddIndex("index"+strconv.Itoa(n), byNode); err != nil {
						t.Error(err)
					}
				}
			})
			writing.Wait()
			close(stop)
			reading.Wait()
			if n := store.Count(cache.Index("index19", strconv.Itoa(batches-1))); n != size {
				t.Errorf("%d pods of the last batch, want %d", n, size)
			}
		})
	}
}
