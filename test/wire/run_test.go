package wire

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// scenario makes one of requests and the answers they should get.
func scenario(t *testing.T, lines ...string) Scenario {
	t.Helper()
	var all strings.Builder
	for i, line := range lines {
		fmt.Fprintf(&all, `{"scenario":"s","family":"f","step":%d,%s}`+"\n", i, line)
	}
	scenarios, err := Load(strings.NewReader(all.String()))
	if err != nil {
		t.Fatal(err)
	}
	return scenarios[0]
}

// serve returns a run against a handler.
func serve(t *testing.T, h http.HandlerFunc) *Run {
	t.Helper()
	web := httptest.NewServer(h)
	t.Cleanup(web.Close)
	return NewRun(Target{BaseURL: web.URL, Client: web.Client(), Anonymous: web.Client(), Token: "admin"})
}

func levels(results []Result) string {
	var names []string
	for _, r := range results {
		names = append(names, r.Level.String())
	}
	return strings.Join(names, " ")
}

const okStep = `"request":{"method":"GET","path":"/${ns}"},"response":{"status":200,"contentType":"application/json","body":{"n":1}}`

func answerJSON(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprint(w, body)
}

func TestPollRepeatsUntilTheValueIsThere(t *testing.T) {
	for name, poll := range map[string]string{
		"a path":     `{"path":"n","equals":3,"limit":10}`,
		"the status": `{"path":"$status","equals":201,"limit":10}`,
	} {
		t.Run(name, func(t *testing.T) {
			var count atomic.Int32
			run := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				n := count.Add(1)
				status := 404
				if n == 3 {
					status = 201
				}
				answerJSON(w, status, fmt.Sprintf(`{"n":%d}`, n))
			})
			s := scenario(t, `"request":{"method":"GET","path":"/","poll":`+poll+`},"response":{"status":201,"contentType":"application/json","body":{"n":3}}`)
			results, err := run.Play(t.Context(), s)
			if err != nil || levels(results) != "exact" || count.Load() != 3 {
				t.Errorf("%v after %d requests: %s", err, count.Load(), results[0].Report())
			}
		})
	}
}

func TestPollGivesUp(t *testing.T) {
	run := serve(t, func(w http.ResponseWriter, _ *http.Request) { answerJSON(w, 200, `{"n":1}`) })
	s := scenario(t, `"request":{"method":"GET","path":"/","poll":{"path":"n","equals":2,"limit":0.1}},"response":{"status":200,"contentType":"application/json","body":{"n":2}}`)
	results, err := run.Play(t.Context(), s)
	if err != nil || levels(results) != "status" {
		t.Errorf("%v, %s", err, levels(results))
	}
}

func TestStepsWithoutAnAnswer(t *testing.T) {
	tests := map[string]struct {
		line    string
		handler http.HandlerFunc
		want    string
	}{
		"a variable that was never saved": {
			line: `"request":{"method":"GET","path":"/${rv}"},"response":{"status":200}`,
			want: "no earlier step saved ${rv}",
		},
		"a connection that breaks": {
			line:    `"request":{"method":"GET","path":"/"},"response":{"status":200}`,
			handler: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			want:    "EOF",
		},
		"a watch that sends no headers": {
			line:    `"request":{"method":"GET","path":"/","stream":{"events":1,"timeout":0.1}},"response":{"status":200}`,
			handler: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			want:    "context deadline exceeded",
		},
		"an identity that is not known": {
			line: `"request":{"method":"GET","path":"/","as":"alice"},"response":{"status":200}`,
			want: `identity "alice" is not known`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			results, err := serve(t, tt.handler).Play(t.Context(), scenario(t, tt.line))
			if err != nil {
				t.Fatal(err)
			}
			if r := results[0]; r.Level != None || r.Err == nil || !strings.Contains(r.Report(), tt.want) {
				t.Errorf("level %s, %s, want %s", r.Level, r.Report(), tt.want)
			}
		})
	}
}

func TestWatchThatBreaksOffDoesNotEndCleanly(t *testing.T) {
	run := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		answerJSON(w, 200, `{"type":"ADDED","object":{}}`+"\n")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	s := scenario(t, `"request":{"method":"GET","path":"/","stream":{"events":9,"timeout":5}},`+
		`"response":{"status":200,"contentType":"application/json","body":{"events":[{"type":"ADDED","object":{}}],"ended":"eof"}}`)
	results, err := run.Play(t.Context(), s)
	if err != nil || levels(results) != "status" || !strings.Contains(results[0].Diff, "broken: ") {
		t.Errorf("%v, %s", err, results[0].Report())
	}
}

func TestIdentities(t *testing.T) {
	var seen []string
	run := serve(t, func(w http.ResponseWriter, r *http.Request) { seen = append(seen, r.Header.Get("Authorization")) })
	step := `"request":{"method":"GET","path":"/","as":"%s"},"response":{"status":200}`
	s := scenario(t, fmt.Sprintf(step, ""), fmt.Sprintf(step, "anonymous"), fmt.Sprintf(step, "bad-token"))
	if _, err := run.Play(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Bearer admin", "", "Bearer nobody-knows-this-token"}, seen); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRedirectsAreAnswers(t *testing.T) {
	run := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/elsewhere", http.StatusMovedPermanently)
	})
	results, err := run.Play(t.Context(), scenario(t, okStep))
	if err != nil || results[0].Got.Status != 301 {
		t.Errorf("%v, status %d", err, results[0].Got.Status)
	}
}

func TestCompaction(t *testing.T) {
	run := serve(t, func(w http.ResponseWriter, _ *http.Request) { answerJSON(w, 200, `{"n":1}`) })
	s := scenario(t, okStep, `"request":{"action":"compact"},"response":{"compacted":true}`)
	if _, err := run.Play(t.Context(), s); !errors.Is(err, ErrCannotCompact) {
		t.Errorf("without a way to compact: %v", err)
	}
	compacted := 0
	run.target.Compact = func() error { compacted++; return nil }
	results, err := run.Play(t.Context(), s)
	if err != nil || compacted != 1 || levels(results) != "exact exact" {
		t.Errorf("%v, compacted %d times, %s", err, compacted, levels(results))
	}
	run.target.Compact = func() error { return errors.New("disk full") }
	if results, _ = run.Play(t.Context(), s); results[1].Err == nil {
		t.Error("a compaction that fails goes unnoticed")
	}
}

func TestPendingScenarioEndsAtItsFirstFault(t *testing.T) {
	asked := 0
	run := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		asked++
		answerJSON(w, 200, fmt.Sprintf(`{"n":%d}`, min(asked, 2)))
	})
	s := scenario(t, okStep, okStep, okStep)
	results, err := run.PlayPending(t.Context(), s)
	if err != nil || levels(results) != "exact status" {
		t.Errorf("%v, %s", err, levels(results))
	}
	if Passed(s, results) {
		t.Error("passed with a fault")
	}
	run = serve(t, func(w http.ResponseWriter, _ *http.Request) { answerJSON(w, 200, `{"n":1}`) })
	if results, _ = run.PlayPending(t.Context(), s); !Passed(s, results) {
		t.Error("did not pass without a fault")
	}
}

func TestPendingListMayOnlyShrink(t *testing.T) {
	scenarios := []Scenario{{Name: "old"}, {Name: "new"}, {Name: "mute"}}
	p := Pending{"old": "later", "new": "hard", "gone": "x", "mute": ""}
	want := []string{
		"remove gone from the list: there is no such scenario",
		"say why mute is on the list",
		"remove new from the list: it may only shrink",
	}
	if diff := cmp.Diff(want, p.Check(scenarios, []string{"old", "gone", "mute"})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestScores(t *testing.T) {
	var s Scores
	add := func(n int, level Level, setup bool) {
		for range n {
			s.Add([]Result{{Step: Step{Family: "f", Request: Request{Setup: setup}}, Level: level}})
		}
	}
	add(95, Exact, false)
	add(5, Status, false)
	add(7, None, true) // setup is not scored
	if missed := s.Below(0.95); len(missed) != 0 || s.Total() != (Score{100, 100, 95, 95}) {
		t.Errorf("%v, %+v", missed, s.Total())
	}
	add(1, Status, false)
	if missed := s.Below(0.95); len(missed) != 1 || !strings.HasPrefix(missed[0], "level shape: 95 of 101 steps are equal (94.1 %)") {
		t.Errorf("%q", missed)
	}
	add(1, None, false)
	if missed := s.Below(0.95); len(missed) != 2 || missed[0] != "level status: 101 of 102 steps are equal, want all" {
		t.Errorf("%q", missed)
	}
}

func TestLoadRefusesWhatItDoesNotKnow(t *testing.T) {
	for name, line := range map[string]string{
		"a field":        `{"scenario":"s","family":"f","step":0,"request":{"retry":3},"response":{}}`,
		"no JSON":        `{"scenario"`,
		"a missing step": `{"scenario":"s","family":"f","step":1,"request":{},"response":{}}`,
	} {
		if _, err := Load(strings.NewReader("\n" + line)); err == nil || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
