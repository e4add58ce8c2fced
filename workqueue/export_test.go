package workqueue

const MaxSpares = maxSpares

// Known is how many keys a queue knows anything of, and for how many more it
// keeps room.
func Known[K comparable](q *Queue[K]) (known, spare int) {
	q.lock()
	defer q.release()
	return q.entries.n, q.spares.n
}
