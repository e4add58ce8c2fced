package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// patience bounds a request that is not a watch.
const patience = 60 * time.Second

// prepared is a request with its variables filled in.
type prepared struct {
	method, path string
	header       http.Header
	body         []byte
	as           string
	stream       *stream
}

// prepare fills in variables, and notes the generateName that is asked for.
func (p *player) prepare(req Request) (prepared, error) {
	out := prepared{method: req.Method, as: req.As, stream: req.Stream, header: http.Header{
		"User-Agent": {"wire/1"},
		"Accept":     {"application/json"},
	}}
	var err error
	if out.path, err = p.variables.expandPath(req.Path); err != nil {
		return prepared{}, err
	}
	if req.Body != nil {
		body, err := p.variables.expandValue(req.Body)
		if err != nil {
			return prepared{}, err
		}
		if prefix, ok := lookup(body, "metadata.generateName"); ok {
			p.normal.generated = append(p.normal.generated, text(prefix))
		}
		out.header.Set("Content-Type", "application/json")
		if out.body, err = encodeBody(body); err != nil {
			return prepared{}, err
		}
	}
	return out, p.addHeaders(out.header, req.Headers)
}

func (p *player) addHeaders(to http.Header, from map[string]header) error {
	for name, values := range from {
		to.Del(name)
		for _, v := range values {
			value, err := p.variables.expand(v, nil)
			if err != nil {
				return err
			}
			to.Add(name, value)
		}
	}
	return nil
}

// answer is what came back, before normalising.
type answer struct {
	status int
	header http.Header
	body   any
}

// send sends one request and reads the whole answer, or of a watch as much as
// is wanted.
func (t Target) send(ctx context.Context, p prepared) (answer, error) {
	limit := patience
	if p.stream != nil {
		limit = seconds(p.stream.Timeout)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var body io.Reader
	if p.body != nil {
		body = bytes.NewReader(p.body)
	}
	req, err := http.NewRequestWithContext(ctx, p.method, strings.TrimSuffix(t.BaseURL, "/")+p.path, body)
	if err != nil {
		return answer{}, err
	}
	req.Header = p.header.Clone()
	client, err := t.identify(req, p.as)
	if err != nil {
		return answer{}, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	out := answer{status: resp.StatusCode, header: resp.Header}
	out.body, err = readBody(resp, p.stream)
	return out, err
}

// identify adds credentials and picks the client to send with.
func (t Target) identify(req *http.Request, as string) (*http.Client, error) {
	switch as {
	case "":
		if t.Token != "" {
			req.Header.Set("Authorization", "Bearer "+t.Token)
		}
		return t.Client, nil
	case "bad-token":
		req.Header.Set("Authorization", "Bearer nobody-knows-this-token")
		return t.Anonymous, nil
	case "anonymous":
		return t.Anonymous, nil
	}
	return nil, fmt.Errorf("identity %q is not known", as)
}

func readBody(resp *http.Response, s *stream) (any, error) {
	contentType := resp.Header.Get("Content-Type")
	if s != nil && resp.StatusCode == http.StatusOK && strings.Contains(contentType, "json") {
		return readWatch(resp.Body, s.Events), nil
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("read the body: %w", err)
	}
	return parseBody(contentType, b), nil
}

func parseBody(contentType string, b []byte) any {
	switch {
	case len(b) == 0:
		return nil
	case strings.Contains(contentType, "protobuf"):
		return map[string]any{"protobuf": true}
	case strings.Contains(contentType, "json"):
		dec := json.NewDecoder(bytes.NewReader(b))
		dec.UseNumber()
		var v any
		if err := dec.Decode(&v); err == nil {
			return canonical(v)
		}
	}
	return string(b)
}

// readWatch reads up to a number of events. The reader ends at its request's
// deadline.
func readWatch(r io.Reader, most int) any {
	dec := json.NewDecoder(r)
	dec.UseNumber()
	events := []any{}
	ended := "count"
	for len(events) < most {
		var event any
		if err := dec.Decode(&event); err != nil {
			ended = endOf(err)
			break
		}
		events = append(events, canonical(event))
	}
	return map[string]any{"events": events, "ended": ended}
}

// endOf names the end of a watch; one that is neither clean nor ours is told
// as it is, and equals no recording.
func endOf(err error) string {
	switch {
	case errors.Is(err, io.EOF):
		return "eof"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	}
	return "broken: " + err.Error()
}
