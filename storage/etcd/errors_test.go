package etcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/even-keel/evenkeel/storage"
)

var sentinels = []error{
	storage.ErrNotFound, storage.ErrConflict, storage.ErrCompacted, storage.ErrFuture, storage.ErrInvalid,
	storage.ErrTooLarge, storage.ErrClosed, storage.ErrReadOnly, storage.ErrCorrupt, storage.ErrLocked,
	storage.ErrUnavailable, ErrDenied, context.Canceled, context.DeadlineExceeded,
}

// wantOnly fails unless err is want and no other sentinel; nil wants none.
func wantOnly(t *testing.T, err, want error) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, sentinel := range sentinels {
		if got := errors.Is(err, sentinel); got != (sentinel == want) {
			t.Errorf("%q is %q: %v", err, sentinel, got)
		}
	}
}

func TestAnswersOfEtcdHaveAMeaning(t *testing.T) {
	for name, test := range map[string]struct{ answer, want error }{
		"too large":              {rpctypes.ErrGRPCRequestTooLarge, storage.ErrTooLarge},
		"too large for gRPC":     {status.Error(codes.ResourceExhausted, "grpc: received message larger than max (9 vs. 2)"), storage.ErrTooLarge},
		"too many requests":      {rpctypes.ErrGRPCRequestTooManyRequests, storage.ErrUnavailable},
		"no space":               {rpctypes.ErrGRPCNoSpace, storage.ErrReadOnly},
		"compacted":              {rpctypes.ErrGRPCCompacted, storage.ErrCompacted},
		"future":                 {rpctypes.ErrGRPCFutureRev, storage.ErrFuture},
		"corrupt":                {rpctypes.ErrGRPCCorrupt, storage.ErrCorrupt},
		"wrong password":         {rpctypes.ErrGRPCAuthFailed, ErrDenied},
		"no user":                {rpctypes.ErrGRPCUserEmpty, ErrDenied},
		"not allowed":            {rpctypes.ErrGRPCPermissionDenied, ErrDenied},
		"token not known yet":    {rpctypes.ErrGRPCInvalidAuthToken, storage.ErrUnavailable},
		"no leader":              {rpctypes.ErrGRPCNoLeader, storage.ErrUnavailable},
		"leader changed":         {rpctypes.ErrGRPCLeaderChanged, storage.ErrUnavailable},
		"a learner":              {rpctypes.ErrGRPCNotSupportedForLearner, storage.ErrUnavailable},
		"stopped":                {rpctypes.ErrGRPCStopped, storage.ErrUnavailable},
		"timed out in etcd":      {rpctypes.ErrGRPCTimeoutDueToLeaderFail, storage.ErrUnavailable},
		"watch cancelled":        {rpctypes.ErrGRPCWatchCanceled, storage.ErrUnavailable},
		"no connection":          {status.Error(codes.Unavailable, "connection refused"), storage.ErrUnavailable},
		"broken connection":      {status.Error(codes.Internal, "stream terminated by RST_STREAM"), storage.ErrUnavailable},
		"end of stream":          {io.EOF, storage.ErrUnavailable},
		"something else":         {status.Error(codes.Unimplemented, "unknown service"), nil},
		"something else by etcd": {rpctypes.ErrGRPCDuplicateKey, nil},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			wantOnly(t, translate(ctx, ctx, test.answer), test.want)
			wantOnly(t, translate(ctx, ctx, rpctypes.Error(test.answer)), test.want)
			wantOnly(t, classify(test.answer), test.want)
		})
	}
}

func TestAnErrorSaysWhatToDo(t *testing.T) {
	for answer, want := range map[error]string{
		rpctypes.ErrGRPCRequestTooLarge: "--max-request-bytes",
		rpctypes.ErrGRPCNoSpace:         "NOSPACE",
		rpctypes.ErrGRPCAuthFailed:      "check the user name and the password",
		rpctypes.ErrGRPCUserEmpty:       "wants a user name and a password",
	} {
		if err := classify(answer); !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

func TestOnlyTheCallersContextIsAContextError(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	expired, cancel := context.WithTimeout(t.Context(), -time.Second)
	defer cancel()
	lasting, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	short, cancel := context.WithTimeout(lasting, time.Minute)
	defer cancel()

	timeout := status.Error(codes.DeadlineExceeded, "context deadline exceeded")
	ended := status.Error(codes.Canceled, "context canceled")
	for name, test := range map[string]struct {
		caller, bounded context.Context
		err, want       error
	}{
		"the caller cancelled":                     {cancelled, cancelled, ended, context.Canceled},
		"the caller cancelled, as a context error": {cancelled, cancelled, context.Canceled, context.Canceled},
		"the caller cancelled a broken connection": {cancelled, cancelled, rpctypes.ErrGRPCNoLeader, context.Canceled},
		"the caller's time is up":                  {expired, expired, timeout, context.DeadlineExceeded},
		"the server noticed the caller's deadline": {lasting, lasting, timeout, context.DeadlineExceeded},
		"our time is up":                           {lasting, short, timeout, storage.ErrUnavailable},
		"our time is up, as a context error":       {lasting, short, context.DeadlineExceeded, storage.ErrUnavailable},
		"our time is up, the caller has no limit":  {t.Context(), short, timeout, storage.ErrUnavailable},
		"the server cancelled":                     {lasting, short, ended, storage.ErrUnavailable},
		"an answer counts though the caller left":  {cancelled, cancelled, rpctypes.ErrGRPCCompacted, storage.ErrCompacted},
	} {
		t.Run(name, func(t *testing.T) {
			wantOnly(t, translate(test.caller, test.bounded, test.err), test.want)
		})
	}
}

func TestAReasonForCancellingAWatchHasAMeaning(t *testing.T) {
	for reason, want := range map[string]error{
		rpctypes.ErrGRPCPermissionDenied.Error(): ErrDenied,
		rpctypes.ErrPermissionDenied.Error():     ErrDenied,
		rpctypes.ErrGRPCUserEmpty.Error():        ErrDenied,
		rpctypes.ErrGRPCInvalidAuthToken.Error(): storage.ErrUnavailable,
		rpctypes.ErrGRPCAuthOldRevision.Error():  storage.ErrUnavailable,
		rpctypes.ErrCompacted.Error():            storage.ErrCompacted,
		"mvcc: watcher range is empty":           nil,
	} {
		t.Run(reason, func(t *testing.T) { wantOnly(t, cancelled(reason), want) })
	}
}

func TestOpenWrapsUnavailableOnce(t *testing.T) {
	for _, err := range []error{
		unavailable(fmt.Errorf("%w: no leader", storage.ErrUnavailable)),
		unavailable(ErrDenied),
	} {
		if n := strings.Count(err.Error(), storage.ErrUnavailable.Error()); n != 1 || !errors.Is(err, storage.ErrUnavailable) {
			t.Errorf("%q says so %d times", err, n)
		}
	}
}
