//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/even-keel/evenkeel/bench/apiserver/lean"
)

// bound says when a load ends: after a count, or a time, or the first of both.
type bound struct {
	count int // 0: not bounded by count
	time  time.Duration
}

// clients are connections, each of which does one request at a time.
type clients []*lean.Conn

// What a client reads from the system at once.
const (
	clientBuffer = 16 << 10
	listBuffer   = 256 << 10
)

func dial(ctx context.Context, i *instance, n, buffer int, protocol string) (clients, error) {
	var c clients
	config := i.client.Clone()
	config.NextProtos = []string{protocol}
	for range n {
		conn, err := lean.Dial(ctx, i.address, config, buffer)
		if err != nil {
			c.close()
			return nil, err
		}
		c = append(c, conn)
	}
	return c, nil
}

// expire sets when calls fail that are not done.
func (c clients) expire(t time.Time) {
	for _, conn := range c {
		_ = conn.SetDeadline(t) // a closed connection fails anyway
	}
}

func (c clients) close() {
	for _, conn := range c {
		_ = conn.Close() // nothing is pending on it
	}
}

// answerWithin is how long a server may take for one answer.
const answerWithin = time.Minute

// step is one operation, the n-th of all, on one client's connection.
type step func(conn *lean.Conn, n int) error

// run has all clients do steps until the bound, and returns how many were done in
// which time. Each client gets its own step. The first error ends it.
func (c clients) run(ctx context.Context, b bound, newStep func(client int) step) (done int, took time.Duration, err error) {
	all := ctx
	defer context.AfterFunc(all, func() { c.expire(time.Unix(1, 0)) })()
	ctx, cancel := context.WithTimeout(all, b.time)
	defer cancel()
	c.expire(time.Now().Add(b.time + answerWithin))
	var next, finished atomic.Int64
	errs := make([]error, len(c))
	begun := time.Now()
	var wg sync.WaitGroup
	for i, conn := range c {
		do := newStep(i)
		wg.Go(func() {
			for ctx.Err() == nil {
				n := int(next.Add(1)) - 1
				if b.count > 0 && n >= b.count {
					return
				}
				if errs[i] = do(conn, n); errs[i] != nil {
					cancel()
					return
				}
				finished.Add(1)
			}
		})
	}
	wg.Wait()
	took = time.Since(begun)
	if all.Err() != nil {
		return 0, 0, all.Err()
	}
	if err := errors.Join(errs...); err != nil {
		return 0, 0, err
	}
	if done = int(finished.Load()); b.count > 0 && done < b.count {
		return 0, 0, fmt.Errorf("%d of %d operations were done within %v", done, b.count, b.time)
	}
	return done, took, nil
}

// expect does a request whose answer must have a status.
func expect(conn *lean.Conn, request []byte, status int) (lean.Answer, error) {
	a, err := conn.Do(request)
	if err != nil {
		return a, err
	}
	if a.Status != status {
		return a, fmt.Errorf("status %d where %d was due: %.600s", a.Status, status, a.Body)
	}
	return a, nil
}

// blind has each client learn one request, and returns what repeats it and the
// length of the answer's body.
func (c clients) blind(ctx context.Context, request []byte) (skippers []*lean.Blind, size int64, err error) {
	defer context.AfterFunc(ctx, func() { c.expire(time.Unix(1, 0)) })()
	c.expire(time.Now().Add(rowLimit))
	for _, conn := range c {
		b, err := conn.Blind(request)
		if err != nil {
			return nil, 0, err
		}
		if first := b.First(); first.Status != 200 || (size != 0 && size != first.Bytes) {
			return nil, 0, fmt.Errorf("status %d and %d bytes for a list of %d", first.Status, first.Bytes, size)
		}
		skippers, size = append(skippers, b), b.First().Bytes
	}
	return skippers, size, nil
}
