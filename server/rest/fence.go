package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/even-keel/evenkeel/server/auth"
	"github.com/even-keel/evenkeel/server/watch"
	"github.com/even-keel/evenkeel/storage"
)

const (
	// fenceHeader is how a leader tells the term that its write belongs to:
	// namespace/name/uid/transitions/holder of its Lease, the holder escaped as an
	// element of a path.
	fenceHeader = "Evenkeel-Fence"
	// causeFenceLost is the cause of the conflict when that term is over.
	causeFenceLost metav1.CauseType = "FenceLost"
)

// fence is one term of a leader. A write that carries it happens only while the
// lease is in that term, whoever else writes meanwhile: where the lease stands is
// a condition of the commit. As renewals move the lease too, a commit that fails on
// it alone looks again.
type fence struct {
	namespace, name string
	uid             types.UID
	transitions     int32
	holder          string
}

func parseFence(value string) (fence, error) {
	parts := strings.Split(value, "/")
	if len(parts) != 5 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
		return fence{}, errors.New("it is not namespace/name/uid/transitions/holder")
	}
	transitions, err := strconv.ParseInt(parts[3], 10, 32)
	if err != nil || transitions < 0 {
		return fence{}, fmt.Errorf("%q is no number of transitions", parts[3])
	}
	holder, err := url.PathUnescape(parts[4])
	if err != nil || holder == "" {
		return fence{}, fmt.Errorf("%q is no holder", parts[4])
	}
	return fence{parts[0], parts[1], types.UID(parts[2]), int32(transitions), holder}, nil
}

func (f fence) holds(l *coordinationv1.Lease) bool {
	return l.UID == f.uid && ptr.Deref(l.Spec.HolderIdentity, "") == f.holder && ptr.Deref(l.Spec.LeaseTransitions, 0) == f.transitions
}

// write commits a write, under the fence that the context carries.
func (a *API) write(ctx context.Context, w storage.Write) (storage.Result, error) {
	by := writerOf(ctx)
	if by.fence == nil {
		return a.store.Commit(ctx, w)
	}
	for {
		var err error
		if w.Guard, err = a.guard(ctx, *by.fence); err != nil {
			return storage.Result{}, err
		}
		result, err := a.store.Commit(ctx, w)
		if !errors.Is(err, storage.ErrGuard) {
			return result, err
		}
		if err := a.hub.Sync(ctx); err != nil { // to see what the lease has become
			return storage.Result{}, err
		}
	}
}

// guard returns where the lease of a fence stands, if it is still in the fence's
// term as far as this server knows. Before it refuses, it makes sure.
func (a *API) guard(ctx context.Context, f fence) (*storage.Guard, error) {
	lease, at, err := a.lease(f)
	if err == nil && (lease == nil || !f.holds(lease)) {
		if err = a.hub.Sync(ctx); err == nil {
			lease, at, err = a.lease(f)
		}
	}
	switch {
	case err != nil:
		return nil, err
	case lease == nil || !f.holds(lease):
		return nil, a.fenceLost(ctx, f, lease)
	}
	return &storage.Guard{Key: watch.Key(leaseStorage, f.namespace, f.name), At: at}, nil
}

const leaseStorage = "leases." + coordinationv1.GroupName

// lease returns the lease that a fence names, nil if there is none.
func (a *API) lease(f fence) (*coordinationv1.Lease, storage.Revision, error) {
	leases := a.registry.stored(coordinationv1.GroupName, "leases")
	if leases == nil { // this server has none
		return nil, 0, nil
	}
	o := leases.objects.Get(f.namespace, f.name)
	if o == nil {
		return nil, 0, nil
	}
	obj, err := leases.decoded(o)
	if err != nil {
		return nil, 0, err
	}
	return obj.(*coordinationv1.Lease), o.Revision, nil
}

// fenceLost refuses a write. What became of the lease is told to those only who
// may read it.
func (a *API) fenceLost(ctx context.Context, f fence, l *coordinationv1.Lease) error {
	message := fmt.Sprintf("the fence of lease %s/%s is lost", f.namespace, f.name)
	if a.mayReadLease(ctx, f) {
		message += ": " + f.whyLost(l)
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: message,
		Details: &metav1.StatusDetails{
			Group: coordinationv1.GroupName, Kind: "leases", Name: f.name,
			Causes: []metav1.StatusCause{{Type: causeFenceLost, Message: message}},
		},
	}}
}

func (f fence) whyLost(l *coordinationv1.Lease) string {
	if l == nil {
		return "there is no such lease"
	}
	holder, transitions := ptr.Deref(l.Spec.HolderIdentity, ""), ptr.Deref(l.Spec.LeaseTransitions, 0)
	switch {
	case l.UID != f.uid:
		return fmt.Sprintf("another lease has its name, held by %q", holder)
	case holder == "":
		return "it has been released"
	}
	return fmt.Sprintf("it is held by %q, with %d transitions", holder, transitions)
}

func (a *API) mayReadLease(ctx context.Context, f fence) bool {
	if a.authorizer == nil {
		return false
	}
	decision, err := a.authorizer.Authorize(ctx, auth.UserOf(ctx), auth.Attributes{
		Verb: "get", Group: coordinationv1.GroupName, Version: "v1", Resource: "leases", Namespace: f.namespace, Name: f.name,
	})
	return err == nil && decision.Allowed
}
