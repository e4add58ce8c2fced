package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/even-keel/evenkeel/server/auth"
	"github.com/even-keel/evenkeel/server/patch"
)

// reconcileHeader is how a controller tells the reconcile that a write is part of.
const reconcileHeader = "Evenkeel-Reconcile"

// maxReconcile is the length of the longest id.
const maxReconcile = 128

// writer is what a request tells of who writes, beyond what objects show.
type writer struct {
	// fence is nil if the writes are under none.
	fence *fence
	// note is kept with each revision that is made; nil if nothing is.
	note []byte
}

type writerKey struct{}

func writerOf(ctx context.Context) writer {
	w, _ := ctx.Value(writerKey{}).(writer)
	return w
}

// note is kept with a revision, as JSON.
type note struct {
	Reconcile   string    `json:"reconcile,omitempty"`
	Manager     string    `json:"manager,omitempty"`
	User        string    `json:"user,omitempty"`
	Verb        string    `json:"verb,omitempty"`
	Subresource string    `json:"subresource,omitempty"`
	Time        time.Time `json:"time,omitzero"`
}

// readWriter has the request's writes carry what its headers tell, and refuses
// what is too late already.
func (c *call) readWriter() error {
	h := c.r.Header
	if h[fenceHeader] == nil && h[reconcileHeader] == nil || c.r.Method == http.MethodGet || c.r.Method == http.MethodHead {
		return nil
	}
	f, err := c.readFence(h[fenceHeader])
	if err != nil {
		return badHeader(fenceHeader, err)
	}
	n, err := c.readNote(h[reconcileHeader])
	if err != nil {
		return badHeader(reconcileHeader, err)
	}
	c.r = c.r.WithContext(context.WithValue(c.ctx(), writerKey{}, writer{f, n}))
	if f != nil {
		_, err = c.api.guard(c.ctx(), *f)
	}
	return err
}

func badHeader(name string, err error) error {
	return apierrors.NewBadRequest(fmt.Sprintf("the header %s cannot be read: %v", name, err))
}

var errSeveralHeaders = errors.New("there are several")

func (c *call) readFence(values []string) (*fence, error) {
	switch len(values) {
	case 0:
		return nil, nil
	case 1:
		f, err := parseFence(values[0])
		return &f, err
	}
	return nil, errSeveralHeaders
}

// readNote makes the note of a request's revisions.
func (c *call) readNote(values []string) ([]byte, error) {
	switch len(values) {
	case 0:
		return nil, nil
	case 1:
	default:
		return nil, errSeveralHeaders
	}
	id := values[0]
	unprintable := func(r rune) bool { return r < ' ' || r > '~' }
	if id == "" || len(id) > maxReconcile || strings.ContainsFunc(id, unprintable) {
		return nil, fmt.Errorf("it is not 1 to %d printable characters of ASCII", maxReconcile)
	}
	return json.Marshal(note{
		Reconcile: id, Manager: patch.ManagerName(c.query.Get("fieldManager"), c.r.UserAgent()),
		User: auth.UserOf(c.ctx()).Name, Verb: c.target.verb(c.r.Method, false), Subresource: c.target.subresource,
		Time: c.api.now().UTC(),
	})
}
