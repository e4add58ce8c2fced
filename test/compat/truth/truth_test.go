// Package truth holds informers to the server's truth: through a proxy that harms
// what passes, while objects are written at random.
//
// What the proxy does to a request, or to its answer, is one of these, by chance:
//
//   - it cuts: the TCP connection is reset before the server hears of the request
//     or in the middle of the answer, the answer alone is aborted (HTTP/2), or it
//     ends early as if it were complete;
//   - it delays: the request, single bytes of the answer, or all after some bytes;
//   - it duplicates: the request goes to the server on two connections, of which
//     one is dropped in the middle of its answer; or a connection is cut for the
//     client and lives on at the server, so that a watch that nobody hears stands
//     beside the one that the client begins instead;
//   - it refuses: 410, as an answer or as an event in the middle of a watch, 429,
//     500, 503 and 504. Our own server is also made to forget.
//
// Besides, all connections are cut at once now and then. A sequence of faults
// follows from its seed, and so do the writes, the form of the objects (typed,
// dynamic, metadata), the informer's options and the protocol (HTTP/2 over TLS,
// plain HTTP/1.1). When they end, the proxy is healed. Within one second from then
// on, the informer's cache has to be what a fresh list shows, and so has what each
// handler must believe from what it was told. No handler may have been told of an
// illegal history, or of a state that never was.
//
// EVENKEEL_FAULTS is how many sequences there are, EVENKEEL_SEED the seed of the
// first, EVENKEEL_AT_ONCE how many run side by side.
package truth

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/server/auth"
)

func TestMain(m *testing.M) { evenkeeltest.Main(m) }

// setting reads a number from the environment.
func setting(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// TestInformersTellTheTruth is against our server, and against kube-apiserver
// where it has been built.
func TestInformersTellTheTruth(t *testing.T) {
	for name, server := range map[string]struct {
		start     func(*testing.T) *target
		sequences uint64
	}{
		"evenkeel":       {evenkeel, 1000},
		"kube-apiserver": {kubernetes, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			r := &runner{to: server.start(t), results: map[string]int{}}
			r.runAll(t, setting(t, "EVENKEEL_FAULTS", server.sequences))
		})
	}
}

// runner runs sequences against one server.
type runner struct {
	to *target
	// direct is a way to the server that nobody harms, upstream that of proxies.
	direct      *client.Conn
	upstream    *http.Transport
	credentials *auth.Credentials // of proxies

	mu      sync.Mutex
	results map[string]int
	took    []time.Duration
}

func (r *runner) runAll(t *testing.T, sequences uint64) {
	r.prepare(t)
	first := setting(t, "EVENKEEL_SEED", rand.Uint64N(1<<40))
	t.Logf("%d sequences from EVENKEEL_SEED=%d", sequences, first)
	slots := make(chan struct{}, setting(t, "EVENKEEL_AT_ONCE", atOnce))
	var all sync.WaitGroup
	for seed := first; seed < first+sequences; seed++ {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			if err := r.run(t, seed); err != nil {
				t.Errorf("EVENKEEL_SEED=%d EVENKEEL_FAULTS=1: %v", seed, err)
			}
		})
	}
	all.Wait()
	r.report(t)
}

func (r *runner) prepare(t *testing.T) {
	t.Helper()
	var err error
	if r.credentials, err = auth.NewCredentials(auth.CredentialOptions{Hosts: []string{"127.0.0.1"}}); err != nil {
		t.Fatal(err)
	}
	r.upstream = &http.Transport{TLSClientConfig: r.to.tls, MaxIdleConnsPerHost: 100, DisableCompression: true}
	t.Cleanup(r.upstream.CloseIdleConnections)
	r.direct = connect(t, r.to.admin)
}

// run runs the sequence of a seed, with objects of a form that it chooses.
func (r *runner) run(t *testing.T, seed uint64) error {
	switch kind := corev1.SchemeGroupVersion.WithKind("ConfigMap"); seed / 2 % 3 {
	case 1:
		return runSequence[*unstructured.Unstructured](t, r, seed, kind)
	case 2:
		return runSequence[*metav1.PartialObjectMetadata](t, r, seed, kind)
	default:
		return runSequence[*corev1.ConfigMap](t, r, seed, kind)
	}
}

// note adds the result of a sequence to the report.
func (r *runner) note(p *proxy, took time.Duration, counts map[string]int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.tally(r.results)
	for name, n := range counts {
		r.results[name] += n
	}
	r.took = append(r.took, took)
}

func (r *runner) report(t *testing.T) {
	t.Helper()
	slices.Sort(r.took)
	if n := len(r.took); n > 0 {
		t.Logf("right again after healing: median %s, 99 of 100 within %s, the slowest %s", r.took[n/2], r.took[n*99/100], r.took[n-1])
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(r.results)) {
		lines = append(lines, fmt.Sprintf("%s: %d", name, r.results[name]))
	}
	t.Log(strings.Join(lines, "; "))
}

// write makes one random write, and notes it when it is acknowledged.
func write(ctx context.Context, c *client.Client[*corev1.ConfigMap], random *rand.Rand, l *ledger) error {
	key := client.Key{Name: "m" + strconv.Itoa(random.IntN(8))}
	labels := map[string]string{"a": strconv.Itoa(random.IntN(2)), "b": strconv.Itoa(random.IntN(2))}
	if random.IntN(3) == 0 {
		return client.IgnoreNotFound(c.Delete(ctx, key))
	}
	m := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: key.Name, Labels: labels, Annotations: map[string]string{valueAnnotation: strconv.Itoa(random.Int())}},
		Data:       map[string]string{"padding": strings.Repeat("x", random.IntN(500))},
	}
	made, err := c.Update(ctx, m)
	if client.IsNotFound(err) {
		made, err = c.Create(ctx, m)
	}
	switch {
	case err == nil:
		l.add(made)
	case client.IsConflict(err), client.IsAlreadyExists(err): // the other writer
		return nil
	}
	return err
}

// writeUntil writes until the context ends. What has begun is waited for.
func writeUntil(ctx context.Context, c *client.Client[*corev1.ConfigMap], random *rand.Rand, l *ledger) error {
	for {
		if err := write(context.WithoutCancel(ctx), c, random, l); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Duration(random.IntN(8)) * time.Millisecond):
		}
	}
}

// list is a fresh list, beside the proxy.
func list[T client.Object](ctx context.Context, c *client.Client[T], selects func(client.Object) bool) (map[client.Key]T, error) {
	all, _, err := c.All(ctx)
	if err != nil {
		return nil, errors.Join(errors.New("the fresh list failed"), err)
	}
	out := map[client.Key]T{}
	for _, o := range all {
		if selects(o) {
			o.SetManagedFields(nil)
			out[client.KeyOf(o)] = o
		}
	}
	return out, nil
}
