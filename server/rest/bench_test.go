package rest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// BenchmarkUpdate replaces an object again and again, without a network and
// without a disk.
func BenchmarkUpdate(b *testing.B) {
	for name, body := range map[string]string{
		"ConfigMap": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"u","labels":{"app":"bench"},"annotations":{"bench/mark":"%d"}},"data":{"key":"` + strings.Repeat("x", 850) + `"}}`,
		"Pod":       `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"u","labels":{"app":"bench"},"annotations":{"bench/mark":"%d"}},"spec":{"containers":[{"name":"main","image":"registry.example/app:1.2.3","env":[{"name":"PADDING","value":"` + strings.Repeat("x", 420) + `"}],"ports":[{"containerPort":8080,"name":"http"}],"resources":{"requests":{"cpu":"100m","memory":"64Mi"},"limits":{"memory":"128Mi"}}}]}}`,
	} {
		b.Run(name, func(b *testing.B) {
			api := newAPI(b)
			path := "/api/v1/namespaces/default/" + strings.ToLower(name) + "s"
			mustCreate(b, api, path, fmt.Sprintf(body, 0))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if got := send(api, "PUT", path+"/u", "application/json", "", fmt.Appendf(nil, body, i+1)); got.Code != http.StatusOK {
					b.Fatal(got.Body)
				}
			}
		})
	}
}
