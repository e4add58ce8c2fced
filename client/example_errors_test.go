package client_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
)

func ExampleIsNotFound() {
	ctx, maps := colors()
	_, err := maps.Get(ctx, client.Key{Name: "mauve"})
	fmt.Println(client.IsNotFound(err))
	// Output: true
}

func ExampleIgnoreNotFound() {
	ctx, maps := colors()
	fmt.Println(client.IgnoreNotFound(maps.Delete(ctx, client.Key{Name: "mauve"})))
	// Output: <nil>
}

func ExampleIsAlreadyExists() {
	ctx, maps := colors()
	_, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "red"}})
	fmt.Println(client.IsAlreadyExists(err))
	// Output: true
}

// Who finds that somebody else was faster reads again, and decides anew.
func ExampleIsConflict() {
	ctx, maps := colors()
	stale, err := maps.Get(ctx, client.Key{Name: "red"})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := maps.Patch(ctx, client.Key{Name: "red"}, client.MergePatch(`{"data":{"hex":"f00"}}`)); err != nil {
		log.Fatal(err)
	}
	stale.Data = map[string]string{"hex": "e00"}
	_, err = maps.Update(ctx, stale)
	fmt.Println(client.IsConflict(err))
	// Output: true
}

func ExampleIsInvalid() {
	ctx, maps := colors()
	_, err := maps.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "mauve"},
		Data:       map[string]string{"no such/key": "0f0"},
	})
	fmt.Println(client.IsInvalid(err))
	// Output: true
}

func ExampleIsForbidden() {
	conn, err := client.Connect(theServer.ConfigFor("somebody")) // known, but may do nothing
	if err != nil {
		log.Fatal(err)
	}
	_, err = client.Of[*corev1.Secret](conn).In("default").Get(context.Background(), client.Key{Name: "password"})
	fmt.Println(client.IsForbidden(err))
	// Output: true
}

func ExampleIsUnauthorized() {
	cfg := theServer.ConfigFor("somebody")
	cfg.BearerToken = "no-such-token"
	conn, err := client.Connect(cfg)
	if err != nil {
		log.Fatal(err)
	}
	_, err = client.Of[*corev1.Secret](conn).In("default").Get(context.Background(), client.Key{Name: "password"})
	fmt.Println(client.IsUnauthorized(err))
	// Output: true
}

// answering returns the config maps of a server that has one answer to all.
func answering(status int, reason metav1.StatusReason, opts ...client.Option) (*client.Client[*corev1.ConfigMap], func()) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q}`, status, reason)
	}))
	conn, err := client.Connect(&rest.Config{Host: s.URL}, opts...)
	if err != nil {
		log.Fatal(err)
	}
	return client.Of[*corev1.ConfigMap](conn).In("default"), s.Close
}

// The client waits as long as the server asks it to, and tries again; here it is
// told not to.
func ExampleIsTooManyRequests() {
	maps, done := answering(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, client.Retries(0))
	defer done()
	_, err := maps.Get(context.Background(), client.Key{Name: "red"})
	fmt.Println(client.IsTooManyRequests(err))
	// Output: true
}

// A watch goes on from a revision of long ago.
func ExampleIsExpired() {
	maps, done := answering(http.StatusGone, metav1.StatusReasonExpired)
	defer done()
	for _, err := range maps.Watch(context.Background(), client.From("1")) {
		fmt.Println(client.IsExpired(err))
		break
	}
	// Output: true
}
