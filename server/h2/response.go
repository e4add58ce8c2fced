package h2

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
)

// response is what a handler writes to.
type response struct {
	s      *stream
	header http.Header
	status int         // 0 until it is known
	head   http.Header // as it was then
	begun  bool        // the head has been sent
	small  []byte      // of the body, not sent yet
	length int64       // of the body if it was told, else -1
	wrote  int64
}

const (
	// smallBody is how much of a body is kept for more to come.
	smallBody = 4 << 10
	// atOnce is how much is sent before others may.
	atOnce = 64 << 10
)

// Header implements [http.ResponseWriter].
func (w *response) Header() http.Header { return w.header }

// WriteHeader implements [http.ResponseWriter].
func (w *response) WriteHeader(status int) {
	switch {
	case w.status != 0:
		return
	case status < 100 || status > 999:
		panic("invalid WriteHeader code " + strconv.Itoa(status))
	case status < 200:
		_ = w.s.c.w.answer(w.s, status, w.header, nil, false) // the final one tells
		return
	}
	w.status, w.head, w.length = status, w.header.Clone(), -1
	if text := w.head.Get("Content-Length"); text != "" {
		n, err := strconv.ParseUint(text, 10, 63)
		if w.length = int64(n); err != nil {
			w.length = -1
			w.head.Del("Content-Length")
		}
	}
}

func (w *response) bodyAllowed() bool {
	return w.status >= 200 && w.status != http.StatusNoContent && w.status != http.StatusNotModified
}

// Write implements [http.ResponseWriter].
func (w *response) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if !w.bodyAllowed() {
		return 0, http.ErrBodyNotAllowed
	}
	if w.length >= 0 && w.wrote+int64(len(p)) > w.length {
		return 0, http.ErrContentLength
	}
	w.wrote += int64(len(p))
	if w.headOnly() {
		return w.describe(p), nil
	}
	if len(w.small)+len(p) <= smallBody {
		w.small = append(w.small, p...)
		return len(p), nil
	}
	if err := w.FlushError(); err != nil {
		return 0, err
	}
	if err := w.send(p, false); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (w *response) headOnly() bool { return w.s.req.Method == http.MethodHead }

// describe keeps of a body that is not sent what tells its type and length.
func (w *response) describe(p []byte) int {
	if !w.begun {
		w.small = append(w.small, p[:min(len(p), smallBody-len(w.small))]...)
	}
	return len(p)
}

// Flush implements [http.Flusher].
func (w *response) Flush() { _ = w.FlushError() }

// FlushError sends what there is.
func (w *response) FlushError() error {
	w.WriteHeader(http.StatusOK)
	if !w.begun {
		return w.begin(false)
	}
	small := w.small
	w.small = w.small[:0]
	return w.send(small, false)
}

// EnableFullDuplex is for [http.ResponseController]: there is nothing to enable.
func (w *response) EnableFullDuplex() error { return nil }

// SetReadDeadline is for [http.ResponseController].
func (w *response) SetReadDeadline(t time.Time) error { return w.s.setDeadline(&w.s.readBy, t) }

// SetWriteDeadline is for [http.ResponseController]. It ends a wait for the client's
// windows, not a write that its connection does not take: that one is all streams'.
func (w *response) SetWriteDeadline(t time.Time) error { return w.s.setDeadline(&w.s.writeBy, t) }

// finish sends what is left, and the end. An answer that is shorter than it was told
// to be is broken off.
func (w *response) finish() {
	w.WriteHeader(http.StatusOK)
	switch {
	case w.bodyAllowed() && !w.headOnly() && w.length > w.wrote:
		w.s.breaks()
	case w.begun:
		_ = w.send(w.small, true) // else the client has gone
	default:
		if w.length < 0 && w.bodyAllowed() && w.wholeIsKnown() {
			w.head.Set("Content-Length", strconv.Itoa(len(w.small)))
		}
		_ = w.begin(true)
	}
}

// wholeIsKnown says that there is no more of a body than what is kept. A handler that
// writes none to HEAD may do so because nobody would read it.
func (w *response) wholeIsKnown() bool {
	return int64(len(w.small)) == w.wrote && (w.wrote > 0 || !w.headOnly())
}

// begin sends the head and what there is of the body: at once, if the client has
// room for it.
func (w *response) begin(end bool) error {
	w.begun = true
	w.complete()
	small := w.small
	w.small = w.small[:0]
	if w.headOnly() {
		small = nil
	}
	room, err := w.s.takeAll(len(small), end)
	if err != nil {
		return err
	}
	if !room {
		if err := w.s.c.w.answer(w.s, w.status, w.head, nil, false); err != nil {
			return err
		}
		return w.send(small, end)
	}
	return w.s.c.w.answer(w.s, w.status, w.head, small, end)
}

// complete adds to the head what its handler has not said. A field without a value
// is one that is not to be there.
func (w *response) complete() {
	if _, said := w.head["Date"]; !said {
		w.head.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	}
	_, said := w.head["Content-Type"]
	if !said && len(w.small) > 0 && w.head.Get("Content-Encoding") == "" {
		w.head.Set("Content-Type", http.DetectContentType(w.small))
	}
}

// connectionFields are fields that HTTP/2 does not have.
var connectionFields = map[string]bool{
	"Connection": true, "Proxy-Connection": true, "Transfer-Encoding": true, "Upgrade": true, "Keep-Alive": true,
}

// fields lists a head.
func fields(status int, header http.Header) func(add func(name, value string)) {
	return func(add func(name, value string)) {
		add(":status", strconv.Itoa(status))
		for name, values := range header {
			if connectionFields[name] || !httpguts.ValidHeaderFieldName(name) {
				continue
			}
			lower := strings.ToLower(name)
			for _, v := range values {
				if httpguts.ValidHeaderFieldValue(v) {
					add(lower, v)
				}
			}
		}
	}
}

// send sends data as far as the client lets it.
func (w *response) send(p []byte, end bool) error {
	for len(p) > 0 {
		n, err := w.s.take(min(len(p), atOnce), end && len(p) <= atOnce)
		if err != nil {
			return err
		}
		if err := w.s.c.w.data(w.s.id, p[:n], end && n == len(p)); err != nil {
			return err
		}
		if p = p[n:]; len(p) == 0 {
			return nil
		}
	}
	if !end {
		return nil
	}
	if _, err := w.s.takeAll(0, true); err != nil { // who has reset the stream gets nothing more
		return err
	}
	return w.s.c.w.data(w.s.id, nil, true)
}

var _ http.Flusher = (*response)(nil)
