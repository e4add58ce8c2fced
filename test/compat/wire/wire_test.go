// Package wire replays the recorded answers of kube-apiserver on every storage
// engine; test/wire itself does so in memory alone.
package wire

import (
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/test/compat/cluster"
	"github.com/even-keel/evenkeel/test/wire"
)

var recorded = filepath.Join("..", "..", "wire", "testdata")

func TestReplay(t *testing.T) {
	scenarios, pending := load(t)
	t.Parallel()
	for _, engine := range cluster.Engines {
		t.Run(engine.Name, func(t *testing.T) {
			t.Parallel()
			replay(t, wire.NewRun(target(t, engine.Start(t, cluster.ExpectErrors))), scenarios, pending)
		})
	}
}

func replay(t *testing.T, run *wire.Run, scenarios []wire.Scenario, pending wire.Pending) {
	var mu sync.Mutex
	var scores wire.Scores
	t.Run("scenario", func(t *testing.T) {
		for _, scenario := range scenarios {
			if _, later := pending[scenario.Name]; later || scenario.NeedsCompaction() {
				continue
			}
			t.Run(scenario.Name, func(t *testing.T) {
				t.Parallel()
				results, err := run.Play(t.Context(), scenario)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range results {
					if r.Step.Scored() && r.Level < wire.Status {
						t.Error(r.Report())
					}
				}
				mu.Lock()
				defer mu.Unlock()
				scores.Add(results)
			})
		}
	})
	for _, missed := range scores.Below(0.95) {
		t.Errorf("%s\n%s", missed, scores.String())
	}
}

func load(t *testing.T) ([]wire.Scenario, wire.Pending) {
	t.Helper()
	transcripts, err := os.Open(filepath.Join(recorded, "transcripts.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer transcripts.Close()
	scenarios, err := wire.Load(transcripts)
	if err != nil {
		t.Fatal(err)
	}
	expectations, err := os.Open(filepath.Join(recorded, "expectations.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer expectations.Close()
	pending, err := wire.LoadPending(expectations)
	if err != nil {
		t.Fatal(err)
	}
	return scenarios, pending
}

func target(t *testing.T, s *cluster.Server) wire.Target {
	t.Helper()
	admin := s.Admin()
	client, err := rest.HTTPClientFor(admin)
	if err != nil {
		t.Fatal(err)
	}
	anonymous, err := rest.HTTPClientFor(rest.AnonymousClientConfig(admin))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []*http.Client{client, anonymous} {
		t.Cleanup(c.CloseIdleConnections)
	}
	return wire.Target{BaseURL: admin.Host, Client: client, Anonymous: anonymous}
}
