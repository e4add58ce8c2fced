package workqueue_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/even-keel/evenkeel/workqueue"
)

func TestCauses(t *testing.T) {
	pod := func(name, old, new, writer string) workqueue.Cause {
		return workqueue.Cause{Reason: workqueue.Event, Kind: "Pod", Object: name, Old: old, New: new, Writer: writer}
	}
	counted := func(n int, c workqueue.Cause) workqueue.Cause {
		c.Count = n
		return c
	}
	resync := workqueue.Cause{Reason: workqueue.Resync}
	tests := map[string]struct {
		add  []workqueue.Cause
		want []workqueue.Cause
		lost int
	}{
		"none": {},
		"different ones stand side by side": {
			add:  []workqueue.Cause{pod("a", "1", "2", "x"), resync},
			want: []workqueue.Cause{counted(1, pod("a", "1", "2", "x")), counted(1, resync)},
		},
		"changes of one object become one": {
			add:  []workqueue.Cause{pod("a", "1", "2", "x"), resync, pod("a", "2", "5", "y")},
			want: []workqueue.Cause{counted(2, pod("a", "1", "5", "y")), counted(1, resync)},
		},
		"merged ones are counted whole": {
			add:  []workqueue.Cause{counted(3, resync), counted(4, resync)},
			want: []workqueue.Cause{counted(7, resync)},
		},
		"one name is not one object": {
			add: []workqueue.Cause{
				{Reason: workqueue.Event, Kind: "Pod", Object: "a"},
				{Reason: workqueue.Event, Kind: "Node", Object: "a"},
			},
			want: []workqueue.Cause{
				{Reason: workqueue.Event, Kind: "Pod", Object: "a", Count: 1},
				{Reason: workqueue.Event, Kind: "Node", Object: "a", Count: 1},
			},
		},
		"the last note stands": {
			add: []workqueue.Cause{
				{Reason: workqueue.Retry, Note: "timeout"}, {Reason: workqueue.Retry, Note: "conflict"}, {Reason: workqueue.Requeue},
			},
			want: []workqueue.Cause{
				{Reason: workqueue.Retry, Note: "conflict", Count: 2}, {Reason: workqueue.Requeue, Count: 1},
			},
		},
		"those without room are counted": {
			add: []workqueue.Cause{
				pod("a", "", "1", ""), pod("b", "", "1", ""), pod("c", "", "1", ""), pod("d", "", "1", ""),
				pod("b", "1", "2", ""),
			},
			want: []workqueue.Cause{
				counted(1, pod("a", "", "1", "")), counted(2, pod("b", "", "2", "")),
			},
			lost: 2,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			q := workqueue.New(options{MaxCauses: 2})
			q.Add("key")
			for _, c := range test.add {
				q.Add("key", c)
			}
			got := get(t, q)
			if diff := cmp.Diff(test.want, got.Causes); diff != "" {
				t.Errorf("causes (-want +got):\n%s", diff)
			}
			if got.LostCauses != test.lost || q.Stats().LostCauses != uint64(test.lost) {
				t.Errorf("lost %d, in all %d; want %d", got.LostCauses, q.Stats().LostCauses, test.lost)
			}
			q.Add("key", workqueue.Cause{Reason: workqueue.Manual})
			if diff := cmp.Diff(test.want, got.Causes); diff != "" {
				t.Errorf("an item's causes after the next add (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCauseString(t *testing.T) {
	tests := map[string]workqueue.Cause{
		"event Pod default/web 41->44 by kubelet (3 times)": {
			Reason: workqueue.Event, Kind: "Pod", Object: "default/web", Old: "41", New: "44", Writer: "kubelet", Count: 3,
		},
		"event Node n1 7->":         {Reason: workqueue.Event, Kind: "Node", Object: "n1", Old: "7"},
		"retry: connection refused": {Reason: workqueue.Retry, Note: "connection refused", Count: 1},
	}
	for want, cause := range tests {
		if got := cause.String(); got != want {
			t.Errorf("String() = %q, want %q", got, want)
		}
	}
}
