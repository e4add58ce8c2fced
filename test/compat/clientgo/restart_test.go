package clientgo

import (
	"fmt"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/test/compat/cluster"
)

// TestAcknowledgedWritesStay stops the server under load, twice: what it has
// acknowledged is there afterwards, as it was.
func TestAcknowledgedWritesStay(t *testing.T) {
	cluster.EachLasting(t, func(t *testing.T, e cluster.Engine) {
		s := e.Start(t, cluster.ExpectErrors)
		c := clientset(t, s.Admin())
		ns := newNamespace(t, c)
		maps := c.CoreV1().ConfigMaps(ns)
		acknowledged := map[string]string{}
		var mu sync.Mutex
		for round := range 2 {
			var all sync.WaitGroup
			for w := range 4 {
				all.Go(func() {
					for i := 0; ; i++ {
						cm, err := maps.Create(t.Context(), configMap(fmt.Sprintf("m-%d-%d-%d", round, w, i)), metav1.CreateOptions{})
						if err != nil {
							return // the server has stopped
						}
						mu.Lock()
						acknowledged[cm.Name] = cm.ResourceVersion
						mu.Unlock()
					}
				})
			}
			for enough := false; !enough; {
				mu.Lock()
				enough = len(acknowledged) >= 100*(round+1)
				mu.Unlock()
			}
			s.Stop()
			all.Wait()
			s.Restart()
		}
		found := map[string]string{}
		for _, cm := range must(maps.List(t.Context(), metav1.ListOptions{}))(t).Items {
			found[cm.Name] = cm.ResourceVersion
		}
		for name, rv := range acknowledged {
			if found[name] != rv {
				t.Errorf("%s was written at %s and is at %q", name, rv, found[name])
			}
		}
		t.Logf("%d acknowledged, %d found", len(acknowledged), len(found))
	})
}
