package evenkeeltest

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

type mainFunc func() int

func (f mainFunc) Run() int { return f() }

func waitFor(end <-chan struct{}) { <-end }

func TestWhatIsLeftBehindIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which makes the waiting short
		end := make(chan struct{})
		defer close(end)
		for name, test := range map[string]struct {
			run  mainFunc
			code int
			says string
		}{
			"nothing":                  {func() int { return 0 }, 0, ""},
			"a goroutine":              {func() int { go waitFor(end); return 0 }, 1, "evenkeeltest.waitFor"},
			"one, of tests that fail":  {func() int { go waitFor(end); return 2 }, 2, ""},
			"one that takes its time":  {func() int { go time.Sleep(time.Second); return 0 }, 0, ""},
			"a server that was opened": {withServer{mainFunc(func() int { return 0 }), func(*Server) {}, []Option{Bubble()}}.Run, 0, ""},
		} {
			var out strings.Builder
			if code := runMain(test.run, &out); code != test.code || !strings.Contains(out.String(), test.says) || test.says == "" && out.Len() > 0 {
				t.Errorf("%s: %d, %s", name, code, out.String())
			}
		}
	})
}
