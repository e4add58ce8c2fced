// Package cluster is for the tests of the examples: it has each run against our
// server and, unchanged, against kube-apiserver.
package cluster

import (
	"context"
	"errors"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/test/peer"
)

// Cluster is an API server, without any controllers.
type Cluster struct {
	Config     *rest.Config
	Kubeconfig string
	Conn       *client.Conn
}

// Each runs a test against our server, and against kube-apiserver if that has been
// built; otherwise it says so.
func Each(t *testing.T, test func(t *testing.T, c *Cluster)) {
	t.Run("evenkeel", func(t *testing.T) {
		env := evenkeeltest.Start(t)
		test(t, &Cluster{env.Config(), env.Kubeconfig(), env.Conn()})
	})
	t.Run("kube-apiserver", func(t *testing.T) {
		s := peer.Start(t)
		conn, err := client.Connect(s.Config())
		if err != nil {
			t.Fatal(err)
		}
		test(t, &Cluster{s.Config(), s.Kubeconfig(t), conn})
	})
}

// Eventually waits until check has nothing to say about an object, and returns it.
// The object is zero while it does not exist.
func Eventually[T client.Object](t *testing.T, objects *client.Client[T], key client.Key, check func(T) error) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), evenkeeltest.DefaultPatience)
	defer cancel()
	var now T
	last, complete := errors.New("the server has told nothing"), false
	for event, err := range objects.In(key.Namespace).Watch(ctx, client.Field("metadata.name", key.Name), client.InitialEvents()) {
		if err != nil {
			t.Fatalf("%T %s: %v; when it was last seen: %v", now, key, err, last)
		}
		switch event.Type {
		case client.Added, client.Modified:
			now = event.Object
		case client.Deleted:
			now = *new(T)
		case client.Bookmark:
			complete = complete || event.InitialEnd()
		}
		if !complete {
			continue
		}
		if last = check(now); last == nil {
			return now
		}
	}
	t.Fatalf("%T %s: %v", now, key, last)
	return now
}

// Recorded waits for an event about an object, as its type, reason and note.
func Recorded(t *testing.T, conn *client.Conn, about client.Key, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), evenkeeltest.DefaultPatience)
	defer cancel()
	var got []string
	for event, err := range client.Of[*eventsv1.Event](conn).In(about.Namespace).Watch(ctx, client.InitialEvents()) {
		if err != nil {
			t.Fatalf("%q is not recorded about %s, but %q: %v", want, about, got, err)
		}
		if e := event.Object; event.Type == client.Added && e.Regarding.Name == about.Name {
			got = append(got, e.Type+" "+e.Reason+" "+e.Note)
			if got[len(got)-1] == want {
				return
			}
		}
	}
	t.Fatalf("%q is not recorded about %s, but %q", want, about, got)
}
