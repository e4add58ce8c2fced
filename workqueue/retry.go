package workqueue

// Retry adds a key whose work failed once more, after the longer of its own
// backoff and the wait that the rate of all retries asks for, and with the
// priority it ran at. Without causes it notes one of reason [Retry].
//
// The error is [ErrRetryLimit] for a key that was dropped, and thereby
// forgotten, or [ErrShutDown].
func (q *Queue[K]) Retry(key K, causes ...Cause) error {
	id := q.identify(key)
	n, err := q.countRetry(id)
	if err != nil {
		return err
	}
	backoff := q.opts.Backoff(n)
	if len(causes) == 0 {
		causes = []Cause{{Reason: Retry}}
	}
	now := q.now()
	q.lock()
	if q.shutDown {
		err = ErrShutDown
	} else {
		e := q.entryLocked(&id)
		after := max(backoff, q.bucket.take(now))
		q.addLocked(e, AddOptions{After: after, Priority: e.ranAt, Causes: causes}, now)
	}
	q.release()
	return err
}

// countRetry counts a retry and returns its number, or why there is none.
func (q *Queue[K]) countRetry(id identity[K]) (int, error) {
	q.lock()
	defer q.release()
	if q.shutDown {
		return 0, ErrShutDown
	}
	e := q.entryLocked(&id)
	if q.opts.MaxRetries > 0 && int(e.retries) >= q.opts.MaxRetries {
		q.counts.dropped++
		q.forgetLocked(e)
		return 0, ErrRetryLimit
	}
	if e.retries == 0 {
		q.retried.Add(1)
	}
	e.retries++
	q.counts.retries++
	return int(e.retries), nil
}

// Forget ends the count of a key's retries, mostly since its work succeeded.
// It neither adds nor removes the key.
func (q *Queue[K]) Forget(key K) {
	if q.retried.Load() == 0 {
		return
	}
	hash := q.entries.hash(key)
	q.lock()
	defer q.release()
	if e := q.entries.get(key, hash); e != nil {
		q.forgetLocked(e)
	}
}

// NumRequeues is how often a key was retried since it was last forgotten.
func (q *Queue[K]) NumRequeues(key K) int {
	hash := q.entries.hash(key)
	q.lock()
	defer q.release()
	if e := q.entries.get(key, hash); e != nil {
		return int(e.retries)
	}
	return 0
}

func (q *Queue[K]) forgetLocked(e *entry[K]) {
	if e.retries > 0 {
		e.retries = 0
		q.retried.Add(-1)
	}
	q.reclaimLocked(e)
}
