package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// Scenario is a sequence of steps that belong together.
type Scenario struct {
	Name   string
	Family string
	Steps  []Step
}

// NeedsCompaction tells whether a step compacts the server's history, which
// other scenarios that run at the same time would notice.
func (s Scenario) NeedsCompaction() bool {
	return slices.ContainsFunc(s.Steps, func(step Step) bool { return step.Request.Action == "compact" })
}

// Step is one request and the answer that was recorded for it.
type Step struct {
	Scenario string   `json:"scenario"`
	Family   string   `json:"family"`
	Number   int      `json:"step"`
	Request  Request  `json:"request"`
	Response Response `json:"response"`
}

// Scored tells whether the step's answer counts; others only make the ground
// for it.
func (s Step) Scored() bool { return !s.Request.Setup && s.Request.Action == "" }

// String names a step in reports.
func (s Step) String() string {
	if s.Request.Action != "" {
		return fmt.Sprintf("%s/%d %s", s.Scenario, s.Number, s.Request.Action)
	}
	return fmt.Sprintf("%s/%d %s %s", s.Scenario, s.Number, s.Request.Method, s.Request.Path)
}

// Request is what to send and how to read the answer.
type Request struct {
	Method  string            `json:"method"`
	Path    string            `json:"path"` // with the query
	Headers map[string]header `json:"headers"`
	// Body is a JSON value, sent compact with keys sorted, or a string, sent as
	// it is; nil sends none.
	Body any `json:"body"`
	// As is "" (the administrator), "anonymous" or "bad-token".
	As string `json:"as"`
	// Save maps variables to paths into the answer's body.
	Save    map[string]string `json:"save"`
	Compare []relation        `json:"compare"`
	Stream  *stream           `json:"stream"`
	Poll    *poll             `json:"poll"`
	Select  []string          `json:"select"`
	Sort    []string          `json:"sort"`
	Setup   bool              `json:"setup"`
	// Action is "" or "compact", which is no request at all.
	Action string `json:"action"`
}

// stream asks to read a watch, up to a number of events or of seconds.
type stream struct {
	Events  int     `json:"events"`
	Timeout float64 `json:"timeout"`
}

// poll asks to repeat a request until a path, or $status, has a value.
type poll struct {
	Path   string  `json:"path"`
	Equals any     `json:"equals"`
	Limit  float64 `json:"limit"`
}

// relation is [path, op, variable].
type relation [3]string

// String is the relation's key in a recorded answer.
func (r relation) String() string { return r[0] + " " + r[1] + " " + r[2] }

// header is one value, or several that are sent as a header each.
type header []string

// UnmarshalJSON takes a string or a list.
func (h *header) UnmarshalJSON(b []byte) error {
	var one string
	if err := json.Unmarshal(b, &one); err == nil {
		*h = header{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(h))
}

// Response is an answer, normalised. In Body, JSON numbers are int64 or
// float64; other text is a string, no body nil, protobuf {"protobuf": true},
// a watch {"events": [...], "ended": "eof" | "count" | "timeout"}.
type Response struct {
	Status      int             `json:"status"`
	ContentType string          `json:"contentType"`
	Warnings    []string        `json:"warnings"`
	RetryAfter  *string         `json:"retryAfter"`
	Compare     map[string]bool `json:"compare"`
	Body        any             `json:"body"`
	// Compacted is the answer to the action compact.
	Compacted bool `json:"compacted"`
}

// Load reads transcripts, a JSON step a line. A field it does not know is an
// error: the replay would silently leave something out.
func Load(r io.Reader) ([]Scenario, error) {
	var all []Scenario
	lines := bufio.NewReader(r)
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return nil, fmt.Errorf("read transcripts: %w", err)
		}
		if len(bytes.TrimSpace(line)) > 0 {
			if all, err = appendStep(all, line); err != nil {
				return nil, fmt.Errorf("transcripts, line %d: %w", number, err)
			}
			continue
		}
		if err == io.EOF {
			return all, nil
		}
	}
}

func appendStep(all []Scenario, line []byte) ([]Scenario, error) {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.UseNumber()
	dec.DisallowUnknownFields()
	var step Step
	if err := dec.Decode(&step); err != nil {
		return nil, err
	}
	step.Response.Body = canonical(step.Response.Body)
	if step.Request.Poll != nil {
		step.Request.Poll.Equals = canonical(step.Request.Poll.Equals)
	}
	i := slices.IndexFunc(all, func(s Scenario) bool { return s.Name == step.Scenario })
	if i < 0 {
		i = len(all)
		all = append(all, Scenario{Name: step.Scenario, Family: step.Family})
	}
	if want := len(all[i].Steps); step.Number != want {
		return nil, fmt.Errorf("%s: step %d where %d is due", step.Scenario, step.Number, want)
	}
	all[i].Steps = append(all[i].Steps, step)
	return all, nil
}

// canonical replaces json.Number, so that equal numbers are equal values: 1,
// 1.0 and 1e0 are int64(1).
func canonical(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = canonical(e)
		}
	case []any:
		for i, e := range v {
			v[i] = canonical(e)
		}
	case json.Number:
		return canonicalNumber(v)
	}
	return v
}

func canonicalNumber(n json.Number) any {
	if i, err := n.Int64(); err == nil {
		return i
	}
	f, err := n.Float64()
	if err != nil {
		return n.String()
	}
	if const53 := float64(1 << 53); f == float64(int64(f)) && f > -const53 && f < const53 {
		return int64(f)
	}
	return f
}
