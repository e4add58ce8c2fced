package lean

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// serve starts a TLS server and returns a connection to it.
func serve(t *testing.T, handler http.HandlerFunc) *Conn {
	t.Helper()
	s := httptest.NewTLSServer(handler)
	t.Cleanup(s.Close)
	config := s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	config.ServerName, config.MinVersion = "example.com", tls.VersionTLS13
	c, err := Dial(t.Context(), s.Listener.Addr().String(), config, 4<<10)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return c
}

func get(path string) []byte { return []byte("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n") }

// answers serves bodies by path: how long, and whether in chunks.
func answers(w http.ResponseWriter, r *http.Request) {
	var length int
	var chunked bool
	if _, err := fmt.Sscanf(r.URL.Path, "/%d/%t", &length, &chunked); err != nil {
		http.Error(w, "lost", http.StatusNotFound)
		return
	}
	body := bytes.Repeat([]byte("0123456789abcde\n"), length/16+1)[:length]
	if !chunked {
		w.Header().Set("Content-Length", fmt.Sprint(length))
		_, _ = w.Write(body)
		return
	}
	for len(body) > 0 {
		n := min(len(body), 1000)
		_, _ = w.Write(body[:n])
		_ = http.NewResponseController(w).Flush()
		body = body[n:]
	}
	_ = http.NewResponseController(w).Flush()
}

func TestAnswersOfAllLengthsOnOneConnection(t *testing.T) {
	c := serve(t, answers)
	for _, chunked := range []bool{false, true} {
		for _, length := range []int{0, 1, 1000, 4095, 4096, 4097, bodyKept, 300_001} {
			a, err := c.Do(get(fmt.Sprintf("/%d/%t", length, chunked)))
			if err != nil {
				t.Fatalf("%d bytes, chunked %t: %v", length, chunked, err)
			}
			if a.Status != 200 || a.Bytes != int64(length) || len(a.Body) != min(length, bodyKept) {
				t.Errorf("%d bytes, chunked %t: status %d, %d bytes, %d kept", length, chunked, a.Status, a.Bytes, len(a.Body))
			}
			if want := strings.Repeat("0123456789abcde\n", length/16+1)[:len(a.Body)]; string(a.Body) != want {
				t.Errorf("%d bytes, chunked %t: another body was kept", length, chunked)
			}
		}
	}
	if a, err := c.Do(get("/lost")); err != nil || a.Status != 404 || string(a.Body) != "lost\n" {
		t.Errorf("the refusal came as %d %q, %v", a.Status, a.Body, err)
	}
}

func TestDoAllocatesNothingItself(t *testing.T) {
	c := echo(t, []byte("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"+strings.Repeat("x", 1000)))
	request := get("/")
	if n := testing.AllocsPerRun(500, func() {
		if _, err := c.Do(request); err != nil {
			t.Error(err)
		}
	}); n > 6 { // of crypto/tls on both sides: 2, some more under the race detector
		t.Errorf("%v allocations in a request and its answer", n)
	}
}

// echo starts a server that allocates nothing: it answers whatever comes with the
// same bytes.
func echo(t *testing.T, answer []byte) *Conn {
	t.Helper()
	s := httptest.NewTLSServer(nil) // for its certificate
	t.Cleanup(s.Close)
	l, err := tls.Listen("tcp", "127.0.0.1:0", s.TLS)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		conn, err := l.Accept()
		for in := make([]byte, 4096); err == nil; {
			if _, err = conn.Read(in); err == nil {
				_, err = conn.Write(answer)
			}
		}
	})
	c, err := Dial(t.Context(), l.Addr().String(), &tls.Config{InsecureSkipVerify: true}, 4<<10)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		_ = l.Close()
		wg.Wait()
	})
	return c
}

func TestBlindRepeatsARequest(t *testing.T) {
	for _, path := range []string{"/1/false", "/300001/false", "/300001/true"} {
		t.Run(path, func(t *testing.T) {
			b, err := serve(t, answers).Blind(get(path))
			if err != nil {
				t.Fatal(err)
			}
			for i := range 50 {
				if err := b.Do(); err != nil {
					t.Fatalf("answer %d: %v", i, err)
				}
			}
			if want := strings.Split(path, "/")[1]; fmt.Sprint(b.First().Bytes) != want {
				t.Errorf("the first answer had %d bytes", b.First().Bytes)
			}
		})
	}
}

func TestBlindNoticesAnotherAnswer(t *testing.T) {
	for name, length := range map[string]int{"longer": 2001, "shorter": 1000} {
		t.Run(name, func(t *testing.T) {
			count := 0
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				n := 2000
				if count++; count > 10 {
					n = length
				}
				_, _ = w.Write(make([]byte, n))
			})
			b, err := c.Blind(get("/"))
			if err != nil {
				t.Fatal(err)
			}
			if err := c.SetDeadline(time.Now().Add(time.Second)); err != nil {
				t.Fatal(err)
			}
			done := 0
			for ; done < 20 && err == nil; done++ {
				err = b.Do()
			}
			if err == nil || done != 9 {
				t.Errorf("after %d answers: %v", done, err)
			}
		})
	}
}

func TestBlindWantsAnswersOfOneLength(t *testing.T) {
	n := 0
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		n++
		_, _ = w.Write(make([]byte, n))
	})
	if _, err := c.Blind(get("/")); !errors.Is(err, ErrProtocol) {
		t.Errorf("answers that grow: %v", err)
	}
}

func TestStreamCountsEveryLine(t *testing.T) {
	const lines = 5000
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for i := range lines {
			_, _ = fmt.Fprintf(w, "%s\n", strings.Repeat("x", i%700))
			if i%7 == 0 {
				_ = http.NewResponseController(w).Flush()
			}
		}
	})
	s, err := c.Stream(get("/"))
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for err == nil {
		var n int
		n, err = s.Lines()
		total += n
	}
	if !errors.Is(err, io.EOF) || total != lines {
		t.Errorf("%d lines, then %v", total, err)
	}
}

func TestStreamThatIsRefused(t *testing.T) {
	c := serve(t, http.NotFound)
	if _, err := c.Stream(get("/")); !errors.Is(err, ErrProtocol) {
		t.Errorf("a refused stream: %v", err)
	}
}

func TestChunksInPieces(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 500 {
		var wire, want bytes.Buffer
		for range random.IntN(6) {
			chunk := make([]byte, 1+random.IntN(300))
			for i := range chunk {
				chunk[i] = "\r\n0aF;x"[random.IntN(7)]
			}
			fmt.Fprintf(&wire, []string{"%x\r\n%s\r\n", "%X;name=value\r\n%s\r\n"}[random.IntN(2)], len(chunk), chunk)
			want.Write(chunk)
		}
		wire.WriteString([]string{"0\r\n\r\n", "0\r\nTrailer: x\r\n\r\n", "00;x\r\n\r\n"}[random.IntN(3)])
		if got, err := decode(wire.Bytes(), random); err != nil || !bytes.Equal(got, want.Bytes()) {
			t.Fatalf("%q: got %q, want %q, %v", wire.Bytes(), got, want.Bytes(), err)
		}
	}
}

// decode takes the framing off a body that comes in pieces of any length.
func decode(wire []byte, random *rand.Rand) ([]byte, error) {
	var c chunks
	var got []byte
	for len(wire) > 0 {
		n := 1 + random.IntN(len(wire))
		piece := wire[:n]
		wire = wire[n:]
		for len(piece) > 0 {
			payload, rest, done, err := c.next(piece)
			got, piece = append(got, payload...), rest
			if err != nil {
				return nil, err
			}
			if done && len(piece)+len(wire) > 0 {
				return nil, fmt.Errorf("it ended %d bytes early", len(piece)+len(wire))
			}
			if done {
				return got, nil
			}
		}
	}
	return nil, errors.New("it did not end")
}

func TestWhatIsNoHTTPIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"another protocol": "SSH-2.0-OpenSSH\r\n",
		"no status":        "HTTP/1.1 ok\r\n",
		"no length":        "HTTP/1.1 200 OK\r\nServer: x\r\n",
		"bad length":       "HTTP/1.1 200 OK\r\nContent-Length: x\r\n",
		"negative length":  "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n",
	} {
		if _, err := parseHead([]byte(text)); !errors.Is(err, ErrProtocol) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, text := range map[string]string{"no number": "xyz\r\n", "a chunk without end": "fffffffffffff\r\n"} {
		var c chunks
		if _, _, _, err := c.next([]byte(text)); !errors.Is(err, ErrProtocol) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestStream2(t *testing.T) {
	more := make(chan string)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 || r.URL.String() != "/watch?a=b" || r.Header.Get("Accept") != "text/x" {
			t.Errorf("%s %s, accepts %q", r.Proto, r.URL, r.Header.Get("Accept"))
		}
		w.WriteHeader(200)
		for text := range more {
			_, _ = io.WriteString(w, text)
			_ = http.NewResponseController(w).Flush()
		}
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	c, err := Dial(t.Context(), s.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}, 4<<10)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	go func() { more <- "a\n" }()
	stream, err := c.Stream2("/watch?a=b", "text/x")
	if err != nil {
		t.Fatal(err)
	}
	sent := 1
	go func() {
		for i := range 100 {
			more <- strings.Repeat("x", i*997) + "\nb\n"
		}
		close(more)
	}()
	sent += 200
	got := 0
	for err == nil {
		var n int
		n, err = stream.Lines()
		got += n
	}
	if !errors.Is(err, io.EOF) || got != sent {
		t.Errorf("got %d lines of %d: %v", got, sent, err)
	}
}

func TestStream2Refused(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	for _, protocol := range []string{"h2", "http/1.1"} {
		c, err := Dial(t.Context(), s.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}}, 4<<10)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Stream2("/", "x"); !errors.Is(err, ErrProtocol) {
			t.Errorf("%s: %v", protocol, err)
		}
		_ = c.Close()
	}
}
