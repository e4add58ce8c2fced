package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/even-keel/evenkeel/workqueue"
)

type probeName struct {
	container string
	kind      ProbeKind
}

// verdict is what a probe has found out.
type verdict uint8

const (
	unknown verdict = iota
	healthy
	unhealthy
)

// probeID is a probe of a pod's container.
type probeID struct {
	pod PodID
	probeName
}

// asked is a probe that is being asked.
type asked struct {
	probing
	verdict verdict
	// row is how often in a row the last answer came.
	ok  bool
	row int32
}

// answer takes in one answer, and reports whether the verdict is another now. A
// readiness probe begins as unhealthy, others as unknown.
func (a *asked) answer(ok bool) bool {
	if ok != a.ok {
		a.ok, a.row = ok, 0
	}
	a.row++
	was := a.verdict
	switch p := a.probe; {
	case ok && a.row >= max(p.SuccessThreshold, 1):
		a.verdict = healthy
	case !ok && a.row >= cmp.Or(p.FailureThreshold, 3):
		a.verdict = unhealthy
	}
	return a.verdict != was
}

// prober asks the probes of all containers, by a bounded number of workers. What it
// remembers is bounded by the probes of containers that run.
type prober struct {
	runtime Runtime
	queue   *workqueue.Queue[probeID]
	// changed is called when a verdict is another; failed with each bad answer.
	changed func(PodID)
	failed  func(PodID, probing, string)

	mu  sync.Mutex
	all map[PodID]map[probeName]*asked
}

// want has exactly these probes of a pod be asked.
func (p *prober) want(id PodID, all []probing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	have := p.all[id]
	if len(have) == 0 && len(all) == 0 {
		return
	}
	now := make(map[probeName]*asked, len(all))
	for _, w := range all {
		if a := have[w.name]; a != nil && a.attempt == w.attempt {
			now[w.name] = a
			continue
		}
		now[w.name] = &asked{probing: w}
		first := time.Until(w.from.Add(time.Duration(w.probe.InitialDelaySeconds) * time.Second))
		p.queue.AddWith(probeID{id, w.name}, workqueue.AddOptions{After: first})
	}
	// A startup probe that passed is not asked again, but what it said counts on.
	for name, a := range have {
		if name.kind == Startup && a.verdict == healthy && now[name] == nil {
			now[name] = a
		}
	}
	p.all[id] = now
}

// health is what is known of a pod's containers, each in its present attempt.
func (p *prober) health(id PodID, seen []ContainerState) map[probeName]verdict {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.all[id]
	if len(all) == 0 {
		return nil
	}
	out := make(map[probeName]verdict, len(all))
	for _, s := range seen {
		for _, k := range []ProbeKind{Startup, Liveness, Readiness} {
			name := probeName{s.Name, k}
			if a := all[name]; a != nil && a.attempt == s.Attempt {
				out[name] = a.verdict
			}
		}
	}
	return out
}

func (p *prober) forget(id PodID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, id)
}

func (p *prober) find(id probeID) *asked {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all[id.pod][id.probeName]
}

// run asks until ctx ends.
func (p *prober) run(ctx context.Context, workers int) {
	var work sync.WaitGroup
	defer work.Wait()
	for range workers {
		work.Go(func() {
			for item := range p.queue.Items(ctx) {
				p.ask(ctx, item.Key)
			}
		})
	}
}

// ask asks a probe once, and again after its period if it is still wanted.
func (p *prober) ask(ctx context.Context, id probeID) {
	a := p.find(id)
	if a == nil || id.kind == Startup && a.verdict != unknown {
		return
	}
	limit := time.Duration(max(a.probe.TimeoutSeconds, 1)) * time.Second
	within, cancel := context.WithTimeout(ctx, limit)
	err := p.runtime.Probe(within, id.pod, id.container, Probe{id.kind, a.probe})
	late := within.Err() != nil
	cancel()
	if ctx.Err() != nil || errors.Is(err, ErrUnknownPod) || errors.Is(err, ErrUnknownContainer) {
		return
	}
	if err != nil {
		p.failed(id.pod, a.probing, complaint(id.kind, err, late, limit))
	}
	if err == nil || late || errors.Is(err, ErrUnhealthy) { // else nothing was found out
		p.mu.Lock()
		changed := a.answer(err == nil)
		p.mu.Unlock()
		if changed {
			p.changed(id.pod)
		}
	}
	p.queue.AddWith(id, workqueue.AddOptions{After: time.Duration(cmp.Or(a.probe.PeriodSeconds, 10)) * time.Second})
}

// complaint is what people are told of a bad answer.
func complaint(k ProbeKind, err error, late bool, limit time.Duration) string {
	switch {
	case errors.Is(err, ErrUnhealthy):
		return fmt.Sprintf("%s probe failed: %v", k, err)
	case late:
		return fmt.Sprintf("%s probe failed: command timed out after %s", k, limit)
	}
	return fmt.Sprintf("%s probe errored and resulted in unknown state: %v", k, err)
}
