//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/even-keel/evenkeel/bench/apiserver/figure"
	"github.com/even-keel/evenkeel/bench/apiserver/lean"
	"github.com/even-keel/evenkeel/bench/machine"
)

const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// widget is a custom resource, with n bytes in its spec. Its schema has defaults,
// a list that is a map, and a rule.
func widget(n int) kind {
	text := padding(n)
	return kind{name: "Widget", resource: "widgets", prefix: "/apis/bench.example.com/v1", body: func(name, version, mark string) string {
		return `{"apiVersion":"bench.example.com/v1","kind":"Widget",` + metadata(name, version, mark) +
			`,"spec":{"size":3,"text":"` + text + `","ports":[{"name":"http","port":80},{"name":"admin","port":8080}]}}`
	}}
}

// definition defines the n-th resource like widgets; 0 is widgets themselves. It
// has fields besides those that are used, as definitions do.
func definition(n, fields int) string {
	plural, kind := "widgets", "Widget"
	if n > 0 {
		plural, kind = "widgets"+strconv.Itoa(n), "Widget"+strconv.Itoa(n)
	}
	text := map[string]any{"type": "string", "maxLength": 2000}
	spec := map[string]any{
		"size": map[string]any{"type": "integer", "minimum": 1, "maximum": 10}, "text": text,
		"color": map[string]any{"type": "string", "default": "red", "enum": []string{"red", "blue"}},
		"ports": map[string]any{
			"type": "array", "maxItems": 20, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": []string{"name"},
			"items": map[string]any{"type": "object", "required": []string{"name"}, "properties": map[string]any{
				"name": map[string]any{"type": "string", "maxLength": 63}, "port": map[string]any{"type": "integer"},
			}},
		},
	}
	for i := range fields {
		spec[fmt.Sprintf("field%d", i)] = map[string]any{
			"type": "object", "description": fmt.Sprintf("The %d. of some fields of definition %d, as generators write them from comments.", i, n),
			"properties": map[string]any{"a": text, "b": map[string]any{"type": "integer"}, "c": map[string]any{"type": "boolean"}},
		}
	}
	doc, err := json.Marshal(map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural + ".bench.example.com"},
		"spec": map[string]any{
			"group": "bench.example.com", "scope": "Namespaced",
			"names": map[string]any{"plural": plural, "singular": plural + "-one", "kind": kind, "listKind": kind + "List"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true, "subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{
					"spec": map[string]any{
						"type": "object", "properties": spec,
						"x-kubernetes-validations": []any{map[string]any{"rule": "!has(self.size) || self.size < 100", "message": "too large"}},
					},
					"status": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
				}}},
			}},
		},
	})
	if err != nil {
		panic(err) // it is made of maps and strings
	}
	return string(doc)
}

// define has widgets defined, and waits until the server has them for good: the
// real one delays creates for two seconds after a definition.
func (s *stage) define(ctx context.Context) error {
	if s.made["widgets"] > 0 {
		return nil
	}
	if _, err := s.served(ctx, definition(0, 40), widget(0)); err != nil {
		return err
	}
	s.made["widgets"] = 1
	return machine.Sleep(ctx, 3*time.Second)
}

// served makes a definition, and returns how long it took until its resource
// could be listed.
func (s *stage) served(ctx context.Context, doc string, k kind) (time.Duration, error) {
	conn := s.clients[0]
	_ = conn.SetDeadline(time.Now().Add(rowLimit))
	begun := time.Now()
	if _, err := expect(conn, appendRequest(nil, "POST", definitionsPath, jsonType, doc), 201); err != nil {
		return 0, fmt.Errorf("define %s: %w", k.resource, err)
	}
	list := appendRequest(nil, "GET", k.collection(inBench), jsonType, "")
	for ctx.Err() == nil {
		a, err := conn.Do(list)
		if err != nil {
			return 0, err
		}
		if a.Status == 200 {
			return time.Since(begun), nil
		}
	}
	return 0, ctx.Err()
}

// ofCustom is a load on custom resources.
func ofCustom(l load) load {
	return func(ctx context.Context, s *stage) (figure.Sample, error) {
		if err := s.define(ctx); err != nil {
			return figure.Sample{}, err
		}
		return l(ctx, s)
	}
}

// defining measures how long it takes from a definition to the first answer.
func defining(ctx context.Context, s *stage) (figure.Sample, error) {
	const tries = 10
	var total time.Duration
	for range tries {
		n := 9000 + s.made["defined"]
		s.made["defined"]++
		k := widget(0)
		k.resource = "widgets" + strconv.Itoa(n)
		took, err := s.served(ctx, definition(n, 40), k)
		if err != nil {
			return figure.Sample{}, err
		}
		total += took
	}
	return figure.Sample{Value: total.Seconds() / tries}, nil
}

// applies measures writers that apply objects of their own, with a change each
// time.
func applies(k kind) load {
	return func(ctx context.Context, s *stage) (figure.Sample, error) {
		const each = 8
		newStep := func(client int) step {
			var buffer []byte
			writes := 0
			return func(conn *lean.Conn, _ int) error {
				number := 900_000 + client*each + writes%each
				writes++
				buffer = k.apply(buffer[:0], inBench, number, mark(writes))
				a, err := conn.Do(buffer)
				if err == nil && a.Status != 200 && a.Status != 201 {
					err = fmt.Errorf("apply: status %d: %.600s", a.Status, a.Body)
				}
				return err
			}
		}
		if _, _, err := s.clients.run(ctx, bound{count: max(s.sizes.updates/10, len(s.clients)*each), time: rowLimit}, newStep); err != nil {
			return figure.Sample{}, err
		}
		return s.measure(func() (float64, time.Duration, error) {
			done, took, err := s.clients.run(ctx, bound{count: s.sizes.updates, time: rowLimit}, newStep)
			return float64(done), took, err
		})
	}
}

// The rows about many definitions, on a server of their own.
const (
	rowDefine        = "define 1,000 custom resources"
	rowDefinedMemory = "memory, with 1,000 definitions"
	rowDefinedStart  = "start to ready, with 1,000 definitions"
	definitions      = 1000
)

// many measures a server with many definitions, from an empty folder on.
func (b *bench) many(ctx context.Context, s system) (err error) {
	if !b.has(rowDefine) && !b.has(rowDefinedMemory) && !b.has(rowDefinedStart) {
		return nil
	}
	dir, err := os.MkdirTemp(b.dir, "definitions-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	i, _, err := s.measureStart(ctx, dir, b.cores)
	if err != nil {
		return err
	}
	defer i.family.Kill()
	sample, err := b.defineMany(ctx, i)
	if err != nil {
		return err
	}
	b.add(s, rowDefine, sample)
	if err := b.settled(ctx, s, i, rowDefinedMemory); err != nil {
		return err
	}
	if err := i.family.Stop(); err != nil {
		return err
	}
	again, sample, err := s.measureStart(ctx, dir, b.cores)
	if err != nil {
		return err
	}
	defer again.family.Kill()
	b.add(s, rowDefinedStart, sample)
	return again.family.Stop()
}

// defineMany has 8 clients define resources, and waits until the last is served.
func (b *bench) defineMany(ctx context.Context, i *instance) (figure.Sample, error) {
	c, err := dial(ctx, i, 8, clientBuffer, http1)
	if err != nil {
		return figure.Sample{}, err
	}
	defer c.close()
	st := &stage{instance: i, sizes: b.sizes, clients: c, cores: b.cores, made: map[string]int{}}
	_, took, err := c.run(ctx, bound{count: definitions, time: rowLimit}, func(int) step {
		return func(conn *lean.Conn, n int) error {
			_, err := expect(conn, appendRequest(nil, "POST", definitionsPath, jsonType, definition(n+1, 40)), 201)
			return err
		}
	})
	if err != nil {
		return figure.Sample{}, err
	}
	last := widget(0)
	last.resource = "widgets" + strconv.Itoa(definitions+1)
	more, err := st.served(ctx, definition(definitions+1, 40), last)
	return figure.Sample{Value: (took + more).Seconds()}, err
}

// has reports whether a row was chosen.
func (b *bench) has(name string) bool {
	for _, e := range b.entries {
		if e.row.Name == name {
			return true
		}
	}
	return false
}
