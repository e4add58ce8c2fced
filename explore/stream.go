package explore

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// errReset is what the network says when a connection breaks.
var errReset = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}

// stream is the body of a watch, which can be held back and broken. What the server
// sends is noted when it comes, and read when it may be heard.
type stream struct {
	*injector
	resource string
	ctx      context.Context
	cancel   context.CancelCauseFunc
	// chunks come from the body until it ends, which is after ctx has ended or err is
	// set.
	chunks chan []byte
	err    error
	rest   []byte // of a chunk that was not read whole
}

func (w wire) watch(req *http.Request, c call) (*http.Response, error) {
	query := req.URL.Query()
	from, initial := query.Get("resourceVersion"), query.Get("sendInitialEvents") == "true"
	switch {
	case initial && from == "0":
		w.permitted()
		if _, ok := w.backTo(c); ok { // it has to list
			return answer(req, apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil)), nil
		}
	case !initial && from != "" && from != "0" && w.forgotten(c):
		return answer(req, apierrors.NewResourceExpired("explore: history was dropped")), nil
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	detach := context.AfterFunc(w.dead, func() {
		if w.crashed() {
			cancel(errCrashed)
		}
	})
	resp, err := w.next.RoundTrip(req.WithContext(ctx))
	if err == nil && resp.StatusCode != http.StatusOK {
		_, err = buffer(resp)
		detach()
		cancel(nil)
		return resp, err
	}
	if err != nil {
		detach()
		cancel(nil)
		return nil, err
	}
	s := &stream{injector: w.injector, resource: c.resource, ctx: ctx, cancel: cancel, chunks: make(chan []byte, maxChunks)}
	s.mu.Lock()
	s.open[s] = true
	s.mu.Unlock()
	go func(body io.ReadCloser) {
		defer detach()
		s.pump(body)
	}(resp.Body)
	resp.Body = s
	return resp, nil
}

// maxChunks bounds what a stream holds back; the server waits with the rest.
const maxChunks = 64

// news is in events that are no bookmarks.
var news = regexp.MustCompile(`"type":"(ADDED|MODIFIED|DELETED)"`)

// pump reads the body until it ends, or the stream does.
func (s *stream) pump(body io.ReadCloser) {
	defer close(s.chunks)
	defer func() { _ = body.Close() }()
	var last []byte
	for {
		chunk := make([]byte, 16<<10)
		n, err := body.Read(chunk)
		if chunk = chunk[:n]; n > 0 {
			if last = append(last, chunk...); news.Match(last) {
				s.comes()
			}
			last = bytes.Clone(last[max(0, len(last)-20):]) // less than what is looked for
			select {
			case s.chunks <- chunk:
			case <-s.ctx.Done():
				return
			}
		}
		if err != nil {
			s.err = err
			return
		}
	}
}

// comes notes that something is told, and whether that is held back.
func (s *stream) comes() {
	s.hears(s.resource)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[s.resource] != nil && s.plan.of == s.resource {
		s.fired = true
	}
}

// Read returns what the server has sent, when it may be heard.
func (s *stream) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		select {
		case chunk, ok := <-s.chunks:
			if !ok && s.ctx.Err() == nil {
				return 0, s.err
			}
			s.rest = chunk
		case <-s.ctx.Done():
		}
		s.await()
	}
	if s.ctx.Err() != nil {
		return 0, context.Cause(s.ctx)
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// await returns when nothing is held back, or the stream has ended.
func (s *stream) await() {
	for s.ctx.Err() == nil {
		s.mu.Lock()
		opened := s.held[s.resource]
		s.mu.Unlock()
		if opened == nil {
			return
		}
		select {
		case <-opened:
		case <-s.ctx.Done():
		}
	}
}

// Close ends the watch, and waits until it has ended.
func (s *stream) Close() error {
	s.mu.Lock()
	delete(s.open, s)
	s.mu.Unlock()
	s.cancel(context.Canceled)
	for range s.chunks {
	}
	return nil
}

// refusal is how a server refuses a write.
func refusal(req *http.Request, f Fault) *http.Response {
	switch f {
	case Unavailable:
		return answer(req, apierrors.NewServiceUnavailable(errInjected.Error()))
	case Throttled:
		return answer(req, apierrors.NewTooManyRequests(errInjected.Error(), 1))
	}
	return answer(req, apierrors.NewInternalError(errInjected))
}

// answer is what a server would send.
func answer(req *http.Request, err *apierrors.StatusError) *http.Response {
	status := err.Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	content, _ := json.Marshal(status) // it has nothing that could fail
	resp := &http.Response{
		StatusCode: int(status.Code), Status: http.StatusText(int(status.Code)),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(bytes.NewReader(content)), ContentLength: int64(len(content)),
	}
	if d := status.Details; d != nil && d.RetryAfterSeconds > 0 {
		resp.Header.Set("Retry-After", strconv.Itoa(int(d.RetryAfterSeconds)))
	}
	return resp
}
