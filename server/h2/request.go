package h2

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/net/http2"
)

// newStream makes the stream of a request. It reports false if that is malformed.
func (c *conn) newStream(ctx context.Context, f *http2.MetaHeadersFrame) (*stream, bool) {
	s := &stream{c: c, answer: c.handler, id: f.StreamID, moved: sync.NewCond(&c.mu), room: bodyWindow}
	ctx, s.cancel = context.WithCancel(ctx)
	req, ok := c.request(f)
	if !ok {
		s.cancel()
		return nil, false
	}
	if f.Truncated {
		s.answer = http.HandlerFunc(tooLong)
	}
	if req.ContentLength == 0 && f.StreamEnded() {
		s.bodyOver, req.Body = true, http.NoBody
	} else {
		s.expects = strings.EqualFold(req.Header.Get("Expect"), "100-continue")
		req.Body = body{s}
	}
	req.Header.Del("Expect")
	s.req = req.WithContext(ctx)
	return s, true
}

func tooLong(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusRequestHeaderFieldsTooLarge)
}

// request is what a header asks for.
func (c *conn) request(f *http2.MetaHeadersFrame) (*http.Request, bool) {
	path := f.PseudoValue("path")
	scheme := f.PseudoValue("scheme")
	r := &http.Request{
		Method: f.PseudoValue("method"), Host: f.PseudoValue("authority"), RequestURI: path,
		Proto: "HTTP/2.0", ProtoMajor: 2, Header: make(http.Header, len(f.Fields)),
		RemoteAddr: c.tls.RemoteAddr().String(), TLS: &c.state,
	}
	if r.Method == "" || r.Method == http.MethodConnect || (scheme != "https" && scheme != "http") {
		return nil, false
	}
	if !strings.HasPrefix(path, "/") && (path != "*" || r.Method != http.MethodOptions) {
		return nil, false
	}
	var err error
	if r.URL, err = url.ParseRequestURI(path); err != nil {
		return nil, false
	}
	for _, h := range f.RegularFields() {
		r.Header.Add(h.Name, h.Value)
	}
	if ofConnection(r.Header) {
		return nil, false
	}
	if r.Host == "" {
		r.Host = r.Header.Get("Host")
	}
	r.Header.Del("Host")
	if cookies := r.Header["Cookie"]; len(cookies) > 1 {
		r.Header.Set("Cookie", strings.Join(cookies, "; "))
	}
	return r, setLength(r, f.StreamEnded())
}

// ofConnection reports fields that HTTP/2 does not have.
func ofConnection(h http.Header) bool {
	for name := range connectionFields {
		if h[name] != nil {
			return true
		}
	}
	te := h["Te"]
	return len(te) > 1 || (len(te) == 1 && te[0] != "trailers")
}

// setLength reads the length of the body; -1 is not known.
func setLength(r *http.Request, ended bool) bool {
	values := r.Header["Content-Length"]
	if len(values) == 0 {
		if !ended {
			r.ContentLength = -1
		}
		return true
	}
	n, err := strconv.ParseUint(values[0], 10, 63)
	r.ContentLength = int64(n)
	return err == nil && len(values) == 1 && (!ended || n == 0)
}
