package side

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// SentAt is the annotation with the nanosecond in which a write was sent. No two are
// the same.
const SentAt = "bench/sent"

// StampLength is that of the annotation's value.
const StampLength = 19

var stampKey = []byte(`"` + SentAt + `":"`)

// waits collects how long changes took to be seen by a reconciler.
type waits struct {
	mu      sync.Mutex
	arrived map[string]time.Time // by stamp
	last    map[int]string       // stamp by object
	ofWrite []time.Duration
	ofEvent []time.Duration
	missed  int // reconciles of what did not come by a watch
}

func newWaits() *waits {
	return &waits{arrived: map[string]time.Time{}, last: map[int]string{}}
}

// saw takes note that a reconciler sees a stamp.
func (w *waits) saw(object int, stamp string, now time.Time, measured bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last[object] == stamp {
		return
	}
	w.last[object] = stamp
	if !measured {
		return
	}
	arrived, ok := w.arrived[stamp]
	sent, err := strconv.ParseInt(stamp, 10, 64)
	if !ok || err != nil {
		w.missed++
		return
	}
	delete(w.arrived, stamp)
	w.ofWrite = append(w.ofWrite, now.Sub(time.Unix(0, sent)))
	w.ofEvent = append(w.ofEvent, now.Sub(arrived))
}

// count is how many there are.
func (w *waits) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.ofWrite)
}

// report returns the percentiles in microseconds, and begins anew.
func (w *waits) report() (Answer, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.missed > 0 {
		return nil, fmt.Errorf("%d changes were seen that no watch told", w.missed)
	}
	a := Answer{"count": float64(len(w.ofWrite))}
	for name, all := range map[string][]time.Duration{"write": w.ofWrite, "event": w.ofEvent} {
		slices.Sort(all)
		a[name+"-p50"], a[name+"-p99"] = percentile(all, 50), percentile(all, 99)
	}
	w.ofWrite, w.ofEvent = nil, nil
	return a, nil
}

func percentile(sorted []time.Duration, p int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return float64(sorted[(len(sorted)-1)*p/100]) / float64(time.Microsecond)
}

// wrap has the bodies of watches be looked at as they are read.
func (w *waits) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		if err == nil && r.URL.Query().Get("watch") != "" {
			resp.Body = &watched{ReadCloser: resp.Body, of: w}
		}
		return resp, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// watched notes when stamps can be read. One that two reads share is the later's. It
// takes all that there is, whatever is asked for: who reads in small pieces would else
// not be charged for what lies in the connection meanwhile.
type watched struct {
	io.ReadCloser
	of   *waits
	tail []byte
	all  []byte // a buffer
	left []byte // of what was read
	err  error  // after that
}

const stampWhole = len(`"`+SentAt+`":"`) + StampLength

func (b *watched) Read(p []byte) (int, error) {
	if len(b.left) == 0 && b.err == nil {
		if b.all == nil {
			b.all = make([]byte, 256<<10)
		}
		var n int
		n, b.err = b.ReadCloser.Read(b.all)
		if b.left = b.all[:n]; n > 0 {
			b.look(b.left, time.Now())
		}
	}
	n := copy(p, b.left)
	if b.left = b.left[n:]; len(b.left) > 0 {
		return n, nil
	}
	return n, b.err
}

func (b *watched) look(p []byte, now time.Time) {
	border := append(b.tail, p[:min(len(p), stampWhole-1)]...)
	b.find(border, now)
	b.find(p, now)
	if len(p) >= stampWhole-1 {
		border = p
	}
	b.tail = append(b.tail[:0:0], border[max(0, len(border)-stampWhole+1):]...)
}

func (b *watched) find(in []byte, now time.Time) {
	for {
		i := bytes.Index(in, stampKey)
		if i < 0 || len(in) < i+stampWhole {
			return
		}
		b.of.mu.Lock()
		b.of.arrived[string(in[i+len(stampKey):i+stampWhole])] = now
		b.of.mu.Unlock()
		in = in[i+stampWhole:]
	}
}
