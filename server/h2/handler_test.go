package h2

import (
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/net/http2"
)

// What net/http does for handlers is done here.
func TestWhatHandlersRelyOn(t *testing.T) {
	write := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
	}
	for name, tt := range map[string]struct {
		method  string
		handler http.HandlerFunc
		header  map[string]string
	}{
		"a type":            {"GET", write("<html>"), map[string]string{"Content-Type": "text/html; charset=utf-8"}},
		"of what HEAD asks": {"HEAD", write("<html>"), map[string]string{"Content-Type": "text/html; charset=utf-8", "Content-Length": "6"}},
		"of a long one":     {"HEAD", write(strings.Repeat("x", 10_000)), map[string]string{"Content-Type": "text/plain; charset=utf-8", "Content-Length": ""}},
		"nothing written":   {"HEAD", write(""), map[string]string{"Content-Type": "", "Content-Length": ""}},
		"neither type nor date": {"GET", func(w http.ResponseWriter, r *http.Request) {
			w.Header()["Content-Type"], w.Header()["Date"] = nil, nil
			write("<html>")(w, r)
		}, map[string]string{"Content-Type": "", "Date": ""}},
		"the head as it was": {"GET", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-When", "before")
			w.WriteHeader(http.StatusOK)
			w.Header().Set("X-When", "after")
			write("x")(w, r)
		}, map[string]string{"X-When": "before"}},
		"both at once": {"GET", func(w http.ResponseWriter, _ *http.Request) {
			if err := http.NewResponseController(w).EnableFullDuplex(); err == nil {
				w.Header().Set("X-Duplex", "yes")
			}
		}, map[string]string{"X-Duplex": "yes"}},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := ask(t, tt.method, tt.handler)
			for name, want := range tt.header {
				if got := r.Header.Get(name); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
		})
	}
}

// A client must not take for whole what is not.
func TestAnswersThatAreBrokenOff(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"by who is asked to":   func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"by a goroutine's end": func(http.ResponseWriter, *http.Request) { runtime.Goexit() },
		"by a bad status":      func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(99) },
		"by what would be too much": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "10")
			_, _ = io.WriteString(w, "12345")
			if _, err := io.WriteString(w, "1234567890"); err == nil {
				t.Error("written")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := serve(t, handler)
			c := dialRaw(t, s)
			c.get(1, true)
			if code, reset, _ := c.until(1); !reset || code != http2.ErrCodeInternal {
				t.Errorf("%v, reset: %v", code, reset)
			}
		})
	}
}

func TestFilesOfAFormAreRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s, client := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		if err := r.ParseMultipartForm(1); err != nil {
			t.Error(err)
		}
		if files, _ := os.ReadDir(os.TempDir()); len(files) != 1 {
			t.Errorf("%d files", len(files))
		}
	})
	body, form := io.Pipe()
	m := multipart.NewWriter(form)
	go func() {
		file, _ := m.CreateFormFile("a", "a")
		_, _ = file.Write(make([]byte, 11<<20)) // this much is kept in memory
		_ = m.Close()
		_ = form.Close()
	}()
	r, err := client.Post(s.URL, m.FormDataContentType(), body)
	read(t, r, err)
	s.Close() // waits for the handler
	if files, _ := os.ReadDir(os.TempDir()); len(files) != 0 {
		t.Errorf("%d files are left", len(files))
	}
}
