//go:build linux

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/even-keel/evenkeel/bench/apiserver/figure"
	"github.com/even-keel/evenkeel/bench/apiserver/lean"
)

// sizes are how much load there is.
type sizes struct {
	clients  int
	creates  int           // of each kind
	updates  int           // of each kind
	reading  time.Duration // of each row of gets and lists
	listed   int           // objects of each kind in a list
	watchers int
	changes  int // each of which every watcher gets
}

// rowLimit is the longest that a row may take.
const rowLimit = 3 * time.Minute

// load is what a row with load does on a stage: it prepares, then measures.
type load func(ctx context.Context, s *stage) (figure.Sample, error)

// The namespaces of the loads.
const (
	inBench   = "bench"
	inLists   = "lists"
	inWatched = "watched"
)

// stage is a server under load.
type stage struct {
	*instance
	sizes   sizes
	clients clients
	cores   int
	// made counts the objects of a kind in a namespace.
	made map[string]int
}

func newStage(ctx context.Context, i *instance, s sizes, cores int) (*stage, error) {
	c, err := dial(ctx, i, s.clients, clientBuffer, http1)
	if err != nil {
		return nil, err
	}
	st := &stage{instance: i, sizes: s, clients: c, cores: cores, made: map[string]int{}}
	for _, name := range []string{inBench, inLists, inWatched} {
		if _, err := expect(c[0], namespace(name), 201); err != nil {
			c.close()
			return nil, fmt.Errorf("create namespace %s: %w", name, err)
		}
	}
	return st, nil
}

// create makes n more objects.
func (s *stage) create(ctx context.Context, k kind, in string, n int) (took time.Duration, err error) {
	key := in + "/" + k.resource
	first, request := s.made[key], k.creation(in)
	_, took, err = s.clients.run(ctx, bound{count: n, time: rowLimit}, func(int) step {
		request := request.clone()
		return func(conn *lean.Conn, i int) error {
			_, err := expect(conn, request.number(first+i), 201)
			return err
		}
	})
	if err != nil {
		return 0, fmt.Errorf("create %d %s: %w", n, k.resource, err)
	}
	s.made[key] = first + n
	return took, nil
}

// ensure makes objects until there are n.
func (s *stage) ensure(ctx context.Context, k kind, in string, n int) error {
	if missing := n - s.made[in+"/"+k.resource]; missing > 0 {
		_, err := s.create(ctx, k, in, missing)
		return err
	}
	return nil
}

// creates measures writers that make objects.
func creates(k kind) load {
	return func(ctx context.Context, s *stage) (figure.Sample, error) {
		if _, err := s.create(ctx, k, inBench, s.sizes.creates/10); err != nil { // warm up
			return figure.Sample{}, err
		}
		return s.measure(func() (float64, time.Duration, error) {
			took, err := s.create(ctx, k, inBench, s.sizes.creates)
			return float64(s.sizes.creates), took, err
		})
	}
}

// gets measures readers of single objects.
func gets(k kind) load {
	return func(ctx context.Context, s *stage) (figure.Sample, error) {
		const objects = 1024
		if err := s.ensure(ctx, k, inBench, objects); err != nil {
			return figure.Sample{}, err
		}
		requests := make([][]byte, objects)
		for i := range requests {
			requests[i] = k.get(inBench, i)
		}
		reader := func(int) step {
			return func(conn *lean.Conn, n int) error {
				_, err := expect(conn, requests[n*7919%objects], 200)
				return err
			}
		}
		return s.reading(func(time time.Duration) (float64, time.Duration, error) {
			done, took, err := s.clients.run(ctx, bound{time: time}, reader)
			return float64(done), took, err
		})
	}
}

// lists measures readers of one long list, in megabytes of body. They have
// connections of their own, for they do not decrypt what they read.
func lists(k kind, accept string) load {
	return func(ctx context.Context, s *stage) (figure.Sample, error) {
		if err := s.ensure(ctx, k, inLists, s.sizes.listed); err != nil {
			return figure.Sample{}, err
		}
		readers, err := dial(ctx, s.instance, s.sizes.clients, listBuffer, http1)
		if err != nil {
			return figure.Sample{}, err
		}
		defer readers.close()
		request := appendRequest(nil, "GET", k.collection(inLists), accept, "")
		skippers, size, err := readers.blind(ctx, request)
		if err != nil {
			return figure.Sample{}, err
		}
		return s.reading(func(time time.Duration) (float64, time.Duration, error) {
			done, took, err := readers.run(ctx, bound{time: time}, func(client int) step {
				return func(*lean.Conn, int) error { return skippers[client].Do() }
			})
			return float64(done) * float64(size) / 1e6, took, err
		})
	}
}

// reading warms a row of reads up, then measures it.
func (s *stage) reading(read func(time.Duration) (float64, time.Duration, error)) (figure.Sample, error) {
	if _, _, err := read(s.sizes.reading / 5); err != nil {
		return figure.Sample{}, err
	}
	return s.measure(func() (float64, time.Duration, error) { return read(s.sizes.reading) })
}

// updates measures writers that change objects of their own, each on the version
// that its last answer told.
func updates(k kind) load {
	return func(ctx context.Context, s *stage) (figure.Sample, error) {
		const each = 8 // objects of a writer
		if err := s.ensure(ctx, k, inBench, each*len(s.clients)); err != nil {
			return figure.Sample{}, err
		}
		writers, err := s.writers(k, inBench, each)
		if err != nil {
			return figure.Sample{}, err
		}
		newStep := func(client int) step { return writers[client].update }
		if _, _, err := s.clients.run(ctx, bound{count: s.sizes.updates / 10, time: rowLimit}, newStep); err != nil {
			return figure.Sample{}, err
		}
		return s.measure(func() (float64, time.Duration, error) {
			done, took, err := s.clients.run(ctx, bound{count: s.sizes.updates, time: rowLimit}, newStep)
			return float64(done), took, err
		})
	}
}

// writer changes some objects in turn.
type writer struct {
	kind     kind
	in       string
	first    int
	versions []string // of the objects from first on
	writes   int
	buffer   []byte
}

// writers returns one for each client, with objects that exist.
func (s *stage) writers(k kind, in string, each int) ([]*writer, error) {
	var all []*writer
	for i := range s.clients {
		w := &writer{kind: k, in: in, first: i * each}
		for n := range each {
			a, err := expect(s.clients[0], k.get(in, w.first+n), 200)
			if err != nil {
				return nil, err
			}
			w.versions = append(w.versions, versionIn(a.Body))
		}
		all = append(all, w)
	}
	return all, nil
}

func (w *writer) update(conn *lean.Conn, _ int) error {
	n := w.writes % len(w.versions)
	w.writes++
	w.buffer = w.kind.put(w.buffer[:0], w.in, w.first+n, w.versions[n], mark(w.writes))
	a, err := expect(conn, w.buffer, 200)
	if err != nil {
		return err
	}
	version := versionIn(a.Body)
	if version == "" || version == w.versions[n] {
		return fmt.Errorf("the update of %s from version %s answered version %q", objectName(w.first+n), w.versions[n], version)
	}
	w.versions[n] = version
	return nil
}
