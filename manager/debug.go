package manager

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/events"
	"github.com/even-keel/evenkeel/informer"
	"github.com/even-keel/evenkeel/leader"
	"github.com/even-keel/evenkeel/workqueue"
)

// maxQueued is how many keys of a queue are shown.
const maxQueued = 200

// Dump is what /debug/evenkeel shows.
type Dump struct {
	Time        time.Time               `json:"time"`
	Leading     bool                    `json:"leading"`
	Leader      *leader.Status          `json:"leader,omitempty"`
	Controllers []ControllerDump        `json:"controllers"`
	Informers   []InformerDump          `json:"informers"`
	Events      map[string]events.Stats `json:"events,omitempty"`
}

// ControllerDump is one controller.
type ControllerDump struct {
	Name    string               `json:"name"`
	Phase   controller.Phase     `json:"phase"`
	Lacks   string               `json:"lacks,omitempty"`
	Workers int                  `json:"workers"`
	Active  int                  `json:"active"`
	Results map[string]uint64    `json:"results"`
	Panics  uint64               `json:"panics"`
	Ignored uint64               `json:"ignored"`
	Hot     []controller.HotLoop `json:"hotLoops,omitempty"`
	Queue   QueueDump            `json:"queue"`
	// Recent are the last reconciles, the newest first.
	Recent []controller.Reconcile `json:"recent"`
}

// QueueDump is what a queue holds.
type QueueDump struct {
	Ready   int       `json:"ready"`
	Running int       `json:"running"`
	Delayed int       `json:"delayed"`
	Keys    []KeyDump `json:"keys,omitempty"`
}

// KeyDump is a key in a queue.
type KeyDump struct {
	Key      string             `json:"key"`
	State    string             `json:"state"`
	Since    *time.Time         `json:"since,omitempty"`
	Due      *time.Time         `json:"due,omitempty"`
	Priority int                `json:"priority,omitempty"`
	Retries  int                `json:"retries,omitempty"`
	Causes   []controller.Cause `json:"causes,omitempty"`
}

// InformerDump is one informer.
type InformerDump struct {
	Kind     string `json:"kind"`
	Synced   bool   `json:"synced"`
	Revision string `json:"revision"`
	Objects  int    `json:"objects"`
	Bytes    int    `json:"bytes"`
	Handlers int    `json:"handlers"`
	// Pending is how many keys the slowest handler has yet to be told of.
	Pending int        `json:"pending"`
	Parts   []PartDump `json:"parts"`
}

// PartDump is the watch of one selection.
type PartDump struct {
	Selection informer.Selection `json:"selection"`
	Phase     informer.Phase     `json:"phase"`
	// Lag is for how long the watch has been broken, and Silent how long the server
	// has said nothing, both in seconds.
	Lag      float64 `json:"lag"`
	Silent   float64 `json:"silent"`
	Error    string  `json:"error,omitempty"`
	Failures int     `json:"failures,omitempty"`
}

// Dump returns all that is known of what runs. It sends nothing.
func (m *Manager) Dump() Dump {
	d := Dump{Time: time.Now(), Leading: m.Leading(), Controllers: []ControllerDump{}, Informers: []InformerDump{}, Events: map[string]events.Stats{}}
	if m.elector != nil {
		s := m.elector.Status()
		d.Leader = &s
	}
	for _, c := range m.Controllers() {
		d.Controllers = append(d.Controllers, dumpController(c))
	}
	for _, in := range m.Informers().Status() {
		d.Informers = append(d.Informers, dumpInformer(in, d.Time))
	}
	for name, r := range m.allRecorders() {
		d.Events[name] = r.Stats()
	}
	return d
}

func dumpController(c *controller.Controller) ControllerDump {
	s := c.Status()
	d := ControllerDump{
		Name: s.Name, Phase: s.Phase, Workers: s.Workers, Active: s.Active, Results: s.Results, Panics: s.Panics,
		Ignored: s.Ignored, Hot: s.Hot, Recent: c.Recent(),
		Queue: QueueDump{Ready: s.Queue.Ready, Running: s.Queue.Running, Delayed: s.Queue.Delayed},
	}
	if s.Lacks != nil {
		d.Lacks = s.Lacks.Error()
	}
	for _, k := range c.Queued(maxQueued) {
		d.Queue.Keys = append(d.Queue.Keys, dumpKey(k))
	}
	return d
}

func dumpKey(k workqueue.Status[controller.Key]) KeyDump {
	d := KeyDump{Key: k.Key.String(), State: "delayed", Priority: k.Priority, Retries: k.Retries, Causes: k.Causes}
	switch {
	case k.Running:
		d.State, d.Since = "running", &k.Started
	case k.Ready:
		d.State, d.Since = "ready", &k.Queued
	}
	if !k.Due.IsZero() {
		d.Due = &k.Due
	}
	return d
}

func dumpInformer(in informer.Status, now time.Time) InformerDump {
	d := InformerDump{
		Kind: in.Kind, Synced: in.Synced, Revision: string(in.Revision), Objects: in.Objects, Bytes: in.Bytes,
		Handlers: in.Handlers, Pending: in.Pending, Parts: []PartDump{},
	}
	for _, p := range in.Parts {
		part := PartDump{Selection: p.Selection, Phase: p.Phase, Failures: p.Failures}
		if p.Err != nil {
			part.Error, part.Lag = p.Err.Error(), now.Sub(p.Since).Seconds()
		}
		if !p.LastEvent.IsZero() {
			part.Silent = now.Sub(p.LastEvent).Seconds()
		}
		d.Parts = append(d.Parts, part)
	}
	return d
}

func (m *Manager) serveDebug(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	_ = out.Encode(m.Dump()) // whoever asked has gone
}
