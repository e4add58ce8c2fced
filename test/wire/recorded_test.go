package wire

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// recorded is a server that answers one scenario from its recording, with
// fresh values in place of the placeholders and unordered lists turned round.
// change, if not nil, may spoil an answer.
type recorded struct {
	t      *testing.T
	id     string
	steps  []Step
	change func(Step, *reply)

	mu       sync.Mutex
	revision int
	saved    variables
}

// reply is an answer on its way out.
type reply struct {
	status int
	header http.Header
	body   any
	ended  string // of a watch
}

// playRecorded plays a scenario against its own recording.
func playRecorded(t *testing.T, s Scenario, change func(Step, *reply)) []Result {
	t.Helper()
	server := &recorded{t: t, change: change, revision: 100, saved: variables{}}
	server.steps = slices.DeleteFunc(slices.Clone(s.Steps), func(s Step) bool { return s.Request.Action != "" })
	web := httptest.NewServer(server)
	defer web.Close()
	run := NewRun(Target{BaseURL: web.URL, Client: web.Client(), Anonymous: web.Client(), Token: "admin",
		Compact: func() error { return nil }})
	server.id = run.ID()
	results, err := run.Play(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

func (s *recorded) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.steps) == 0 {
		s.t.Errorf("a request too many: %s %s", req.Method, req.URL)
		return
	}
	step := s.steps[0]
	s.steps = s.steps[1:]
	s.checkRequest(step.Request, req)
	out := s.reply(step)
	if s.change != nil {
		s.change(step, out)
	}
	out.write(w, req)
}

// checkRequest holds a request against what the README says is sent.
func (s *recorded) checkRequest(want Request, got *http.Request) {
	body, err := io.ReadAll(got.Body)
	if err != nil {
		s.t.Error(err)
	}
	if strings.Contains(got.RequestURI, "$") || strings.Contains(string(body), "${") {
		s.t.Errorf("a variable is left in %s %s", got.RequestURI, body)
	}
	if got.UserAgent() != "wire/1" {
		s.t.Errorf("User-Agent is %q", got.UserAgent())
	}
	authorization := map[string]string{"": "Bearer admin", "anonymous": ""}
	if have, known := authorization[want.As]; known && got.Header.Get("Authorization") != have {
		s.t.Errorf("as %q: Authorization is %q", want.As, got.Header.Get("Authorization"))
	}
	if want.Headers["Accept"] == nil && got.Header.Get("Accept") != "application/json" {
		s.t.Errorf("Accept is %q", got.Header.Get("Accept"))
	}
	if (want.Body != nil) != (got.Header.Get("Content-Type") != "") {
		s.t.Errorf("%s: Content-Type is %q", got.RequestURI, got.Header.Get("Content-Type"))
	}
}

// reply is the recorded answer with fresh values.
func (s *recorded) reply(step Step) *reply {
	s.revision++
	revision := strconv.Itoa(s.revision)
	for _, c := range step.Request.Compare {
		if c[1] == "eq" {
			revision = s.saved[c[2]]
		}
	}
	recorded := step.Response
	out := &reply{status: recorded.Status, header: http.Header{}}
	if recorded.ContentType != "" {
		out.header.Set("Content-Type", recorded.ContentType)
	}
	for _, w := range recorded.Warnings {
		out.header.Add("Warning", fresh(w, s.id, revision).(string))
	}
	if recorded.RetryAfter != nil {
		out.header.Set("Retry-After", *recorded.RetryAfter)
	}
	out.body = turned(fresh(unselected(step), s.id, revision))
	s.saved.save(step.Request.Save, out.body)
	if _, ended, ok := watchOf(out.body); ok {
		out.ended = ended
	}
	return out
}

// write sends a reply; a watch event by event, and kept open if it did not end
// by itself.
func (r *reply) write(w http.ResponseWriter, req *http.Request) {
	for name, values := range r.header {
		w.Header()[name] = values
	}
	if r.header.Get("Content-Type") == "" {
		w.Header()["Content-Type"] = nil // or net/http guesses
	}
	w.WriteHeader(r.status)
	switch body := r.body.(type) {
	case nil:
	case string:
		io.WriteString(w, body)
	default:
		if r.ended == "" {
			json.NewEncoder(w).Encode(body)
			return
		}
		events, _ := lookup(body, "events")
		for _, e := range events.([]any) {
			json.NewEncoder(w).Encode(e)
		}
		w.(http.Flusher).Flush()
		if r.ended != "eof" {
			<-req.Context().Done()
		}
	}
}
