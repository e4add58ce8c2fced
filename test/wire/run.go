package wire

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// Target is a server under test.
type Target struct {
	// BaseURL is scheme and host, with no path.
	BaseURL string
	// Client is authenticated as a user in system:masters, by itself or by Token.
	Client *http.Client
	// Anonymous has no credentials.
	Anonymous *http.Client
	// Token, if not empty, is the bearer token of what Client sends.
	Token string
	// Compact compacts the server's history up to now. Nil: it cannot.
	Compact func() error
}

// Run is one replay against a target. All its scenarios share one ${id};
// scenarios may be played concurrently, but none beside one that compacts.
type Run struct {
	target Target
	id     string
}

// NewRun returns a run with a fresh id.
func NewRun(target Target) *Run {
	return &Run{target: target.withoutRedirects(), id: newID()}
}

// ID is what ${id} stands for in this run.
func (r *Run) ID() string { return r.id }

func (t Target) withoutRedirects() Target {
	for _, c := range []**http.Client{&t.Client, &t.Anonymous} {
		if *c == nil {
			continue
		}
		plain := **c
		plain.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		*c = &plain
	}
	return t
}

// Result is what came of one step.
type Result struct {
	Step Step
	// Got is the answer, normalised; empty if Err is set.
	Got   Response
	Level Level
	// Diff is what differs at the next level, want first.
	Diff string
	// Err says why there is no answer to compare. Level is then None.
	Err error
}

// Report tells what went wrong, for a reader.
func (r Result) Report() string {
	if r.Err != nil {
		return fmt.Sprintf("%s: %v", r.Step, r.Err)
	}
	said := ""
	if message := member(r.Got.Body, "message"); r.Level < Status && message != "" {
		said = fmt.Sprintf("the server says: %s\n", message)
	}
	return fmt.Sprintf("%s: equal at level %s, differs at the next (-recorded +got):\n%s%s", r.Step, r.Level, r.Diff, said)
}

// Play runs a scenario's steps in order and returns a result for each. It goes
// on after a step that differs. The error is ErrCannotCompact, or that of ctx.
func (r *Run) Play(ctx context.Context, s Scenario) ([]Result, error) {
	return r.playUntil(ctx, s, func(Result) bool { return false })
}

func (r *Run) playUntil(ctx context.Context, s Scenario, enough func(Result) bool) ([]Result, error) {
	if s.NeedsCompaction() && r.target.Compact == nil {
		return nil, fmt.Errorf("%s: %w", s.Name, ErrCannotCompact)
	}
	p := player{
		target:    r.target,
		variables: variables{"id": r.id, "ns": s.Name + "-" + r.id},
		normal:    normaliser{id: r.id},
	}
	var results []Result
	for _, step := range s.Steps {
		result := p.play(ctx, step)
		if err := ctx.Err(); err != nil {
			return results, err
		}
		results = append(results, result)
		if enough(result) {
			break
		}
	}
	return results, nil
}

// player plays one scenario.
type player struct {
	target    Target
	variables variables
	normal    normaliser
}

// play runs one step, and compares.
func (p *player) play(ctx context.Context, step Step) Result {
	result := Result{Step: step}
	if step.Request.Action != "" {
		result.Got, result.Err = p.act(step.Request.Action)
	} else {
		result.Got, result.Err = p.ask(ctx, step.Request)
	}
	if result.Err == nil {
		result.Level, result.Diff = Compare(step.Response, result.Got)
	}
	return result
}

func (p *player) act(action string) (Response, error) {
	if action != "compact" {
		return Response{}, fmt.Errorf("action %q is not known", action)
	}
	if err := p.target.Compact(); err != nil {
		return Response{}, fmt.Errorf("compact: %w", err)
	}
	return Response{Compacted: true}, nil
}

// ask sends a request, again and again if it polls, and digests the answer.
func (p *player) ask(ctx context.Context, req Request) (Response, error) {
	sent, err := p.prepare(req)
	if err != nil {
		return Response{}, err
	}
	got, err := p.target.send(ctx, sent)
	if req.Poll != nil {
		deadline := time.Now().Add(seconds(req.Poll.Limit))
		for (err != nil || !req.Poll.done(got)) && time.Now().Before(deadline) && ctx.Err() == nil {
			time.Sleep(50 * time.Millisecond) // as the recording did
			got, err = p.target.send(ctx, sent)
		}
	}
	if err != nil {
		return Response{}, err
	}
	return p.digest(req, got), nil
}

func (p *poll) done(got answer) bool {
	if p.Path == "$status" {
		return p.Equals == any(int64(got.status))
	}
	found, ok := lookup(got.body, p.Path)
	return ok && text(found) == text(p.Equals)
}

// digest saves, compares and normalises.
func (p *player) digest(req Request, got answer) Response {
	out := Response{
		Status:      got.status,
		ContentType: got.header.Get("Content-Type"),
		Compare:     p.variables.relations(req.Compare, got.body),
	}
	p.variables.save(req.Save, got.body)
	for _, w := range got.header.Values("Warning") {
		out.Warnings = append(out.Warnings, p.normal.warning(w))
	}
	if values := got.header.Values("Retry-After"); len(values) > 0 {
		out.RetryAfter = &values[0]
	}
	body := p.normal.body(got.body)
	sortLists(body, req.Sort)
	out.Body = selected(body, req.Select)
	return out
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
