package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// call is one request, which can be sent several times.
type call struct {
	method string
	path   string // below the server's own, not yet escaped
	query  url.Values
	body   []byte
	// media is what the body is; accept is what the answer may be.
	media, accept string
	// of, namespace, name and sub are what it is about.
	of                   Resource
	namespace, name, sub string

	// sent and attempt are of the last time that it was sent, for observers.
	sent    time.Time
	attempt int
}

func (c *Conn) request(ctx context.Context, r *call) (*http.Request, error) {
	u := c.base.JoinPath(r.path)
	u.RawQuery = r.query.Encode()
	var body io.Reader
	if r.body != nil {
		body = bytes.NewReader(r.body)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, u.String(), body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", r.accept)
	if r.body != nil {
		req.Header.Set("Content-Type", r.media)
	}
	addHeaders(ctx, r.method, req.Header)
	return req, nil
}

// maxWait is the longest that is waited before a request is sent again. A
// server that asks for more gets the decision handed to the caller.
const maxWait = 30 * time.Second

// onceKey is of a context in which nothing is sent twice.
type onceKey struct{}

// Once returns a context for calls that are not to be repeated: each sends a
// request once, and an error is returned as it comes. It is for callers who
// have a patience of their own, or who need to know of every failure.
func Once(ctx context.Context) context.Context { return context.WithValue(ctx, onceKey{}, true) }

// repeats is how often a request may be sent again.
func (c *Conn) repeats(ctx context.Context) int {
	if ctx.Value(onceKey{}) != nil {
		return 0
	}
	return c.retries
}

// send returns an answer that is a success; its body is the caller's to close.
// While the server asks to come back later, it does: after 429 and 5xx with
// Retry-After. A read whose connection broke is repeated too. Observers have been
// told of all requests but the one that succeeded.
func (c *Conn) send(ctx context.Context, r *call) (*http.Response, error) {
	for attempt := 0; ; attempt++ {
		if c.limiter != nil {
			if err := c.limiter.Wait(ctx); err != nil {
				return nil, err
			}
		}
		resp, wait, err := c.try(ctx, r, attempt)
		if err == nil {
			return resp, nil
		}
		if wait == 0 || wait > maxWait || attempt >= c.repeats(ctx) {
			return nil, err
		}
		if sleep(ctx, wait) != nil {
			return nil, fmt.Errorf("%w, while waiting to try again after: %w", context.Cause(ctx), err)
		}
	}
}

// brokenWait is what is waited after a connection broke: hardly anything at first,
// for it may have been idle for too long, and up to a second if they keep breaking.
func brokenWait(attempt int) time.Duration {
	most := min(50*time.Millisecond<<min(attempt, 10), time.Second)
	return most/2 + rand.N(most/2)
}

// try sends a request once. If it failed and may be repeated, wait is not zero.
func (c *Conn) try(ctx context.Context, r *call, attempt int) (resp *http.Response, wait time.Duration, err error) {
	req, err := c.request(ctx, r)
	if err != nil {
		return nil, 0, err
	}
	c.begin(r)
	got, err := c.http.Do(req)
	if err != nil {
		err = withoutQuery(err)
		c.observed(ctx, r, 0, nil, err)
		if r.method == http.MethodGet && isBroken(err) && ctx.Err() == nil {
			wait = brokenWait(attempt)
		}
		return nil, wait, err
	}
	c.handleWarnings(ctx, got.Header)
	if got.StatusCode >= 200 && got.StatusCode <= 299 {
		return got, 0, nil
	}
	defer func() { _ = got.Body.Close() }()
	wait = retryAfter(got)
	err = r.failure(got, int(wait/time.Second))
	c.observed(ctx, r, got.StatusCode, nil, err)
	return nil, wait, err
}

// withoutQuery leaves out of an error what nobody wants to read.
func withoutQuery(err error) error {
	u, ok := errors.AsType[*url.Error](err)
	if !ok {
		return err
	}
	at, _, _ := strings.Cut(u.URL, "?")
	return &url.Error{Op: u.Op, URL: at, Err: u.Err}
}

// isBroken tells errors of a connection from those of TLS, names and addresses.
func isBroken(err error) bool {
	return errors.Is(err, io.ErrUnexpectedEOF) || utilnet.IsConnectionReset(err) ||
		utilnet.IsHTTP2ConnectionLost(err) || utilnet.IsProbableEOF(err)
}

// retryAfter is zero if the server does not ask to repeat the request.
func retryAfter(resp *http.Response) time.Duration {
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode < 500 {
		return 0
	}
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return max(time.Duration(seconds)*time.Second, time.Millisecond) // at once is still a repetition
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// maxFailure bounds how much is read of an answer that is an error.
const maxFailure = 1 << 20

// failure makes an error of an answer: the Status that the server sent, or one
// that its code stands for.
func (r *call) failure(resp *http.Response, retry int) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxFailure))
	if err != nil {
		body = nil
	}
	if s, ok := decodeStatus(encodingOf(resp), body); ok {
		return apierrors.FromObject(s)
	}
	return apierrors.NewGenericServerResponse(resp.StatusCode, strings.ToLower(r.method), r.of.GroupResource(), r.name,
		strings.TrimSpace(string(body)), retry, true)
}

// decodeStatus reads a Status, if it is one and tells of a failure.
func decodeStatus(e Encoding, body []byte) (*metav1.Status, bool) {
	var s metav1.Status
	if e == Protobuf {
		message, kind, err := unwrap(body)
		if err != nil || kind.Kind != "Status" || s.Unmarshal(message) != nil {
			return nil, false
		}
	} else if decodeJSON(body, &s) != nil || s.Kind != "Status" {
		return nil, false
	}
	return &s, s.Status != metav1.StatusSuccess
}

// kindIn is the kind of an answer.
func kindIn(b *body) string {
	if b.encoding == Protobuf {
		_, kind, err := unwrap(b.bytes)
		if err != nil {
			return ""
		}
		return kind.Kind
	}
	var m metav1.TypeMeta
	if decodeJSON(b.bytes, &m) != nil {
		return ""
	}
	return m.Kind
}

// body is an answer that has been read. Its bytes are good until it is freed.
type body struct {
	bytes    []byte
	encoding Encoding
	buffer   *bytes.Buffer
}

// maxPooled is the size of the largest buffer that is kept for later.
const maxPooled = 1 << 20

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func (b *body) free() {
	if b.buffer.Cap() <= maxPooled {
		b.buffer.Reset()
		buffers.Put(b.buffer)
	}
}

// read sends a request and reads the whole answer. A read that breaks off in the
// middle of it is repeated.
func (c *Conn) read(ctx context.Context, r *call) (*body, error) {
	for attempt := 0; ; attempt++ {
		resp, err := c.send(ctx, r)
		if err != nil {
			return nil, err
		}
		b, err := readBody(resp)
		c.observed(ctx, r, resp.StatusCode, b, err)
		if err == nil {
			return b, nil
		}
		err = fmt.Errorf("%s %s: %w", strings.ToLower(r.method), r.path, err)
		if r.method != http.MethodGet || !isBroken(err) || attempt >= c.repeats(ctx) || sleep(ctx, brokenWait(attempt)) != nil {
			return nil, err
		}
	}
}

func readBody(resp *http.Response) (*body, error) {
	defer func() { _ = resp.Body.Close() }()
	b := &body{encoding: encodingOf(resp), buffer: buffers.Get().(*bytes.Buffer)}
	n, err := b.buffer.ReadFrom(io.LimitReader(resp.Body, MaxObject+1))
	if err == nil && n > MaxObject {
		err = ErrTooLarge
	}
	if err != nil {
		b.free()
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	b.bytes = b.buffer.Bytes()
	return b, nil
}
