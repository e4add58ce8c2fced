package leader

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/even-keel/evenkeel/client"
)

const (
	// FenceHeader is the header by which a write tells its [Fence].
	FenceHeader = "Evenkeel-Fence"
	// CauseFenced is the cause in the Status of a write that its fence refuses.
	CauseFenced metav1.CauseType = "FenceLost"
)

// Fence names one time of leadership. A server that knows it does a write that
// carries it only while the lease of that UID is held by Holder with that number
// of transitions: what a deposed leader sent late is refused, whatever its clock
// says.
type Fence struct {
	Namespace, Name string
	UID             types.UID
	Transitions     int32
	Holder          string
}

func fenceOf(l *coordinationv1.Lease) Fence {
	r := recordOf(l)
	return Fence{Namespace: l.Namespace, Name: l.Name, UID: l.UID, Transitions: r.transitions, Holder: r.holder}
}

// String is the value of the header: namespace/name/uid/transitions/holder. The
// holder is escaped as an element of a URL's path.
func (f Fence) String() string {
	return strings.Join([]string{f.Namespace, f.Name, string(f.UID), strconv.Itoa(int(f.Transitions)), url.PathEscape(f.Holder)}, "/")
}

// ParseFence reads the value of the header.
func ParseFence(value string) (Fence, error) {
	parts := strings.Split(value, "/")
	if len(parts) != 5 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
		return Fence{}, fmt.Errorf("%q: %w", value, ErrFence)
	}
	transitions, err := strconv.ParseInt(parts[3], 10, 32)
	if err != nil || transitions < 0 {
		return Fence{}, fmt.Errorf("%q: %w: %q is no number of transitions", value, ErrFence, parts[3])
	}
	holder, err := url.PathUnescape(parts[4])
	if err != nil || holder == "" {
		return Fence{}, fmt.Errorf("%q: %w: %q is no holder", value, ErrFence, parts[4])
	}
	return Fence{Namespace: parts[0], Name: parts[1], UID: types.UID(parts[2]), Transitions: int32(transitions), Holder: holder}, nil
}

// Holds reports whether a lease, nil if there is none, is still in the term that
// the fence names: the question that a server asks before each write.
func (f Fence) Holds(l *coordinationv1.Lease) bool { return l != nil && f == fenceOf(l) }

type fenceKey struct{}

// Context returns a context whose writes carry the fence. That of the work that
// [Elector.Run] calls does already.
func (f Fence) Context(ctx context.Context) context.Context {
	return context.WithValue(client.WithHeader(ctx, FenceHeader, f.String()), fenceKey{}, f)
}

// FenceOf returns the fence that a context carries.
func FenceOf(ctx context.Context) (Fence, bool) {
	f, ok := ctx.Value(fenceKey{}).(Fence)
	return f, ok
}

// IsFenced reports whether a write was refused because its leader had been deposed.
func IsFenced(err error) bool { return apierrors.HasStatusCause(err, CauseFenced) }

// Transport sends the fence of each write's context along, as the clients of
// package client do without it. It is for the configuration of client-go's:
//
//	cfg.Wrap(leader.Transport)
func Transport(next http.RoundTripper) http.RoundTripper { return &transport{next} }

type transport struct{ next http.RoundTripper }

// WrappedRoundTripper is what it sends through.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	f, ok := FenceOf(r.Context())
	switch r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		if ok {
			r = r.Clone(r.Context())
			r.Header.Set(FenceHeader, f.String())
		}
	}
	return t.next.RoundTrip(r)
}
