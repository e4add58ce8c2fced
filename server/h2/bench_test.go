package h2

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// Each is measured beside net/http's own HTTP/2.
func Benchmark(b *testing.B) {
	short, long := make([]byte, 1<<10), make([]byte, 8<<20)
	for name, tt := range map[string]struct{ sends, gets []byte }{
		"get":    {nil, short},
		"list":   {nil, long},
		"update": {short, short},
		"upload": {long[:3<<20], nil},
	} {
		h := func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = w.Write(tt.gets)
		}
		b.Run(name+"/h2", func(b *testing.B) {
			measure(b, h, tt.sends, func(s *http.Server) { Configure(s, 1000) })
		})
		b.Run(name+"/net-http", func(b *testing.B) {
			measure(b, h, tt.sends, func(*http.Server) {})
		})
	}
}

func measure(b *testing.B, h http.HandlerFunc, body []byte, configure func(*http.Server)) {
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	configure(s.Config)
	s.StartTLS()
	defer s.Close()
	client := s.Client()
	defer client.CloseIdleConnections()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r, err := client.Post(s.URL, "application/json", bytes.NewReader(body))
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			_ = r.Body.Close()
		}
	})
}
