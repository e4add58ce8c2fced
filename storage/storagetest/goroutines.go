package storagetest

import (
	"bytes"
	"context"
	"runtime"
	"strings"
	"time"
)

// goroutines returns the stacks of all goroutines by their identity.
func goroutines() map[string]string {
	buffer := make([]byte, 1<<20)
	for {
		n := runtime.Stack(buffer, true)
		if n < len(buffer) {
			buffer = buffer[:n]
			break
		}
		buffer = make([]byte, 2*len(buffer))
	}
	stacks := map[string]string{}
	for stack := range bytes.SplitSeq(buffer, []byte("\n\n")) {
		id, _, _ := bytes.Cut(stack, []byte(" ["))
		stacks[string(id)] = string(stack)
	}
	return stacks
}

// callsUnderway returns the stacks of those who call the store for the suite.
func callsUnderway() (stacks []string) {
	for _, stack := range goroutines() {
		_, frames, _ := strings.Cut(stack, "\n")
		if strings.Contains(frames, "storagetest.") && !strings.Contains(frames, "testing.tRunner") && !strings.Contains(frames, ".(*crew).wait") {
			stacks = append(stacks, stack)
		}
	}
	return stacks
}

// untilBlocked returns once n cursors wait in Next, having nothing else to do.
func (s *subject) untilBlocked(ctx context.Context, n int) {
	s.t.Helper()
	for blocked() < n {
		if ctx.Err() != nil {
			s.t.Fatalf("%d watchers block in Next, want %d", blocked(), n)
		}
		time.Sleep(50 * time.Microsecond) // makes room for them; that they block is what counts
	}
}

// blocked counts the cursors whose Next is not about to run.
func blocked() (n int) {
	for _, stack := range goroutines() {
		header, frames, _ := strings.Cut(stack, "\n")
		_, state, _ := strings.Cut(header, "[")
		ready := strings.HasPrefix(state, "run") || strings.HasPrefix(state, "sync.Mutex") // running, runnable, or at a lock
		if !ready && strings.Contains(frames, ".(*cursor).next(") {
			n++
		}
	}
	return n
}

// settle waits until no goroutines run but those that did before.
func (s *subject) settle(before map[string]string) {
	s.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		var left []string
		for id, stack := range goroutines() {
			if _, old := before[id]; !old {
				left = append(left, stack)
			}
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%d goroutines were left behind:\n%s", len(left), strings.Join(left, "\n\n"))
		}
		time.Sleep(5 * time.Millisecond) // they are on their way out, or never will be
	}
}
