package truth

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/informer"
)

const (
	// faultsFor is how long a sequence does harm. A second after that all should be
	// right, which the test reports; patience is when it gives up, for machines are
	// busy.
	faultsFor = 200 * time.Millisecond
	patience  = 30 * time.Second
)

// atOnce is how many sequences run side by side: each mostly waits.
var atOnce = uint64(4 * runtime.GOMAXPROCS(0))

// sequence is one run of faults, and what it is to be compared with.
type sequence[T client.Object] struct {
	seed   uint64
	r      *runner
	proxy  *proxy
	ns     string
	ledger *ledger
	random *rand.Rand
	in     *informer.Informer[T]
	// selects is what the informer is to show, and whole whether that is all.
	selects   func(client.Object) bool
	whole     bool
	histories []*history[T]
	wants     []func(client.Object) bool // by history
	released  chan struct{}              // has the slow handler go on
}

// connect returns a connection as programs have it, which ends with the test.
func connect(t *testing.T, cfg *rest.Config) *client.Conn {
	t.Helper()
	conn, done, err := dial(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(done)
	return conn
}

// dial returns a connection, and what closes those that are idle.
func dial(cfg *rest.Config) (*client.Conn, func(), error) {
	cfg = rest.CopyConfig(cfg)
	done := func() {}
	cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		if c, ok := rt.(interface{ CloseIdleConnections() }); ok {
			done = c.CloseIdleConnections
		}
		return rt
	})
	conn, err := client.Connect(cfg)
	return conn, func() { done() }, err
}

func runSequence[T client.Object](t *testing.T, r *runner, seed uint64, kind schema.GroupVersionKind) error {
	s := &sequence[T]{
		seed: seed, r: r, ledger: &ledger{seen: map[version]bool{}},
		random: rand.New(rand.NewPCG(seed, 1)), released: make(chan struct{}),
	}
	ctx := t.Context()
	maps, err := s.begin(ctx)
	if err != nil {
		return err
	}
	s.proxy = startProxy(t, r.to, r.upstream, r.credentials, seed)
	defer s.proxy.close()
	conn, done, err := dial(s.proxy.config)
	if err != nil {
		return err
	}
	defer done()
	config := informer.Config{PageSize: 3}
	if seed/48%2 == 0 { // impatient, to meet more faults
		config.MinBackoff = 2 * time.Millisecond
	}
	set := informer.NewSet(conn, config)
	defer set.Shutdown()
	s.in = informer.For[T](set, s.options(kind)...)
	s.handle()
	set.Start()
	if err := s.disturb(ctx, maps); err != nil {
		return err
	}
	healed := time.Now()
	s.proxy.heal()
	if s.seed/24%2 == 0 {
		s.proxy.listener.cut()
	}
	close(s.released)
	fresh, err := list(ctx, client.Of[T](r.direct, client.Kind(kind)).In(s.ns), s.selects)
	if err != nil {
		return err
	}
	took, err := s.wait(healed, fresh)
	r.note(s.proxy, took, s.counts())
	return err
}

// begin makes a namespace with some objects.
func (s *sequence[T]) begin(ctx context.Context) (*client.Client[*corev1.ConfigMap], error) {
	ns, err := client.Of[*corev1.Namespace](s.r.direct).Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "truth-"}})
	if err != nil {
		return nil, err
	}
	s.ns = ns.Name
	maps := client.Of[*corev1.ConfigMap](s.r.direct).In(s.ns)
	for range 8 {
		if err := write(ctx, maps, s.random, s.ledger); err != nil {
			return nil, err
		}
	}
	return maps, nil
}

// options varies what the informer does from seed to seed.
func (s *sequence[T]) options(kind schema.GroupVersionKind) []informer.Option {
	s.selects, s.whole = func(client.Object) bool { return true }, true
	all := []informer.Option{informer.Kind(kind)}
	switch s.seed / 6 % 4 {
	case 1:
		return append(all, informer.InNamespace(s.ns), informer.NoWatchList())
	case 2:
		return append(all, informer.InNamespace(s.ns), informer.AnyVersion())
	case 3:
		s.whole = false
		s.selects = func(o client.Object) bool { return o.GetLabels()["a"] == "1" || o.GetLabels()["b"] == "1" }
		return append(all, informer.Select(
			informer.Selection{Namespace: s.ns, Labels: "a=1"}, informer.Selection{Namespace: s.ns, Labels: "b=1"},
		))
	}
	return append(all, informer.InNamespace(s.ns))
}

// handle adds handlers of several kinds.
func (s *sequence[T]) handle() {
	each := s.listener("each", s.selects, s.whole)
	s.in.Handle(each.hear)
	batches := s.listener("batches", s.selects, s.whole)
	s.in.HandleBatch(informer.HandlerOptions[T]{AtMost: 3}, batches.hearAll)
	slow := s.listener("slow", s.selects, s.whole)
	s.in.Handle(func(d informer.Delta[T]) {
		slow.hear(d)
		<-s.released
	})
	fits := func(o client.Object) bool { return o.GetLabels()["a"] == "1" }
	some := s.listener("filtered", func(o client.Object) bool { return s.selects(o) && fits(o) }, false)
	s.in.HandleWith(informer.HandlerOptions[T]{Filter: func(o T) bool { return fits(o) }}, some.hear)
}

func (s *sequence[T]) listener(name string, wants func(client.Object) bool, whole bool) *history[T] {
	h := newHistory[T](name, whole)
	s.histories, s.wants = append(s.histories, h), append(s.wants, wants)
	return h
}

// disturb writes and cuts until the time for faults is over.
func (s *sequence[T]) disturb(ctx context.Context, maps *client.Client[*corev1.ConfigMap]) error {
	ctx, cancel := context.WithTimeout(ctx, faultsFor)
	defer cancel()
	var busy sync.WaitGroup
	errs := make([]error, 3)
	for i := range 2 {
		busy.Go(func() { errs[i] = writeUntil(ctx, maps, rand.New(rand.NewPCG(s.seed, uint64(10+i))), s.ledger) })
	}
	errs[2] = s.meddle(ctx)
	busy.Wait()
	return errors.Join(errs...)
}

// meddle cuts connections and has the server forget, until the context ends.
func (s *sequence[T]) meddle(ctx context.Context) error {
	for n := 0; ctx.Err() == nil; n++ {
		switch {
		case n == 1:
			late := s.listener("late", s.selects, s.whole)
			s.in.Handle(late.hear)
		case n%3 == 0:
			s.proxy.listener.cut()
		case n%7 == 2 && s.r.to.forget != nil:
			if err := s.r.to.forget(context.WithoutCancel(ctx)); err != nil {
				return err
			}
		}
		s.proxy.pause(ctx, time.Duration(10+s.random.IntN(50))*time.Millisecond)
	}
	return nil
}

// wait waits until the cache is what a fresh list showed, and all handlers believe
// that, and then looks closely.
func (s *sequence[T]) wait(healed time.Time, fresh map[client.Key]T) (time.Duration, error) {
	want := stateOf(maps.Values(fresh), s.selects)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		got := stateOf(s.in.List(), s.selects)
		took := time.Since(healed)
		different := ""
		if !maps.Equal(got, want) || !s.in.HasSynced() {
			different = fmt.Sprintf("the cache has\n\t%v", got)
		}
		for i, h := range s.histories {
			believes, errs := h.believes()
			if errs != nil {
				return took, errors.Join(errs...)
			}
			if wants := stateOf(maps.Values(fresh), s.wants[i]); !maps.Equal(believes, wants) {
				different += fmt.Sprintf("\n%s believes\n\t%v", h.name, believes)
			}
		}
		switch {
		case different == "":
			return took, s.look(fresh)
		case took > patience:
			return took, fmt.Errorf("%s after healing %s\nthe server has\n\t%v\n%+v", took, different, want, s.in.Status())
		}
		<-tick.C
	}
}

func stateOf[T client.Object](all func(func(T) bool), wants func(client.Object) bool) state {
	out := state{}
	for o := range all {
		if wants(o) {
			out[client.KeyOf(o)] = versionOf(o)
		}
	}
	return out
}

// look compares objects whole, and what handlers heard with what was written.
func (s *sequence[T]) look(fresh map[client.Key]T) error {
	var errs []error
	for o := range s.in.List() {
		if want := fresh[client.KeyOf(o)]; !equality.Semantic.DeepEqual(o, want) {
			errs = append(errs, fmt.Errorf("the cache has %+v, the server %+v", o, want))
		}
	}
	for _, h := range s.histories {
		errs = append(errs, h.lies(s.ledger)...)
	}
	return errors.Join(errs...)
}

// counts is what happened, for the report.
func (s *sequence[T]) counts() map[string]int {
	out := map[string]int{"writes": len(s.ledger.seen)}
	for _, h := range s.histories {
		h.mu.Lock()
		out["told"] += h.count
		h.mu.Unlock()
	}
	return out
}
