package embedded

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/even-keel/evenkeel/storage"
)

// The test binary runs itself as the process to be killed.
const victimEnv = "EVENKEEL_KILL_VICTIM"

func TestMain(m *testing.M) {
	if dir := os.Getenv(victimEnv); dir != "" {
		runVictim(dir)
		return
	}
	os.Exit(m.Run())
}

// rounds returns how often to crash: a number for `make test`, more by the
// environment for `make chaos`.
func rounds(t *testing.T, env string, usual int) int {
	t.Helper()
	s := os.Getenv(env)
	if s == "" {
		return usual
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatalf("%s=%q: %v", env, s, err)
	}
	return n
}

// TestKilledProcessLosesNothing kills a process under eight writers, a watcher
// and a compactor, over and over on one directory.
func TestKilledProcessLosesNothing(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	books := newLedger()
	kills, acks := rounds(t, "EVENKEEL_KILLS", 100), 0
	for round := range kills {
		v := startVictim(t, dir, round, seed, books.seen)
		v.killAfter(1+rng.IntN(400), time.Duration(rng.IntN(2000))*time.Microsecond)
		acked := v.enterInto(t, books)
		acks += len(acked)

		s, err := Open(Options{Dir: dir})
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		books.check(t, s, acked)
		checkResume(t, s, v.watched, books.seen)
		if err := s.Close(); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
	t.Logf("%d kills, %d acknowledged writes, %d revisions", kills, acks, books.seen)
}

// checkResume watches from where a watcher of the dead process had come to.
func checkResume(t *testing.T, s storage.Store, from, head storage.Revision) {
	t.Helper()
	if from > head {
		t.Fatalf("a watcher saw revision %d, the store ends at %d", from, head)
	}
	w := s.Watch("", from)
	defer w.Close()
	for from != 0 && from < head {
		b, err := w.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range b.Events {
			if e.Revision != from+1 {
				t.Fatalf("revision %d follows %d", e.Revision, from)
			}
			from = e.Revision
		}
	}
}

// victim is a process that writes, and what it said before it died.
type victim struct {
	cmd     *exec.Cmd
	out     io.Reader
	lines   []string
	watched storage.Revision
}

func startVictim(t *testing.T, dir string, round int, seed uint64, compact storage.Revision) *victim {
	t.Helper()
	v := &victim{cmd: exec.Command(os.Args[0], "-test.run=^$")}
	v.cmd.Env = append(os.Environ(), victimEnv+"="+dir,
		fmt.Sprintf("VICTIM_ARGS=%d %d %d", round, seed, compact))
	v.cmd.Stderr = os.Stderr
	out, err := v.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	v.out = out
	if err := v.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return v
}

// killAfter reads acks acknowledgements, waits a little, kills the process and
// reads what it still had said.
func (v *victim) killAfter(acks int, delay time.Duration) {
	in := bufio.NewScanner(v.out)
	for acks > 0 && in.Scan() {
		v.lines = append(v.lines, in.Text())
		if strings.HasPrefix(in.Text(), "ack ") {
			acks--
		}
	}
	time.AfterFunc(delay, func() { _ = v.cmd.Process.Kill() })
	for in.Scan() {
		v.lines = append(v.lines, in.Text())
	}
	_ = v.cmd.Wait()
}

// enterInto puts what the victim said into the books and returns what it had
// been promised.
func (v *victim) enterInto(t *testing.T, l *ledger) map[storage.Revision]string {
	t.Helper()
	for _, line := range v.lines {
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "begin":
			l.begin(rest)
		case "ack":
			rev, op, _ := strings.Cut(rest, " ")
			l.ack(parseRevision(t, rev), op)
		case "saw":
			v.watched = parseRevision(t, rest)
		default:
			t.Fatalf("the victim said %q", line)
		}
	}
	return l.ackedNow()
}

func parseRevision(t *testing.T, s string) storage.Revision {
	t.Helper()
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return storage.Revision(n)
}

// speaker writes each of the victim's deeds as one line, at once.
type speaker struct{ mu sync.Mutex }

func (s *speaker) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := os.Stdout.WriteString(fmt.Sprintf(format, args...)); err != nil {
		os.Exit(1)
	}
}

func (s *speaker) begin(op string)                     { s.say("begin %s\n", op) }
func (s *speaker) ack(rev storage.Revision, op string) { s.say("ack %d %s\n", rev, op) }

func runVictim(dir string) {
	var round, seed uint64
	var compact storage.Revision
	if _, err := fmt.Sscan(os.Getenv("VICTIM_ARGS"), &round, &seed, &compact); err != nil {
		fmt.Fprintln(os.Stderr, "victim:", err)
		os.Exit(1)
	}
	s, err := Open(Options{Dir: dir})
	if err != nil {
		fmt.Fprintln(os.Stderr, "victim:", err)
		os.Exit(1)
	}
	ctx, out := context.Background(), &speaker{}
	var wg sync.WaitGroup
	for writer := range 8 {
		wg.Go(func() { traffic(ctx, s, out, writer, strconv.FormatUint(round, 10), seed+round) })
	}
	wg.Go(func() {
		for w := s.Watch("/k/0/", compact); ; {
			b, err := w.Next(ctx)
			if err != nil {
				return
			}
			out.say("saw %d\n", b.Through)
		}
	})
	if round%2 == 1 {
		_ = s.Compact(ctx, compact)
	}
	wg.Wait()
}
