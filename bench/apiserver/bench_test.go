//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/even-keel/evenkeel/bench/machine"
)

func tinySizes() sizes {
	return sizes{clients: 4, creates: 100, updates: 40, reading: 20 * time.Millisecond, listed: 20, watchers: 5, changes: 200}
}

func toyBench(t *testing.T, ours, peer *toy) *bench {
	return &bench{ours: ours.system("ours"), peer: peer.system("peer"), dir: t.TempDir(), sizes: tinySizes(),
		rounds: 1, cores: 2, entries: entries(), say: io.Discard}
}

func TestEveryRowIsMeasuredOnBothSides(t *testing.T) {
	rows, err := toyBench(t, newToy(t), newToy(t)).run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if len(r.Ours) != 1 || len(r.Peer) != 1 {
			t.Errorf("%s has %d and %d samples", r.Name, len(r.Ours), len(r.Peer))
			continue
		}
		if strings.HasPrefix(r.Name, "memory") {
			continue // the toy is no process
		}
		if r.Ours[0].Value <= 0 || r.Peer[0].Value <= 0 {
			t.Errorf("%s is %v and %v", r.Name, r.Ours[0].Value, r.Peer[0].Value)
		}
	}
	page, err := (&report{rows: rows, sizes: tinySizes(), rounds: 1, cores: 2}).page()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if !strings.Contains(page, "| "+r.Name) {
			t.Errorf("the page has no row %q", r.Name)
		}
	}
}

func TestFailuresEndTheRun(t *testing.T) {
	cutting := newToy(t)
	cutting.cutAfter = 100
	full := newToy(t)
	full.create(discard{}, "/api/v1/namespaces/bench/pods", []byte(`{"metadata":{"name":"object-00000007"}}`))
	for name, c := range map[string]struct {
		ours *toy
		want string
	}{
		"a watch that the server ends":  {cutting, "watch fan-out, ConfigMaps, HTTP/2: the server ended a watch"},
		"an answer with another status": {full, "create Pods: create 10 pods: status 409 where 201 was due: it exists"},
	} {
		t.Run(name, func(t *testing.T) {
			b := toyBench(t, c.ours, newToy(t))
			if _, err := b.run(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// discard is an answer nobody reads.
type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) WriteHeader(int)             {}

func TestCancelledRunReturns(t *testing.T) {
	b := toyBench(t, newToy(t), newToy(t))
	b.sizes.reading = time.Hour
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := b.run(ctx); err == nil {
		t.Error("a cancelled run ended well")
	}
}

func TestRowsAreChosenByName(t *testing.T) {
	var names []string
	for _, e := range chosen(entries(), regexp.MustCompile("^list Pods")) {
		names = append(names, e.row.Name)
	}
	if got, want := strings.Join(names, "; "), "list Pods, JSON; list Pods, protobuf"; got != want {
		t.Errorf("chosen: %s", got)
	}
}

func TestCertificatesServe(t *testing.T) {
	c, err := makeCerts(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := machine.ClientTLS(c.admin, c.caPEM); err != nil {
		t.Error(err)
	}
}

func TestRequestsAreHTTP(t *testing.T) {
	k := pod(100)
	create := k.creation("ns").clone()
	for name, c := range map[string]struct {
		request []byte
		line    string
		holds   string
	}{
		"create": {create.number(1234), "POST /api/v1/namespaces/ns/pods", `"name":"object-00001234"`},
		"get":    {k.get("ns", 7), "GET /api/v1/namespaces/ns/pods/object-00000007", ""},
		"put":    {k.put(nil, "ns", 7, "42", mark(3)), "PUT /api/v1/namespaces/ns/pods/object-00000007", `"resourceVersion":"42"`},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(c.request)))
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(r.Body)
			if err != nil || r.Method+" "+r.URL.Path != c.line || !strings.Contains(string(body), c.holds) {
				t.Errorf("%s %s %s, %v", r.Method, r.URL.Path, body, err)
			}
		})
	}
}

func TestVersionIn(t *testing.T) {
	for body, want := range map[string]string{
		`{"metadata":{"resourceVersion":"12","uid":"x"}}`: "12",
		`{"metadata":{}}`:                  "",
		`{"metadata":{"resourceVersion":"`: "",
		``:                                 "",
	} {
		if got := versionIn([]byte(body)); got != want {
			t.Errorf("%s: got %q, want %q", body, got, want)
		}
	}
}

func TestFlags(t *testing.T) {
	if o, err := parse([]string{"-run", "list", "-quick", "-rounds", "5"}); err != nil || o.run != "list" || !o.quick || o.rounds != 5 {
		t.Errorf("got %+v, %v", o, err)
	}
	for _, args := range []string{"-rounds 0", "-only theirs", "extra"} {
		if _, err := parse(strings.Fields(args)); err == nil {
			t.Errorf("%s was taken", args)
		}
	}
}
