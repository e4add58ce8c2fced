package cache

import (
	"runtime"
	"sync/atomic"
)

// writers counts those who are writing to a store.
//
// Readers take no lock, so nothing but the scheduler lets a writer go on where
// readers keep every processor busy: ten of them that list in a loop leave it one
// eleventh of the time, in turns of 10 ms, and the cache falls behind the server.
// So whoever has read much lets others run, if there is a writer among them. It
// waits for nobody: it goes on as soon as a processor is free.
type writers struct{ n atomic.Int32 }

// longRead is how many objects a read looks at before it gives way.
const longRead = 1024

// giveWay lets others run if there is a writer.
func (w *writers) giveWay() {
	if w != nil && w.n.Load() > 0 {
		runtime.Gosched()
	}
}
