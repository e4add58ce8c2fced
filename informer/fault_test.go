package informer_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/informer"
)

const (
	// faultsFor is how long a sequence breaks things, and patience how long it may
	// take after that, on a machine that is busy, until the cache is right again.
	faultsFor = 300 * time.Millisecond
	patience  = 30 * time.Second
	// atOnce is how many sequences run side by side.
	atOnce = 8
)

// TestTheCacheIsRightAfterFaults breaks the connection between an informer and the
// server in seeded ways, while objects are written. EVENKEEL_FAULTS is how many
// sequences there are, EVENKEEL_SEED the seed of the first.
func TestTheCacheIsRightAfterFaults(t *testing.T) {
	sequences, seed := 80, rand.Uint64N(1<<40)
	if v := os.Getenv("EVENKEEL_FAULTS"); v != "" {
		sequences, _ = strconv.Atoi(v)
	}
	if v := os.Getenv("EVENKEEL_SEED"); v != "" {
		seed, _ = strconv.ParseUint(v, 10, 64)
	}
	t.Logf("%d sequences from seed %d", sequences, seed)
	var mu sync.Mutex
	var worst time.Duration
	slots := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for i := range sequences {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			s := newSequence(t, seed+uint64(i))
			took, err := s.run(t.Context())
			if err != nil {
				t.Errorf("seed %d: %v", s.seed, err)
			}
			mu.Lock()
			worst = max(worst, took)
			mu.Unlock()
		})
	}
	wg.Wait()
	t.Logf("the slowest was right again after %s", worst)
}

// sequence is one run of faults.
type sequence struct {
	seed   uint64
	random *rand.Rand // of the writer
	faults *faulty
	direct *client.Conn
	conn   *client.Conn
	ns     string
}

func newSequence(t *testing.T, seed uint64) *sequence {
	s := &sequence{seed: seed, random: rand.New(rand.NewPCG(seed, 1)), faults: &faulty{random: rand.New(rand.NewPCG(seed, 2))}}
	s.direct = connect(t, nil)
	s.conn = connect(t, s.faults.through)
	s.ns = namespace(t, s.direct)
	return s
}

// options varies what the informer does from seed to seed.
func (s *sequence) options() (opts []informer.Option, selects func(*corev1.ConfigMap) bool) {
	all := func(*corev1.ConfigMap) bool { return true }
	switch s.seed % 4 {
	case 1:
		return []informer.Option{informer.InNamespace(s.ns), informer.NoWatchList()}, all
	case 2:
		return []informer.Option{informer.InNamespace(s.ns), informer.AnyVersion()}, all
	case 3:
		return []informer.Option{informer.Select(
			informer.Selection{Namespace: s.ns, Labels: "a=1"}, informer.Selection{Namespace: s.ns, Labels: "b=1"},
		)}, func(m *corev1.ConfigMap) bool { return m.Labels["a"] == "1" || m.Labels["b"] == "1" }
	}
	return []informer.Option{informer.InNamespace(s.ns)}, all
}

func (s *sequence) run(ctx context.Context) (took time.Duration, err error) {
	maps := client.Of[*corev1.ConfigMap](s.direct).In(s.ns)
	for range 10 {
		if err := s.write(ctx, maps); err != nil {
			return 0, err
		}
	}
	set := informer.NewSet(s.conn, informer.Config{PageSize: 3})
	defer set.Shutdown()
	opts, selects := s.options()
	in := informer.For[*corev1.ConfigMap](set, opts...)
	history := &history{known: map[client.Key]*corev1.ConfigMap{}}
	in.HandleWith(informer.HandlerOptions[*corev1.ConfigMap]{Prompt: s.seed%2 == 0}, history.hear)
	set.Start()
	for until := time.Now().Add(faultsFor); time.Now().Before(until); {
		if err := s.write(ctx, maps); err != nil {
			return 0, err
		}
		switch s.random.IntN(40) {
		case 0:
			s.faults.cut(errReset)
		case 1:
			if err := theServer.Compact(ctx); err != nil {
				return 0, err
			}
		}
		time.Sleep(time.Duration(s.random.IntN(10)) * time.Millisecond)
	}
	s.faults.heal()
	healed := time.Now()
	want, err := s.fresh(ctx, maps, selects)
	if err != nil {
		return 0, err
	}
	return s.wait(healed, in, history, want)
}

// wait waits until the cache, and what the handler knows, are what a list shows.
func (s *sequence) wait(healed time.Time, in *informer.Informer[*corev1.ConfigMap], h *history, want map[client.Key]string) (time.Duration, error) {
	for {
		got := map[client.Key]string{}
		for m := range in.List() {
			got[client.KeyOf(m)] = m.ResourceVersion
		}
		known, err := h.state()
		took := time.Since(healed)
		switch {
		case err != nil:
			return took, err
		case maps.Equal(got, want) && maps.Equal(known, want) && in.HasSynced():
			return took, nil
		case took > patience:
			return took, fmt.Errorf("%s after healing the cache has\n\t%v,\nthe handler knows\n\t%v\nand the server has\n\t%v\n%+v", took, got, known, want, in.Status())
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func (s *sequence) fresh(ctx context.Context, c mapClient, selects func(*corev1.ConfigMap) bool) (map[client.Key]string, error) {
	all, _, err := c.All(ctx)
	want := map[client.Key]string{}
	for _, m := range all {
		if selects(m) {
			want[client.KeyOf(m)] = m.ResourceVersion
		}
	}
	return want, err
}

// write makes one random write.
func (s *sequence) write(ctx context.Context, c mapClient) error {
	key := client.Key{Name: "m" + strconv.Itoa(s.random.IntN(8))}
	labels := map[string]string{"a": strconv.Itoa(s.random.IntN(2)), "b": strconv.Itoa(s.random.IntN(2))}
	if s.random.IntN(3) == 0 {
		return client.IgnoreNotFound(c.Delete(ctx, key))
	}
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: key.Name, Labels: labels}, Data: map[string]string{"n": strconv.Itoa(s.random.Int())}}
	_, err := c.Update(ctx, m)
	if client.IsNotFound(err) {
		_, err = c.Create(ctx, m)
	}
	return err
}

// history checks what a handler is told.
type history struct {
	mu    sync.Mutex
	known map[client.Key]*corev1.ConfigMap
	err   error
}

func (h *history) hear(d informer.Delta[*corev1.ConfigMap]) {
	h.mu.Lock()
	defer h.mu.Unlock()
	known, now := h.known[d.Key], d.Object()
	switch {
	case d.Type == informer.Added && known != nil:
		h.fail(d, "of an object that it knows")
	case d.Type != informer.Added && known == nil:
		h.fail(d, "of an object that it does not know")
	case known != nil && known.UID != now.UID:
		h.fail(d, "for another object of the same name")
	// By revision: what leaves one selection and comes by another is equal, and not
	// the same in memory.
	case known != nil && d.Old().ResourceVersion != known.ResourceVersion:
		h.fail(d, "from a state that it was not told of: "+d.Old().ResourceVersion+" for "+known.ResourceVersion)
	}
	if d.Type == informer.Deleted {
		delete(h.known, d.Key)
	} else {
		h.known[d.Key] = now
	}
}

func (h *history) fail(d informer.Delta[*corev1.ConfigMap], what string) {
	if h.err == nil {
		h.err = fmt.Errorf("%s %s at %s: %s", d.Type, d.Key, d.Revision(), what)
	}
}

func (h *history) state() (map[client.Key]string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[client.Key]string{}
	for key, m := range h.known {
		out[key] = m.ResourceVersion
	}
	return out, h.err
}

// faulty is a wire that breaks by chance, until it heals.
type faulty struct {
	wire
	chance sync.Mutex
	random *rand.Rand
	healed bool
}

func (f *faulty) through(next http.RoundTripper) http.RoundTripper {
	f.wire.through(next)
	return f
}

// heal ends all faults; what is open already is cut once more.
func (f *faulty) heal() {
	f.chance.Lock()
	f.healed = true
	f.chance.Unlock()
	f.cut(io.ErrUnexpectedEOF)
}

// draw says what happens to a request.
func (f *faulty) draw(n int) (int, time.Duration, int64) {
	f.chance.Lock()
	defer f.chance.Unlock()
	if f.healed {
		return n, 0, -1
	}
	return f.random.IntN(n), time.Duration(f.random.IntN(30)) * time.Millisecond, f.random.Int64N(6000)
}

func (f *faulty) RoundTrip(r *http.Request) (*http.Response, error) {
	const kinds = 16
	what, delay, size := f.draw(kinds)
	switch what {
	case 0, 1:
		return nil, errReset
	case 2:
		return refusal(500, "InternalError"), nil
	case 3:
		return refusal(503, "ServiceUnavailable"), nil
	case 4:
		return refusal(429, "TooManyRequests"), nil
	case 5:
		if r.URL.Query().Get("resourceVersion") != "" {
			return refusal(410, "Expired"), nil
		}
	case 6, 7:
		time.Sleep(delay)
	case 8, 9: // a connection too many
		if resp, err := f.next.RoundTrip(r); err == nil {
			_, _ = io.CopyN(io.Discard, resp.Body, size%50)
			_ = resp.Body.Close()
		}
	case 10, 11, 12:
		resp, err := f.wire.RoundTrip(r)
		if err == nil {
			resp.Body = &short{ReadCloser: resp.Body, left: size, err: []error{io.EOF, io.ErrUnexpectedEOF, errReset}[what-10]}
		}
		return resp, err
	}
	return f.wire.RoundTrip(r)
}

// short is a body that ends too early.
type short struct {
	io.ReadCloser
	left int64
	err  error
}

func (s *short) Read(p []byte) (int, error) {
	if s.left <= 0 {
		return 0, s.err
	}
	n, err := s.ReadCloser.Read(p[:min(int64(len(p)), s.left)])
	s.left -= int64(n)
	return n, err
}
