package explore

import (
	"context"
	"errors"
	"net/http"
)

// process is one life of the controller.
type process struct {
	*injector
	// dead ends with the process, which kill ends.
	dead context.Context
	kill context.CancelCauseFunc
}

// wire is the transport of a process, or one of several.
type wire struct {
	*process
	next http.RoundTripper
}

func (p *process) wrap(next http.RoundTripper) http.RoundTripper { return wire{p, next} }

// errCrashed is what a process hears that is no more, errInjected why a server refuses.
var (
	errCrashed  = errors.New("explore: the process has crashed")
	errInjected = errors.New("explore: a fault of the plan")
)

func (p *process) crashed() bool { return errors.Is(context.Cause(p.dead), errCrashed) }

// RoundTrip is [http.RoundTripper]. It may change the request: nobody else has it.
func (w wire) RoundTrip(req *http.Request) (*http.Response, error) {
	if w.crashed() {
		return nil, errCrashed
	}
	req = req.Clone(req.Context())
	switch c := parse(req); {
	case c.verb == "watch":
		return w.watch(req, c)
	case c.verb == "list":
		return w.list(req, c)
	case c.counts(req.URL.Query()):
		return w.write(req, c)
	default:
		return w.next.RoundTrip(req)
	}
}

// send does a request and reads its answer whole, unless the process ends before.
func (w wire) send(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	defer context.AfterFunc(w.dead, func() {
		if w.crashed() {
			cancel()
		}
	})()
	resp, err := w.next.RoundTrip(req.WithContext(ctx))
	if err == nil {
		_, err = buffer(resp)
	}
	if w.crashed() {
		return nil, errCrashed
	}
	return resp, err
}

func (w wire) write(req *http.Request, c call) (*http.Response, error) {
	body, err := bodyOf(req)
	if err != nil {
		return nil, err
	}
	select {
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
	if w.crashed() {
		return nil, errCrashed
	}
	write, nth := w.arrives(c, body)
	if !w.fires(write, nth) {
		return w.commit(req, write)
	}
	return w.fail(req, write, c)
}

// fail does a write at which the fault happens.
func (w wire) fail(req *http.Request, write string, c call) (*http.Response, error) {
	switch w.plan.fault {
	case CrashBefore:
		w.kill(errCrashed)
		return nil, errCrashed
	case Failed, Unavailable, Throttled:
		return refusal(req, w.plan.fault), nil
	case Conflict:
		if _, err := w.send(touch(req, c)); err != nil {
			return nil, err
		}
	case Stale:
		w.hold(w.plan.of)
	case Cut:
		w.cut()
	}
	resp, err := w.commit(req, write)
	switch w.plan.fault {
	case CrashAfter, Behind:
		w.fallBehind()
		w.kill(errCrashed)
		return nil, errCrashed
	case Lost:
		return nil, errReset
	}
	return resp, err
}

// commit does a write, and has the world looked at before its answer is heard.
func (w wire) commit(req *http.Request, write string) (*http.Response, error) {
	resp, err := w.send(req)
	if err != nil {
		return nil, err
	}
	if content, err := buffer(resp); err == nil {
		w.answered(content)
	}
	w.after(context.WithoutCancel(req.Context()), write)
	return resp, nil
}

// list does a list: of the past, if the server is behind and the request permits it.
func (w wire) list(req *http.Request, c call) (*http.Response, error) {
	query := req.URL.Query()
	if query.Get("resourceVersion") == "0" {
		w.permitted()
		if revision, ok := w.backTo(c); ok {
			w.tell("list %s as of %s", c.resource, revision)
			query.Set("resourceVersion", revision)
			query.Set("resourceVersionMatch", "Exact")
			req.URL.RawQuery = query.Encode()
		}
	}
	return w.send(req)
}
