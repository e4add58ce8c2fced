package h2_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/even-keel/evenkeel/server/h2"
)

func ExampleConfigure() {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "hello by %s", r.Proto)
	}))
	s.EnableHTTP2 = true
	h2.Configure(s.Config, 100)
	s.StartTLS()
	defer s.Close()

	answer, err := s.Client().Get(s.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = answer.Body.Close() }()
	text, _ := io.ReadAll(answer.Body)
	fmt.Println(string(text))
	// Output: hello by HTTP/2.0
}
