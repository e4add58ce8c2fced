package evenkeeltest_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
)

func TestMain(m *testing.M) { evenkeeltest.Main(m) }

// TestAWholeServerRunsInABubble: an hour passes at once, and synctest finds every
// goroutine that is left behind.
func TestAWholeServerRunsInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := evenkeeltest.Start(t, evenkeeltest.Bubble())
		env.Apply(widgets)
		maps := client.Of[*corev1.ConfigMap](env.Conn())
		created, err := maps.Create(t.Context(), config("a"))
		if err != nil {
			t.Fatal(err)
		}
		if !created.CreationTimestamp.Time.Equal(time.Now().Truncate(time.Second)) {
			t.Errorf("it was created at %s, which is not the bubble's time", created.CreationTimestamp)
		}
		go func() {
			time.Sleep(20 * time.Second)
			if err := maps.Delete(t.Context(), client.KeyOf(created)); err != nil {
				t.Error(err)
			}
		}()
		evenkeeltest.EventuallyGone[*corev1.ConfigMap](env, client.KeyOf(created))
		time.Sleep(time.Hour)
		if _, _, err := maps.All(t.Context()); err != nil {
			t.Errorf("after an hour: %v", err)
		}
		env.Restart(func() { time.Sleep(time.Minute) })
		if _, _, err := maps.All(t.Context()); err != nil {
			t.Errorf("after a restart: %v", err)
		}
	})
}

// The first request after a cut goes well: a connection that breaks before anything
// notices is one that the client replaces.
func TestConnectionsBreakInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := evenkeeltest.Start(t, evenkeeltest.Bubble())
		for range 100 {
			env.Cut()
		}
	})
}

func TestABubbleHasUsersAndNoKubeconfig(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := evenkeeltest.Start(t, evenkeeltest.Bubble())
		maps, err := client.New[*corev1.ConfigMap](env.ConfigFor("jane", "developers"))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := maps.All(t.Context()); !client.IsForbidden(err) {
			t.Errorf("jane may list: %v", err)
		}
		if err := env.WriteKubeconfig(filepath.Join(t.TempDir(), "kubeconfig")); err == nil {
			t.Error("there is a kubeconfig of a network that is not there")
		}
	})
}

func TestTheKubeconfigIsTheAdministrators(t *testing.T) {
	t.Parallel()
	env := evenkeeltest.Start(t)
	cfg, err := client.LoadConfig(client.ConfigOptions{Kubeconfig: env.Kubeconfig()})
	if err != nil {
		t.Fatal(err)
	}
	maps, err := client.New[*corev1.ConfigMap](cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Create(t.Context(), config("a")); err != nil {
		t.Error(err)
	}
}

func TestAServerIsStoppedAndClosed(t *testing.T) {
	for name, opts := range map[string][]evenkeeltest.Option{"tcp": nil, "pipes": {evenkeeltest.Bubble()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := evenkeeltest.Open(opts...)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Start(); err != nil {
				t.Errorf("to start what runs: %v", err)
			}
			if err := s.Stop(); err != nil {
				t.Error(err)
			}
			if err := s.Stop(); !errors.Is(err, evenkeeltest.ErrStopped) {
				t.Errorf("to stop what does not run: %v", err)
			}
			if err := s.Compact(t.Context()); !errors.Is(err, evenkeeltest.ErrStopped) {
				t.Errorf("to compact what does not run: %v", err)
			}
			s.Cut() // nothing
			for range 2 {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
			if err := s.Start(); err == nil {
				t.Error("it starts after it was closed")
			}
		})
	}
}

func TestCompactForgetsHistory(t *testing.T) {
	t.Parallel()
	env := evenkeeltest.Start(t)
	maps := client.Of[*corev1.ConfigMap](env.Conn()).In("default")
	old, err := maps.Create(t.Context(), config("a"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Create(t.Context(), config("b")); err != nil {
		t.Fatal(err)
	}
	for event, err := range maps.Watch(t.Context(), client.From(old.ResourceVersion)) { // and before it is forgotten, there is history
		if err != nil || event.Object.Name != "b" {
			t.Fatalf("%v, %v", event, err)
		}
		break
	}
	for range 2 {
		if err := env.Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for event, err := range maps.Watch(t.Context(), client.From(old.ResourceVersion)) {
		if !client.IsExpired(err) {
			t.Errorf("a watch from what is forgotten has %v, %v", event, err)
		}
		break
	}
}

func TestDefinitionsAreServedFromTheStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "widgets.yaml"), []byte(widgets), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := evenkeeltest.Open(evenkeeltest.CRDs(dir))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := evenkeeltest.Open(evenkeeltest.CRDs(filepath.Join(dir, "none"))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
}

// TestCloseEndsClientsToo: nobody waits for requests that never end.
func TestCloseEndsClientsToo(t *testing.T) {
	t.Parallel()
	s, err := evenkeeltest.Open()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := client.Connect(s.Config(), client.Retries(0))
	if err != nil {
		t.Fatal(err)
	}
	ended, watching := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for event, err := range client.Of[*corev1.ConfigMap](conn).Watch(context.Background(), client.InitialEvents()) {
			if err == nil && event.InitialEnd() {
				close(watching)
			}
		}
	}()
	<-watching
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	<-ended
	if _, err := conn.Get(t.Context(), "/readyz"); err == nil {
		t.Error("the server answers")
	}
}
