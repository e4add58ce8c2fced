package workqueue_test

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/even-keel/evenkeel/workqueue"
)

func ExampleWriteMetrics() {
	q := workqueue.New(workqueue.Options[string]{})
	defer q.ShutDown()
	q.Add("a")
	q.Add("b")
	var text strings.Builder
	if err := workqueue.WriteMetrics(&text, map[string]workqueue.Stats{"foo": q.Stats()}); err != nil {
		panic(err)
	}
	head, _, _ := strings.Cut(text.String(), "# HELP workqueue_retries_total")
	_, _ = os.Stdout.WriteString(head)
	// Output:
	// # HELP workqueue_depth How many keys are ready, or will be when their worker is done.
	// # TYPE workqueue_depth gauge
	// workqueue_depth{controller="foo",name="foo"} 2
	// # HELP workqueue_adds_total How many keys became ready.
	// # TYPE workqueue_adds_total counter
	// workqueue_adds_total{controller="foo",name="foo"} 2
}

func TestMetricsAreThoseOfClientGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New(workqueue.Options[string]{})
		defer q.ShutDown()
		q.Add("a")
		time.Sleep(2 * time.Second)
		item, ok := q.Get(t.Context())
		if !ok {
			t.Fatal("there is nothing to do")
		}
		time.Sleep(30 * time.Second)
		var text strings.Builder
		if err := workqueue.WriteMetrics(&text, map[string]workqueue.Stats{"foo": q.Stats()}); err != nil {
			t.Fatal(err)
		}
		q.Done(item)
		for _, line := range []string{
			`workqueue_depth{controller="foo",name="foo"} 0`,
			`workqueue_unfinished_work_seconds{controller="foo",name="foo"} 30`,
			`workqueue_longest_running_processor_seconds{controller="foo",name="foo"} 30`,
			`workqueue_queue_duration_seconds_bucket{controller="foo",name="foo",le="1"} 0`,
			`workqueue_queue_duration_seconds_bucket{controller="foo",name="foo",le="10"} 1`,
			`workqueue_queue_duration_seconds_sum{controller="foo",name="foo"} 2`,
			`workqueue_queue_duration_seconds_count{controller="foo",name="foo"} 1`,
			`workqueue_work_duration_seconds_bucket{controller="foo",name="foo",le="+Inf"} 0`,
		} {
			if !strings.Contains(text.String(), line+"\n") {
				t.Errorf("there is no line %q", line)
			}
		}
	})
}
