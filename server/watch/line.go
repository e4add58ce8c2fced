package watch

import "sync"

// A watcher in JSON is told of an event by a line, the same for all who see the
// object before and after the event. It is made once, and the lines of events that
// follow one another lie one behind the other in a page, so that several can be sent
// from there as one piece.
type lines struct {
	mu   sync.Mutex
	page []byte // what it has room for is not used yet
}

const (
	// A page is twice as large as the one before it.
	leastPage = 4 << 10
	mostPage  = 256 << 10
	// longestLine is the length up to which lines are made. Events keep their pages.
	longestLine = 32 << 10
	// aroundLine is the most that a line adds to an object.
	aroundLine = `{"type":"MODIFIED","object":}` + "\n"
)

// Kind says what an event is to who sees all objects.
func (e *Event) Kind() string {
	switch {
	case e.Object == nil:
		return "DELETED"
	case e.Previous == nil:
		return "ADDED"
	}
	return "MODIFIED"
}

// Line returns the event as a line of JSON, or nil if it is long or not one that
// watchers share. It must not be changed, nor appended to except by [Join].
func (e *Event) Line() []byte {
	if e.lines == nil {
		return nil
	}
	if line := e.line.Load(); line != nil {
		return *line
	}
	return e.lines.add(e)
}

// add makes the line of an event, unless somebody has.
func (l *lines) add(e *Event) []byte {
	o := e.Object
	if o == nil {
		o = e.Previous.At(e.Revision)
	}
	if o.Len() > longestLine {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if line := e.line.Load(); line != nil {
		return *line
	}
	if need := o.Len() + len(aroundLine); cap(l.page)-len(l.page) < need {
		size := min(max(2*cap(l.page), leastPage), mostPage)
		l.page = make([]byte, 0, max(size, need))
	}
	from := len(l.page)
	l.page = AppendLine(l.page, e.Kind(), o)
	line := l.page[from:]
	e.line.Store(&line)
	return line
}

// AppendLine appends an event as a line of JSON.
func AppendLine(dst []byte, kind string, o *Object) []byte {
	dst = append(dst, `{"type":"`...)
	dst = append(dst, kind...)
	dst = append(dst, `","object":`...)
	return append(o.AppendJSON(dst), "}\n"...)
}

// Join returns two lines or runs of lines as one, if the second lies behind the
// first.
func Join(run, line []byte) ([]byte, bool) {
	n := len(run)
	if len(line) == 0 || cap(run)-n < len(line) || &run[:n+1][n] != &line[0] {
		return run, false
	}
	return run[:n+len(line)], true
}
