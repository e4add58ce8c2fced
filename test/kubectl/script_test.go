package kubectl

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain has one more script run at a time than go test would: there is one that does
// nothing but wait for the clock.
func TestMain(m *testing.M) {
	flag.Parse()
	limit := flag.Lookup("test.parallel")
	if n, err := strconv.Atoi(limit.Value.String()); err != nil || limit.Value.Set(strconv.Itoa(n+1)) != nil {
		panic(fmt.Sprintf("-parallel is %s: %v", limit.Value, err))
	}
	os.Exit(m.Run())
}

func TestScripts(t *testing.T) {
	bin, err := buildPrograms()
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                "testdata",
		RequireUniqueNames: true,
		Setup:              func(env *testscript.Env) error { return setup(env, bin) },
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"evenkeel": foreground("evenkeel"),
			"kubectl":  foreground("kubectl"),
			"serve":    serve,
			"fetch":    fetch,
			"start":    start,
			"await":    await,
			"finish":   finish,
			"end":      end,
			"crash":    crash,
			"match":    match,
			"capture":  capture,
			"free":     free,
		},
	})
}

// setup gives a script the home of an operator who has just started a server.
func setup(env *testscript.Env, bin string) error {
	home := filepath.Join(env.WorkDir, "home")
	if err := os.Mkdir(home, 0o755); err != nil {
		return err
	}
	env.Setenv("HOME", home)
	env.Setenv("XDG_DATA_HOME", "")
	env.Setenv("KUBECONFIG", filepath.Join(env.WorkDir, "data", "admin.kubeconfig"))
	env.Setenv("PATH", bin+string(os.PathListSeparator)+env.Getenv("PATH"))
	env.Setenv("TZ", "UTC")
	env.Setenv("LANG", "C")
	env.Setenv("GORACE", "atexit_sleep_ms=0")
	env.Values[processesKey{}] = &processes{running: map[string]*process{}, env: env, bin: bin}
	return nil
}

// foreground runs a program and waits for it.
func foreground(program string) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		err := ts.Exec(program, args...)
		switch {
		case err != nil && !neg:
			ts.Fatalf("%s failed: %v", program, err)
		case err == nil && neg:
			ts.Fatalf("%s did not fail", program)
		}
	}
}
