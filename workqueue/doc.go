// Package workqueue queues keys that need work: the heart of a controller,
// between what tells of changes and what acts on them.
//
// A [Queue] keeps the promises of client-go's: a key is in it once, is with one
// worker at a time, and comes again if it was added meanwhile. So a worker looks
// at the newest state of a key and never meets another at it, and a hundred
// changes of an object are one piece of work.
//
// # Work
//
// [Queue.Add] asks for work on a key, and a worker is a loop over [Queue.Items]:
//
//	q := workqueue.New(workqueue.Options[string]{MaxRetries: 5})
//	for item := range q.Items(ctx) {
//		err := reconcile(ctx, item.Key)
//		if err == nil {
//			q.Forget(item.Key)
//		} else if q.Retry(item.Key) != nil {
//			log.Printf("%s: giving up: %v", item.Key, err)
//		}
//	}
//
// Who cannot write a loop calls [Queue.Get] and, without fail, [Queue.Done].
//
// # Order
//
// [Queue.AddWith] delays a key or gives it a priority. Of two adds of a key the
// earlier time and the higher priority win. [Options.Group] names a group for a
// key, say its namespace; groups take turns, so that none waits for the backlog
// of another. Nothing starves: the key that has been ready for longest is
// passed over [Options.Patience] times in a row and no more.
// [Options.Debounce] waits until the changes of a key have settled.
//
// # Failure
//
// [Queue.Retry] adds a key again after a backoff that doubles from 5 ms to
// 1,000 s, and later than that if all keys together fail at more than ten a
// second after the first hundred. [Queue.Forget] ends the count of a key's
// failures. At [Options.MaxRetries] Retry drops the key and says so.
//
// # Reasons
//
// Adds carry a [Cause]. Those of one key are merged, at most
// [Options.MaxCauses] of them, and handed to the worker with the key: every
// piece of work knows why it is done.
//
// # The end, and the view from outside
//
// [Queue.ShutDown] takes no more keys; [Queue.Drain] also waits until the
// workers are done. [Queue.Stats] has the figures behind client-go's
// workqueue_* metrics and [Queue.Snapshot] what the queue holds.
//
// Times come from package time; test code that uses a queue under
// testing/synctest.
package workqueue
