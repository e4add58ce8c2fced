package pods_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/controllers/pods"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func readyPod(status corev1.ConditionStatus, since time.Time) *corev1.Pod {
	return &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
		{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.NewTime(since)},
	}}}
}

func TestAPodIsAvailableWhenItHasBeenReadyForLongEnough(t *testing.T) {
	for name, c := range map[string]struct {
		pod     *corev1.Pod
		seconds int32
		in      time.Duration
		ok      bool
	}{
		"it is not ready":                  {readyPod(corev1.ConditionFalse, noon), 0, 0, false},
		"it does not say":                  {&corev1.Pod{}, 0, 0, false},
		"it is ready, which is enough":     {readyPod(corev1.ConditionTrue, noon), 0, 0, true},
		"it is ready, for an unknown time": {readyPod(corev1.ConditionTrue, time.Time{}), 5, 0, false},
		"it has just become so":            {readyPod(corev1.ConditionTrue, noon), 5, 5 * time.Second, true},
		"it has been so for a while":       {readyPod(corev1.ConditionTrue, noon.Add(-3*time.Second)), 5, 2 * time.Second, true},
		"it has been so for long enough":   {readyPod(corev1.ConditionTrue, noon.Add(-5*time.Second)), 5, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			in, ok := pods.AvailableIn(c.pod, c.seconds, noon)
			if in != c.in || ok != c.ok || pods.Available(c.pod, c.seconds, noon) != (ok && in == 0) {
				t.Errorf("in %v, %v", in, ok)
			}
		})
	}
}

func TestWhatCannotBeDoneIsTriedOnce(t *testing.T) {
	var calls atomic.Int32
	refused := errors.New("refused")
	if err := pods.Each(1000, func(int) error { calls.Add(1); return refused }); !errors.Is(err, refused) || calls.Load() != 1 {
		t.Errorf("%d calls, and %v", calls.Load(), err)
	}
	calls.Store(0)
	if err := pods.Each(1000, func(i int) error {
		if calls.Add(1); i >= 10 {
			return refused
		}
		return nil
	}); !errors.Is(err, refused) || calls.Load() != 15 { // 1, 2, 4 and 8
		t.Errorf("%d calls, and %v", calls.Load(), err)
	}
}

func TestAllIsDoneOnce(t *testing.T) {
	var done [777]atomic.Int32
	if err := pods.Each(len(done), func(i int) error { done[i].Add(1); return nil }); err != nil {
		t.Fatal(err)
	}
	for i := range done {
		if n := done[i].Load(); n != 1 {
			t.Errorf("%d is done %d times", i, n)
		}
	}
}

func ExampleMessage() {
	err := fmt.Errorf("create pod default/web-0: %w", apierrors.NewBadRequest("no such volume"))
	fmt.Println(pods.Message(err))
	// Output:
	// no such volume
}
