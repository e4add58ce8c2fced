package rest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/even-keel/evenkeel/server/watch"
	"github.com/even-keel/evenkeel/storage"
)

// WritesPath is where [API.ServeWrites] answers.
const WritesPath = "/debug/evenkeel/writes"

// writeList is the answer: the newest first.
type writeList struct {
	// Oldest is the revision after which history is whole.
	Oldest storage.Revision `json:"oldest"`
	Writes []written        `json:"writes"`
}

// written is one revision. Who wrote it is known if the request told.
type written struct {
	Revision storage.Revision `json:"revision"`
	// Previous is the object's revision before, zero if there was none.
	Previous  storage.Revision `json:"previous,omitempty"`
	Resource  string           `json:"resource"`
	Namespace string           `json:"namespace,omitempty"`
	Name      string           `json:"name"`
	// Type is that of the watch event, "" if history no longer has it.
	Type string `json:"type,omitempty"`
	note
}

// ServeWrites tells which writes there were, and of which reconcile: that of a
// revision, or those of an object, a resource or a reconcile, the newest first.
// It reads the store's log from the oldest revision on.
func (a *API) ServeWrites(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		SendError(w, r, errMethodNotAllowed())
		return
	}
	q, err := parseWritesQuery(r.URL.Query())
	if err != nil {
		SendError(w, r, apierrors.NewBadRequest(err.Error()))
		return
	}
	list, err := a.writes(r.Context(), q)
	if err != nil {
		SendError(w, r, err)
		return
	}
	w.Header().Set("Content-Type", mediaJSON)
	_ = json.NewEncoder(w).Encode(list) // whoever is gone needs no answer
}

// writesQuery says which writes are wanted. Empty fields fit all.
type writesQuery struct {
	revision                  storage.Revision
	resource, namespace, name string
	reconcile                 string
	limit                     int
}

// How many writes are told.
const (
	defaultWrites = 100
	maxWrites     = 1000
)

func parseWritesQuery(v url.Values) (writesQuery, error) {
	q := writesQuery{
		resource: v.Get("resource"), namespace: v.Get("namespace"), name: v.Get("name"), reconcile: v.Get("reconcile"),
		limit: defaultWrites,
	}
	if q.resource == "" && (q.namespace != "" || q.name != "") {
		return q, errors.New("name the resource too, such as pods or deployments.apps")
	}
	if s := v.Get("revision"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil || n == 0 {
			return q, fmt.Errorf("%q is no revision", s)
		}
		q.revision = storage.Revision(n)
	}
	if s := v.Get("limit"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > maxWrites {
			return q, fmt.Errorf("limit %q is not between 1 and %d", s, maxWrites)
		}
		q.limit = n
	}
	return q, nil
}

// prefix is what the keys of all that is wanted begin with.
func (q writesQuery) prefix() storage.Key {
	switch {
	case q.name != "":
		return watch.Key(q.resource, q.namespace, q.name)
	case q.namespace != "":
		return watch.Key(q.resource, q.namespace, "")
	case q.resource != "":
		return watch.Prefix(q.resource)
	}
	return ""
}

func (q writesQuery) fits(w written) bool {
	return (q.revision == 0 || w.Revision == q.revision) &&
		(q.name == "" || w.Name == q.name && w.Namespace == q.namespace) &&
		(q.reconcile == "" || w.Reconcile == q.reconcile)
}

// writes reads the log. If the store forgets its beginning meanwhile, it begins
// again.
func (a *API) writes(ctx context.Context, q writesQuery) (writeList, error) {
	for {
		list, err := a.readWrites(ctx, q)
		if !errors.Is(err, storage.ErrCompacted) {
			return list, err
		}
	}
}

func (a *API) readWrites(ctx context.Context, q writesQuery) (writeList, error) {
	head, err := a.store.Head(ctx)
	if err != nil {
		return writeList{}, err
	}
	list := writeList{Writes: []written{}}
	if list.Oldest, err = a.oldest(ctx, head); err != nil {
		return list, err
	}
	after := list.Oldest
	switch {
	case q.revision > head:
		return list, tooLarge(q.revision, head)
	case q.revision != 0 && q.revision <= list.Oldest:
		return list, expired(fmt.Sprintf("revision %d is no longer known: the oldest is %d", q.revision, list.Oldest+1))
	case q.revision != 0:
		after, head = q.revision-1, q.revision
	}
	if list.Writes, err = a.collectWrites(ctx, q, after, head); err != nil {
		return list, err
	}
	if q.name != "" && q.revision == 0 {
		if list.Writes, err = a.addStanding(ctx, q, list.Writes); err != nil {
			return list, err
		}
	}
	slices.SortFunc(list.Writes, func(a, b written) int { return cmp.Compare(b.Revision, a.Revision) })
	return list, nil
}

// collectWrites returns the last of the writes that fit, after one revision and up
// to another.
func (a *API) collectWrites(ctx context.Context, q writesQuery, after, through storage.Revision) ([]written, error) {
	log := a.store.Watch(q.prefix(), after)
	defer log.Close()
	log.RequestProgress()
	found := []written{}
	for after < through {
		batch, err := log.Next(ctx)
		if err != nil {
			return nil, err
		}
		for _, e := range batch.Events {
			if w := writtenBy(e); e.Revision <= through && w.Resource != portClaims && q.fits(w) {
				found = append(found, w)
			}
		}
		found = found[max(0, len(found)-q.limit):]
		after = batch.Through
	}
	return found, nil
}

// addStanding adds the write that an object is of, if history begins after it.
func (a *API) addStanding(ctx context.Context, q writesQuery, found []written) ([]written, error) {
	e, err := a.store.Get(ctx, q.prefix())
	if errors.Is(err, storage.ErrNotFound) {
		return found, nil
	}
	if err != nil {
		return nil, err
	}
	w := newWritten(e.Key, e.Revision, watch.NoteOf(e.Value))
	known := func(other written) bool { return other.Revision >= w.Revision }
	if slices.ContainsFunc(found, known) || !q.fits(w) {
		return found, nil
	}
	return append(found, w), nil
}

// writtenBy tells of an event.
func writtenBy(e storage.Event) written {
	kept := watch.NoteOf(e.Value)
	if e.Deleted {
		kept = e.Value
	}
	w := newWritten(e.Key, e.Revision, kept)
	w.Previous = e.Previous.Revision
	switch {
	case e.Deleted:
		w.Type = string(apiwatch.Deleted)
	case e.Previous.Exists():
		w.Type = string(apiwatch.Modified)
	default:
		w.Type = string(apiwatch.Added)
	}
	return w
}

func newWritten(key storage.Key, rev storage.Revision, kept []byte) written {
	w := written{Revision: rev}
	parts := strings.SplitN(string(key), "/", 3)
	w.Resource = parts[0]
	if len(parts) == 3 {
		w.Namespace, w.Name = parts[1], parts[2]
	}
	if len(kept) > 0 {
		_ = json.Unmarshal(kept, &w.note) // another version's may say less
	}
	return w
}

// oldest finds the first revision whose state the store still has, by asking for
// states: it takes as many reads as the newest has bits.
func (a *API) oldest(ctx context.Context, head storage.Revision) (storage.Revision, error) {
	low, high := storage.Revision(1), head
	for low < high {
		middle := low + (high-low)/2
		_, err := a.store.Scan(ctx, storage.Range{Prefix: "\x00", Limit: 1, Revision: middle})
		switch {
		case err == nil:
			high = middle
		case errors.Is(err, storage.ErrCompacted):
			low = middle + 1
		default:
			return 0, err
		}
	}
	return high, nil
}
