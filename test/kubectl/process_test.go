package kubectl

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// patience is how long a script waits for what must happen.
const patience = time.Minute

// processes are the programs that a script has started beside itself.
type processes struct {
	running map[string]*process
	env     *testscript.Env
	bin     string // where our programs are
}

type processesKey struct{}

// process is a program beside the script.
type process struct {
	cmd    *exec.Cmd
	output output
	ended  chan struct{} // closed once it has
	err    error         // what it ended with
}

// output is what a program has written so far.
type output struct {
	mu      sync.Mutex
	text    bytes.Buffer
	written chan struct{} // closed at the next write
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.written != nil {
		close(o.written)
		o.written = nil
	}
	return o.text.Write(b)
}

// read returns all text, and a channel that is closed when there is more.
func (o *output) read() (string, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.written == nil {
		o.written = make(chan struct{})
	}
	return o.text.String(), o.written
}

// run starts a program. When the script ends before it, it is asked to end.
func run(ts *testscript.TestScript, name, program string, args ...string) {
	all := ts.Value(processesKey{}).(*processes)
	if all.running[name] != nil {
		ts.Fatalf("%s runs already", name)
	}
	p := &process{cmd: exec.Command(all.path(program), args...), ended: make(chan struct{})}
	p.cmd.Args[0] = program
	p.cmd.Dir = ts.MkAbs(".")
	p.cmd.Env = all.environ(ts)
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	ts.Check(p.cmd.Start())
	all.running[name] = p
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	ts.Defer(func() {
		if all.running[name] == p {
			p.signal(all, name, syscall.SIGTERM)
		}
	})
}

// path finds one of our own programs; others are in the system's path.
func (all *processes) path(program string) string {
	if ours := filepath.Join(all.bin, program); exists(ours) {
		return ours
	}
	return program
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// environ is the script's environment of now.
func (all *processes) environ(ts *testscript.TestScript) []string {
	var out []string
	for _, v := range all.env.Vars {
		key, _, _ := strings.Cut(v, "=")
		out = append(out, key+"="+ts.Getenv(key))
	}
	return out
}

// fatalf ends the test. Unlike the script's own it may be called when the
// script has ended.
func (all *processes) fatalf(format string, args ...any) {
	all.env.T().Fatal(fmt.Sprintf(format, args...))
}

// find returns a program that was started.
func find(ts *testscript.TestScript, name string) (*processes, *process) {
	all := ts.Value(processesKey{}).(*processes)
	p := all.running[name]
	if p == nil {
		ts.Fatalf("%s does not run", name)
	}
	return all, p
}

// wait returns once the process has ended.
func (p *process) wait(all *processes, name string) {
	select {
	case <-p.ended:
	case <-time.After(patience):
		delete(all.running, name)
		all.fatalf("%s did not end in %v, having written:\n%s", name, patience, p.stacks())
	}
	delete(all.running, name)
}

// stacks ends a process that does not do what it should, and returns what it
// has written: at last, as a Go program, where all its goroutines are.
func (p *process) stacks() string {
	_ = p.cmd.Process.Signal(syscall.SIGQUIT)
	select {
	case <-p.ended:
	case <-time.After(10 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
	text, _ := p.output.read()
	return text
}

// signal sends a signal and waits for the end. A server must end well.
func (p *process) signal(all *processes, name string, s os.Signal) {
	_ = p.cmd.Process.Signal(s) // it may have ended
	p.wait(all, name)
	if name == server && s != os.Kill && p.err != nil {
		text, _ := p.output.read()
		all.fatalf("the server ended with %v, having written:\n%s", p.err, text)
	}
}

// until waits for a line in what the process writes.
func (p *process) until(ts *testscript.TestScript, all *processes, name, line string) {
	re, err := regexp.Compile("(?m)" + line)
	ts.Check(err)
	late := time.After(patience)
	for {
		text, more := p.output.read()
		if re.MatchString(text) {
			return
		}
		select {
		case <-more:
		case <-p.ended:
			if text, _ = p.output.read(); !re.MatchString(text) {
				ts.Fatalf("%s ended (%v) without a line like %q, having written:\n%s", name, p.err, line, text)
			}
		case <-late:
			delete(all.running, name)
			ts.Fatalf("%s wrote no line like %q in %v, but:\n%s", name, line, patience, p.stacks())
		}
	}
}
