package kubectl

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

// server is the name of the process that serve starts.
const server = "server"

// serve runs `evenkeel serve` and returns when it answers.
func serve(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg)
	program := "evenkeel"
	if other := os.Getenv("EVENKEEL_SERVER"); other != "" {
		program = other
	}
	flags := []string{"serve", "--data-dir", ts.MkAbs("data")}
	if !slices.Contains(args, "--storage") {
		flags = append(flags, "--storage", "memory")
	}
	if !slices.Contains(args, "--listen") {
		flags = append(flags, "--listen", "127.0.0.1:0")
	}
	if !slices.Contains(args, "--controllers") { // the API alone, unless a script says otherwise
		flags = append(flags, "--controllers", "none", "--nodes", "0")
	}
	run(ts, server, program, append(flags, args...)...)
	all, p := find(ts, server)
	p.until(ts, all, server, "^  export KUBECONFIG=")
}

func start(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg)
	if len(args) < 2 {
		ts.Fatalf("usage: start name program args...")
	}
	run(ts, args[0], args[1], args[2:]...)
}

func await(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg)
	if len(args) != 2 {
		ts.Fatalf("usage: await name regexp")
	}
	all, p := find(ts, args[0])
	p.until(ts, all, args[0], args[1])
}

func finish(ts *testscript.TestScript, neg bool, args []string) {
	all, p := one(ts, args)
	p.wait(all, args[0])
	text, _ := p.output.read()
	_, _ = fmt.Fprint(ts.Stdout(), text)
	if (p.err != nil) != neg {
		ts.Fatalf("%s ended with %v, having written:\n%s", args[0], p.err, text)
	}
}

func end(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg)
	all, p := one(ts, args)
	p.signal(all, args[0], syscall.SIGTERM)
	text, _ := p.output.read()
	_, _ = fmt.Fprint(ts.Stdout(), text)
}

func crash(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg)
	all, p := one(ts, args)
	p.signal(all, args[0], os.Kill)
}

func one(ts *testscript.TestScript, args []string) (*processes, *process) {
	if len(args) != 1 {
		ts.Fatalf("usage: finish|end|crash name")
	}
	return find(ts, args[0])
}

// capture runs a program and keeps what it writes in a variable.
func capture(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg)
	if len(args) < 2 {
		ts.Fatalf("usage: capture VARIABLE program args...")
	}
	ts.Check(ts.Exec(args[1], args[2:]...))
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
}

// free finds an address to listen on that outlives a restart: its port is not
// among those that the system gives to connections.
func free(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg)
	if len(args) != 1 {
		ts.Fatalf("usage: free VARIABLE")
	}
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(10000)))
		if err != nil {
			continue
		}
		ts.Setenv(args[0], l.Addr().String())
		ts.Check(l.Close())
		return
	}
	ts.Fatalf("no port is free")
}

// plain refuses a ! before what cannot fail.
func plain(ts *testscript.TestScript, neg bool) {
	if neg {
		ts.Fatalf("! makes no sense here")
	}
}

// fetch gets a page, which is stdout then.
func fetch(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg)
	if len(args) != 1 {
		ts.Fatalf("usage: fetch url")
	}
	own := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := own.Get(args[0])
	ts.Check(err)
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	ts.Check(err)
	if !strings.HasPrefix(res.Status, "200") {
		ts.Fatalf("%s: %s", res.Status, body)
	}
	_, _ = ts.Stdout().Write(body)
}
