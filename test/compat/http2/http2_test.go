// Package http2 has h2spec, the conformance tests of HTTP/2 that other servers are
// held to, as a client of server/h2.
package http2

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/summerwind/h2spec/config"
	"github.com/summerwind/h2spec/generic"
	"github.com/summerwind/h2spec/hpack"
	"github.com/summerwind/h2spec/http2"
	"github.com/summerwind/h2spec/spec"

	"github.com/even-keel/evenkeel/server/h2"
)

func TestHTTP2(t *testing.T) {
	c := target(t)
	for _, group := range []*spec.TestGroup{generic.Spec(), http2.Spec(), hpack.Spec()} {
		t.Run(group.Key, func(t *testing.T) {
			if passed := run(t, group, c); passed == 0 {
				t.Error("no test was run")
			}
		})
	}
}

// target is a server that reads all of a request before it answers, whatever it is:
// with one that answers sooner, the answer and the error that a test waits for would race.
func target(t *testing.T) *config.Config {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err == nil {
			_, _ = io.WriteString(w, "what the tests read, in no more than a frame")
		}
	}))
	s.EnableHTTP2 = true
	h2.Configure(s.Config, 100)
	s.StartTLS()
	t.Cleanup(s.Close)
	address := s.Listener.Addr().(*net.TCPAddr)
	return &config.Config{Host: address.IP.String(), Port: address.Port, Path: "/", TLS: true, Insecure: true,
		Strict: true, Timeout: 5 * time.Second, MaxHeaderLen: 4000}
}

// run runs all tests of a group, and returns how many held.
func run(t *testing.T, group *spec.TestGroup, c *config.Config) (passed int) {
	for i, test := range append(group.Tests, group.StrictTests...) {
		t.Run(fmt.Sprintf("%s/%d", group.Section, i+1), func(t *testing.T) {
			conn, err := spec.Dial(c)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			switch err := test.Run(c, conn); {
			case errors.Is(err, spec.ErrSkipped):
				t.Skipf("h2spec does not try this here: %s", test.Desc)
			case err != nil:
				t.Errorf("%s: %s: %v", test.Desc, test.Requirement, err)
			default:
				passed++
			}
		})
	}
	for _, g := range group.Groups {
		passed += run(t, g, c)
	}
	return passed
}
