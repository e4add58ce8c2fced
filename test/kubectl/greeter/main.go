// Greeter is a small program that pods run in the scripts: it greets over HTTP, tells
// its log so, says how it is, and ends in order.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", greet)
	mux.HandleFunc("GET /healthz", health)
	s := &http.Server{Addr: os.Getenv("LISTEN"), Handler: mux}
	done := make(chan error, 1)
	go func() { done <- s.ListenAndServe() }()
	fmt.Printf("%s greets at %s\n", os.Getenv("POD_NAME"), s.Addr)
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	fmt.Println("goodbye")
	err := s.Shutdown(context.Background())
	if served := <-done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

func greet(w http.ResponseWriter, r *http.Request) {
	name, err := os.ReadFile(os.Getenv("CONFIG") + "/name")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Println("greeted", r.RemoteAddr)
	_, _ = io.WriteString(w, os.Getenv("GREETING")+", "+string(name)+"\n")
}

// health is good unless the file sick is there.
func health(w http.ResponseWriter, _ *http.Request) {
	if _, err := os.Stat("sick"); err == nil {
		http.Error(w, "I feel sick", http.StatusInternalServerError)
	}
}
