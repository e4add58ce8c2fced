package evenkeeltest

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"testing"

	"k8s.io/client-go/rest"
)

// Handle answers a request, or hands it on to the server.
type Handle func(w http.ResponseWriter, r *http.Request, server http.Handler)

// InFront puts something in front of the server until the test ends: to count
// requests, to change answers, to fail. It returns how the administrator reaches
// the server that way.
func (s *Server) InFront(t testing.TB, handle Handle) *rest.Config {
	t.Helper()
	proxy, err := s.proxy()
	if err != nil {
		t.Fatalf("evenkeeltest: put something in front of the server: %v", err)
	}
	network := &pipes{}
	l := network.listen()
	ctx, cancel := context.WithCancel(context.Background())
	front := &http.Server{
		Handler:     http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handle(w, r, proxy) }),
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    proxy.ErrorLog,
	}
	served := make(chan error, 1)
	go func() { served <- front.Serve(l) }()
	t.Cleanup(func() {
		cancel() // watches would go on for ever
		if err := front.Shutdown(context.Background()); err != nil {
			t.Errorf("evenkeeltest: end what is in front of the server: %v", err)
		}
		<-served
	})
	return &rest.Config{Host: "http://" + l.Addr().String(), Dial: network.dial}
}

// proxy hands requests on as the administrator's.
func (s *Server) proxy() (*httputil.ReverseProxy, error) {
	to, err := url.Parse(s.url())
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(s.Config())
	if err != nil {
		return nil, err
	}
	return &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport:     transport,
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0), // clients that go are no news
	}, nil
}
