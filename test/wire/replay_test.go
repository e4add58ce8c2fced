package wire

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

// shapeWanted is the share of in-scope steps that must be equal at level Shape.
const shapeWanted = 0.95

// firstPending is the list of pending scenarios as it began. Never add to it.
var firstPending = []string{"auth-rbac", "crd-basic", "crd-invalid", "crd-more", "watch-compacted"}

var diffLevel = flag.String("wire.diff", "shape", "show what differs up to this level: status, shape or exact")

// TestReplay plays every recorded scenario against our server, or against the
// one that the environment names:
//
//	EVENKEEL_WIRE_URL    its address
//	EVENKEEL_WIRE_TOKEN  a bearer token of a user in system:masters, or
//	EVENKEEL_WIRE_CERT, EVENKEEL_WIRE_KEY  files of such a client certificate
//	EVENKEEL_WIRE_CA     a file with its CA; without it, it is not verified
//	EVENKEEL_WIRE_REPORT a file to write the table and all differences to
//
// `go test ./test/wire -run TestReplay -v -wire.diff=exact` shows all that differs.
func TestReplay(t *testing.T) {
	scenarios := loadScenarios(t)
	pending := loadPending(t)
	for _, wrong := range pending.Check(scenarios, firstPending) {
		t.Error(wrong)
	}
	show, err := ParseLevel(*diffLevel)
	if err != nil {
		t.Fatal(err)
	}
	replay := &replay{run: NewRun(target(t)), pending: pending, show: show}
	replay.playAll(t, scenarios)
	replay.finish(t)
}

// replay gathers what the scenarios bring.
type replay struct {
	run     *Run
	pending Pending
	show    Level

	mu       sync.Mutex
	scores   Scores
	problems []string
	skipped  []string
}

// playAll plays scenarios side by side, and after them, alone, those that
// compact the history.
func (r *replay) playAll(t *testing.T, scenarios []Scenario) {
	t.Run("scenario", func(t *testing.T) {
		for _, s := range scenarios {
			if !s.NeedsCompaction() {
				t.Run(s.Name, func(t *testing.T) {
					t.Parallel()
					r.play(t, s)
				})
			}
		}
	})
	t.Run("compacting", func(t *testing.T) {
		for _, s := range scenarios {
			if s.NeedsCompaction() {
				t.Run(s.Name, func(t *testing.T) { r.play(t, s) })
			}
		}
	})
}

func (r *replay) play(t *testing.T, s Scenario) {
	if reason, ok := r.pending[s.Name]; ok {
		r.playPending(t, s, reason)
		return
	}
	results, err := r.run.Play(t.Context(), s)
	if errors.Is(err, ErrCannotCompact) {
		r.skip(s.Name)
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, result := range results {
		r.judge(t, result)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.scores.Add(results)
}

// judge fails the test for a step without the right status, and keeps what
// else differs for the end.
func (r *replay) judge(t *testing.T, result Result) {
	scored := result.Step.Scored()
	if result.Level >= r.show || !scored && result.Level >= Status {
		return
	}
	report := result.Report()
	if !scored {
		report = "(setup) " + report
	}
	if result.Level < Status && scored {
		t.Error(report)
	} else {
		t.Log(report)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.problems = append(r.problems, report)
}

func (r *replay) playPending(t *testing.T, s Scenario, reason string) {
	results, err := r.run.PlayPending(t.Context(), s)
	if err != nil && !errors.Is(err, ErrCannotCompact) {
		t.Fatal(err)
	}
	if Passed(s, results) {
		t.Errorf("remove %s from the list in testdata/expectations.json: it passes", s.Name)
		return
	}
	t.Skipf("not in scope yet: %s", reason)
}

func (r *replay) skip(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.skipped = append(r.skipped, name)
}

// finish prints the table and holds it against the thresholds.
func (r *replay) finish(t *testing.T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	summary := r.summary()
	fmt.Println(summary) // also without -v: it is what the test is for
	if file := os.Getenv("EVENKEEL_WIRE_REPORT"); file != "" {
		slices.Sort(r.problems)
		if err := os.WriteFile(file, []byte(summary+"\n"+strings.Join(r.problems, "\n")), 0o644); err != nil {
			t.Error(err)
		}
	}
	missed := r.scores.Below(shapeWanted)
	for _, m := range missed {
		t.Error(m)
	}
	if len(missed) > 0 {
		t.Log(strings.Join(r.problems, "\n"))
	}
}

func (r *replay) summary() string {
	var b strings.Builder
	b.WriteString("wire transcripts replayed, steps in scope:\n")
	b.WriteString(r.scores.String())
	if len(r.pending) > 0 {
		fmt.Fprintf(&b, "not in scope yet: %s\n", strings.Join(slices.Sorted(maps.Keys(r.pending)), ", "))
	}
	if len(r.skipped) > 0 {
		fmt.Fprintf(&b, "skipped, for the target cannot compact: %s\n", strings.Join(r.skipped, ", "))
	}
	return b.String()
}

// target is the server that the environment names, or ours.
func target(t *testing.T) Target {
	t.Helper()
	url := os.Getenv("EVENKEEL_WIRE_URL")
	if url == "" {
		base, client, anonymous, compact := startServer(t)
		return Target{BaseURL: base, Client: client, Anonymous: anonymous, Compact: compact}
	}
	trust := &tls.Config{InsecureSkipVerify: true}
	if file := os.Getenv("EVENKEEL_WIRE_CA"); file != "" {
		trust = &tls.Config{RootCAs: readPool(t, file)}
	}
	identified := trust.Clone()
	if file := os.Getenv("EVENKEEL_WIRE_CERT"); file != "" {
		pair, err := tls.LoadX509KeyPair(file, os.Getenv("EVENKEEL_WIRE_KEY"))
		if err != nil {
			t.Fatal(err)
		}
		identified.Certificates = []tls.Certificate{pair}
	}
	return Target{
		BaseURL:   url,
		Client:    httpClient(identified),
		Anonymous: httpClient(trust),
		Token:     os.Getenv("EVENKEEL_WIRE_TOKEN"),
	}
}

func httpClient(config *tls.Config) *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}}
}

func readPool(t *testing.T, file string) *x509.CertPool {
	t.Helper()
	pem, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		t.Fatalf("%s: no certificate in it", file)
	}
	return pool
}

func loadScenarios(t *testing.T) []Scenario {
	t.Helper()
	f, err := os.Open("testdata/transcripts.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	scenarios, err := Load(f)
	if err != nil {
		t.Fatal(err)
	}
	return scenarios
}

func loadPending(t *testing.T) Pending {
	t.Helper()
	f, err := os.Open("testdata/expectations.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	pending, err := LoadPending(f)
	if err != nil {
		t.Fatal(err)
	}
	return pending
}
