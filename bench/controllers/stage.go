//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/even-keel/evenkeel/bench/apiserver/lean"
	"github.com/even-keel/evenkeel/bench/controllers/side"
	"github.com/even-keel/evenkeel/bench/machine"
)

// writers is how many connections the generator writes by.
const writers = 16

// stage is a server that runs, and the generator's connections to it.
type stage struct {
	*bench
	*machine.Server
	dir   string
	conns []*lean.Conn
	sided time.Duration // CPU time of the sides that have ended
	runs  int
}

func (s *stage) open(ctx context.Context) error {
	for range writers {
		c, err := lean.Dial(ctx, s.Address, s.Admin, 16<<10)
		if err != nil {
			return err
		}
		s.conns = append(s.conns, c)
	}
	return s.do(s.conns[0], "POST", "/api/v1/namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"`+side.Namespace+`"}}`)
}

func (s *stage) close() {
	for _, c := range s.conns {
		_ = c.Close() // nothing is pending on it
	}
}

// do sends a request, whose answer has to be a good one.
func (s *stage) do(c *lean.Conn, method, path, body string) error {
	kind := "application/json"
	if method == "PATCH" {
		kind = "application/merge-patch+json"
	}
	r := []byte(method + " " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench\r\nAccept: application/json\r\nContent-Type: " + kind + "\r\nContent-Length: ")
	r = append(strconv.AppendInt(r, int64(len(body)), 10), "\r\n\r\n"...)
	a, err := c.Do(append(r, body...))
	if err == nil && a.Status/100 != 2 {
		err = fmt.Errorf("status %d: %.300s", a.Status, a.Body)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

// each has all connections work through n numbers.
func (s *stage) each(ctx context.Context, n int, work func(c *lean.Conn, i int) error) error {
	var group sync.WaitGroup
	var next atomic.Int64
	errs := make([]error, len(s.conns))
	for w, c := range s.conns {
		group.Go(func() {
			for errs[w] == nil && ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				errs[w] = work(c, i)
			}
		})
	}
	group.Wait()
	return errors.Join(append(errs, ctx.Err())...)
}

// moment is what has been used until now.
type moment struct {
	at    time.Time
	used  machine.Usage
	sided time.Duration
}

func (s *stage) before() (m moment, err error) {
	m.at, m.sided = time.Now(), s.sided
	m.used, err = machine.Family{s.Child}.Usage()
	return m, err
}

// others is the share of the machine that neither the server nor the generator nor a
// side has used since.
func (s *stage) others(since moment) (float64, error) {
	now, err := s.before()
	if err != nil {
		return 0, err
	}
	took, cores := now.at.Sub(since.at), runtime.NumCPU()
	sample := now.used.Since(since.used, took, cores)
	return max(0, sample.Others-float64(now.sided-since.sided)/float64(took)/float64(cores)), nil
}

// actor is one side's process that runs.
type actor struct {
	*machine.Child
	stage *stage
	in    io.WriteCloser
	out   *json.Decoder
}

// start starts a side.
func (s *stage) start(of string, task side.Task, objects int) (*actor, error) {
	s.runs++
	name := fmt.Sprintf("%s-%s-%d", of, task, s.runs)
	args := []string{"-task", string(task), "-kubeconfig", s.Kubeconfig, "-objects", strconv.Itoa(objects),
		"-workers", strconv.Itoa(s.sizes.workers), "-passes", strconv.Itoa(s.passes(task))}
	if s.profile != "" {
		args = append(args, "-cpuprofile", filepath.Join(s.profile, name+".pprof"))
	}
	c, in, out, err := machine.Converse(s.dir, name, filepath.Join(s.bench.dir, of), args...)
	if err != nil {
		return nil, err
	}
	return &actor{Child: c, stage: s, in: in, out: json.NewDecoder(bufio.NewReader(out))}, nil
}

func (s *stage) passes(t side.Task) int {
	if t == side.Read {
		return s.sizes.passes
	}
	return 1
}

// answer reads what the side tells next.
func (a *actor) answer() (side.Answer, error) {
	var out side.Answer
	if err := a.out.Decode(&out); err != nil {
		return nil, fmt.Errorf("hear of it: %w\n%s", err, a.LastWords())
	}
	return out, nil
}

// ask has the side tell something.
func (a *actor) ask(order string) (side.Answer, error) {
	if _, err := io.WriteString(a.in, order+"\n"); err != nil {
		return nil, fmt.Errorf("ask for %s: %w\n%s", order, err, a.LastWords())
	}
	return a.answer()
}

// end has the side end, and waits for it.
func (a *actor) end() error {
	err := a.in.Close()
	if errors.Is(err, os.ErrClosed) {
		err = nil
	}
	used, ended := a.Await(time.Minute)
	a.stage.sided += used
	return errors.Join(err, ended)
}
