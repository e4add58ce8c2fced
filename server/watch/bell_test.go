package watch

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestTheBellIsRungAtOnceAndThenNotTooOften(t *testing.T) {
	for name, cursors := range map[string]int{"one seat": 3, "many seats": 50} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var b bell
				var seats []*seat
				for range cursors {
					seats = append(seats, b.take())
				}
				ring := func() {
					mu.Lock()
					b.ring(&mu)
					mu.Unlock()
					synctest.Wait()
				}
				rung := func() []chan struct{} {
					mu.Lock()
					defer mu.Unlock()
					var out []chan struct{}
					for _, s := range seats {
						out = append(out, s.rung)
					}
					return out
				}
				heard := func(before []chan struct{}) bool {
					n := 0
					for _, c := range before {
						select {
						case <-c:
							n++
						default:
						}
					}
					if n != 0 && n != len(before) {
						t.Errorf("%d of %d heard the bell", n, len(before))
					}
					return n > 0
				}

				time.Sleep(time.Hour)
				before := rung()
				ring()
				if !heard(before) {
					t.Error("the first event had to wait")
				}
				before = rung()
				for range 10 {
					ring()
				}
				if heard(before) {
					t.Error("the next event did not wait")
				}
				time.Sleep(longestPause)
				synctest.Wait()
				if !heard(before) {
					t.Error("the next event was never told")
				}
				if before = rung(); heard(before) {
					t.Error("ten events rang more than once")
				}
			})
		})
	}
}

func TestSeatsAreGivenUp(t *testing.T) {
	var b bell
	var seats []*seat
	for range 100 {
		seats = append(seats, b.take())
	}
	for _, s := range seats {
		b.leave(s)
	}
	if len(b.seats) != 0 {
		t.Errorf("%d seats are left", len(b.seats))
	}
}
