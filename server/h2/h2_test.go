package h2

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// serve starts a server of this package and returns it with a client of its own.
func serve(t *testing.T, h http.HandlerFunc, change ...func(*http.Server)) (*httptest.Server, *http.Client) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	Configure(s.Config, 100)
	for _, f := range change {
		f(s.Config)
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	client := s.Client()
	t.Cleanup(client.CloseIdleConnections)
	return s, client
}

func read(t *testing.T, r *http.Response, err error) []byte {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	if r.ProtoMajor != 2 {
		t.Fatalf("answered by %s", r.Proto)
	}
	all, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// ask returns what a handler answers.
func ask(t *testing.T, method string, h http.HandlerFunc) (*http.Response, []byte) {
	t.Helper()
	s, client := serve(t, h)
	req, err := http.NewRequest(method, s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := client.Do(req)
	return r, read(t, r, err)
}

func TestAnswers(t *testing.T) {
	long := bytes.Repeat([]byte("0123456789abcdef"), 200_000)
	for name, tt := range map[string]struct {
		method  string
		handler http.HandlerFunc
		status  int
		body    []byte
		length  int64
	}{
		"nothing": {"GET", func(http.ResponseWriter, *http.Request) {}, 200, nil, 0},
		"short": {"GET", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) },
			200, []byte("hello"), 5},
		"long": {"GET", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(long) }, 200, long, -1},
		"in pieces": {"GET", func(w http.ResponseWriter, _ *http.Request) {
			for p := range bytes.SplitSeq(long, []byte("9ab")) {
				_, _ = w.Write(p)
			}
		}, 200, bytes.ReplaceAll(long, []byte("9ab"), nil), -1},
		"a told length": {"GET", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(long)))
			_, _ = w.Write(long)
		}, 200, long, int64(len(long))},
		"a status": {"GET", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }, 404, nil, 0},
		"no content": {"DELETE", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(204)
			if _, err := w.Write([]byte("x")); !errors.Is(err, http.ErrBodyNotAllowed) {
				panic(err)
			}
		}, 204, nil, 0},
		"head": {"HEAD", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "7")
			_, _ = w.Write([]byte("1234567"))
		}, 200, nil, 7},
		"flushed": {"GET", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("a"))
			_ = http.NewResponseController(w).Flush()
			_, _ = w.Write([]byte("b"))
		}, 200, []byte("ab"), -1},
		"a long head": {"GET", func(w http.ResponseWriter, _ *http.Request) {
			for i := range 60 {
				w.Header().Set(fmt.Sprintf("X-Long-%d", i), strings.Repeat("v", 1000))
			}
		}, 200, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r, got := ask(t, tt.method, tt.handler)
			if r.StatusCode != tt.status || !bytes.Equal(got, tt.body) || r.ContentLength != tt.length {
				t.Errorf("status %d, %d bytes, told %d; want %d, %d, %d",
					r.StatusCode, len(got), r.ContentLength, tt.status, len(tt.body), tt.length)
			}
			if r.Header.Get("Date") == "" {
				t.Error("no date")
			}
			if name == "a long head" && len(r.Header.Get("X-Long-59")) != 1000 {
				t.Error("the head is not whole")
			}
		})
	}
}

func TestARequestIsWhatItWas(t *testing.T) {
	s, client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		c1, _ := r.Cookie("a")
		c2, _ := r.Cookie("b")
		_, _ = fmt.Fprint(w, r.Method, " ", r.RequestURI, " ", r.URL.Query().Get("q"), " ", r.Host, " ", r.Proto, " ",
			r.Header["X-Two"], c1.Value, c2.Value, r.TLS != nil, r.RemoteAddr != "", r.ContentLength)
	})
	req, err := http.NewRequest("PUT", s.URL+"/a%2Fb?q=1", strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "example.com"
	req.Header["X-Two"] = []string{"1", "2"}
	req.AddCookie(&http.Cookie{Name: "a", Value: "A"})
	req.AddCookie(&http.Cookie{Name: "b", Value: "B"})
	r, err := client.Do(req)
	if got, want := string(read(t, r, err)), "PUT /a%2Fb?q=1 1 example.com HTTP/2.0 [1 2]ABtrue true 4"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func echo(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }

func TestBodiesOfAnyLengthComeAndGo(t *testing.T) {
	for name, windows := range map[string]*http.HTTP2Config{
		"wide":   nil,
		"narrow": {MaxReceiveBufferPerStream: 64 << 10, MaxReceiveBufferPerConnection: 64 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			s, client := serve(t, echo)
			client.Transport.(*http.Transport).HTTP2 = windows
			var all sync.WaitGroup
			for i := range 16 {
				all.Go(func() {
					sent := bytes.Repeat([]byte{byte(i)}, i*i*4000)
					r, err := client.Post(s.URL, "text/plain", struct{ io.Reader }{bytes.NewReader(sent)})
					if err != nil {
						t.Error(err)
						return
					}
					defer func() { _ = r.Body.Close() }()
					if got, err := io.ReadAll(r.Body); err != nil || !bytes.Equal(got, sent) {
						t.Errorf("body %d: %d bytes of %d: %v", i, len(got), len(sent), err)
					}
				})
			}
			all.Wait()
		})
	}
}

// A body that is not read must not take the connection's room with it.
func TestBodiesThatNobodyReads(t *testing.T) {
	s, client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/echo" {
			echo(w, r)
		}
	})
	for range 30 {
		r, err := client.Post(s.URL, "text/plain", bytes.NewReader(make([]byte, 300<<10)))
		read(t, r, err)
	}
	sent := make([]byte, 3<<20)
	r, err := client.Post(s.URL+"/echo", "text/plain", bytes.NewReader(sent))
	if got := read(t, r, err); len(got) != len(sent) {
		t.Errorf("%d bytes of %d", len(got), len(sent))
	}
}

func TestAStreamGoesOnUntilItsClientLeaves(t *testing.T) {
	left := make(chan error, 1)
	next := make(chan string)
	s, client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		for {
			_ = http.NewResponseController(w).Flush()
			select {
			case line := <-next:
				_, _ = io.WriteString(w, line)
			case <-r.Context().Done():
				left <- r.Context().Err()
				return
			}
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "GET", s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	for _, line := range []string{"short", strings.Repeat("long", 20_000)} {
		next <- line
		got := make([]byte, len(line))
		if _, err := io.ReadFull(r.Body, got); err != nil || string(got) != line {
			t.Fatalf("%d bytes: %v", len(got), err)
		}
	}
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestAnExpectedBodyIsAskedFor(t *testing.T) {
	s, client := serve(t, echo)
	client.Transport.(*http.Transport).ExpectContinueTimeout = time.Hour
	req, err := http.NewRequest("POST", s.URL, strings.NewReader("asked for"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Expect", "100-continue")
	r, err := client.Do(req)
	if got := string(read(t, r, err)); got != "asked for" {
		t.Error(got)
	}
}

func TestAHandlerThatPanicsBreaksItsAnswerOff(t *testing.T) {
	s, client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/panics":
			_, _ = w.Write(make([]byte, 10_000))
			panic("as a test")
		case "/short":
			w.Header().Set("Content-Length", "20000")
			_, _ = w.Write(make([]byte, 10_000))
		}
	})
	for _, path := range []string{"/panics", "/short"} {
		r, err := client.Get(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(r.Body); err == nil {
			t.Error(path, "ended well")
		}
		_ = r.Body.Close()
	}
	r, err := client.Get(s.URL)
	read(t, r, err)
}

func TestDeadlines(t *testing.T) {
	failed := make(chan error, 2)
	s, client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		if r.Method == "POST" {
			_ = control.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
			_, err := r.Body.Read(make([]byte, 1))
			failed <- err
			return
		}
		_ = control.Flush()
		time.AfterFunc(10*time.Millisecond, func() { _ = control.SetWriteDeadline(time.Unix(1, 0)) })
		for {
			if _, err := w.Write(make([]byte, 100_000)); err != nil {
				failed <- err
				return
			}
		}
	})
	client.Transport.(*http.Transport).HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10}
	r, err := client.Get(s.URL) // and does not read
	if err != nil {
		t.Fatal(err)
	}
	if err := <-failed; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("write:", err)
	}
	_ = r.Body.Close()
	never, stop := io.Pipe()
	defer func() { _ = stop.Close() }()
	if r, err := client.Post(s.URL, "text/plain", never); err == nil {
		_ = r.Body.Close()
	}
	if err := <-failed; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("read:", err)
	}
}

func TestShutdownWaitsForAnswers(t *testing.T) {
	begun, stopping, finish := make(chan struct{}), make(chan struct{}), make(chan struct{})
	s, client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(begun)
			<-finish
		}
		_, _ = io.WriteString(w, "done")
	}, func(s *http.Server) { s.RegisterOnShutdown(func() { close(stopping) }) })
	r, err := client.Get(s.URL)
	read(t, r, err)
	answer := make(chan string, 1)
	go func() {
		r, err := client.Get(s.URL + "/slow")
		if err != nil {
			answer <- err.Error()
			return
		}
		all, _ := io.ReadAll(r.Body)
		_ = r.Body.Close()
		answer <- string(all)
	}()
	<-begun
	stopped := make(chan error, 1)
	go func() { stopped <- s.Config.Shutdown(context.Background()) }()
	<-stopping
	close(finish)
	if got := <-answer; got != "done" {
		t.Error(got)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}
