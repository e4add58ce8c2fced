package etcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/even-keel/evenkeel/storage"
)

// ErrDenied: the cluster does not know the user, or does not let it do this.
var ErrDenied = errors.New("etcd refused the user")

// meanings say what etcd's answers are to a caller of a store.
var meanings = map[error]error{
	rpctypes.ErrRequestTooLarge: storage.ErrTooLarge,
	rpctypes.ErrNoSpace:         storage.ErrReadOnly,
	rpctypes.ErrCompacted:       storage.ErrCompacted,
	rpctypes.ErrFutureRev:       storage.ErrFuture,
	rpctypes.ErrCorrupt:         storage.ErrCorrupt,

	rpctypes.ErrAuthFailed:       ErrDenied,
	rpctypes.ErrPermissionDenied: ErrDenied,
	rpctypes.ErrUserEmpty:        ErrDenied,
	rpctypes.ErrUserNotFound:     ErrDenied,

	// A member that lags behind does not know the newest token yet.
	rpctypes.ErrInvalidAuthToken: storage.ErrUnavailable,
	rpctypes.ErrAuthOldRevision:  storage.ErrUnavailable,

	rpctypes.ErrNotLeader:                                  storage.ErrUnavailable,
	rpctypes.ErrNotCapable:                                 storage.ErrUnavailable,
	rpctypes.ErrTooManyRequests:                            storage.ErrUnavailable,
	rpctypes.Error(rpctypes.ErrGRPCNotSupportedForLearner): storage.ErrUnavailable,
}

// hint tells an operator what to do about an error, by a part of its text.
type hint struct{ part, advice string }

// answerHints are for what a cluster answers.
var answerHints = []hint{
	{"request is too large", "the cluster takes less, see etcd's --max-request-bytes"},
	{"received message larger than max", "the cluster takes less, see etcd's --max-request-bytes"},
	{"database space exceeded", "free space, then clear etcd's NOSPACE alarm"},
	{"invalid user ID or password", "check the user name and the password"},
	{"user name is empty", "the cluster wants a user name and a password"},
	{"permission denied", "the user's role must allow to read and write the prefix"},
}

const brokenOff = "the server broke the connection off: if it speaks TLS, say https:// and give a client certificate that it takes"

// connectHints are for what keeps a store from being opened. The first that
// fits is given.
var connectHints = []hint{
	{"unknown authority", "give the CA that signed the server's certificate"},
	{"failed to verify certificate", "the server's certificate is not for this address, or has expired"},
	{"certificate required", "the server wants a client certificate"},
	{"remote error: tls", "the server does not take the client certificate"},
	{"authentication handshake failed", "if the server does not speak TLS, say http://"},
	{"error reading server preface", brokenOff},
	{"broken pipe", brokenOff},
	{"connection reset", brokenOff},
	{"connection refused", "nothing listens there"},
}

// adviceOn returns the hint that fits a text, in parentheses, if one does.
func adviceOn(text string, hints []hint) string {
	for _, h := range hints {
		if strings.Contains(text, h.part) {
			return " (" + h.advice + ")"
		}
	}
	return ""
}

// translate turns an error of a request into one of a store. bounded is the
// request's context, made from ctx, the caller's. Only an end of the caller's
// own context is returned as a context's error.
func translate(ctx, bounded context.Context, err error) error {
	switch codeOf(err) {
	case codes.OK:
		return nil
	case codes.Canceled, codes.Unavailable:
		if ctx.Err() != nil {
			return ctx.Err()
		}
	case codes.DeadlineExceeded:
		// The server's clock may end the request before ours notices.
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if sameDeadline(ctx, bounded) {
			return context.DeadlineExceeded
		}
		return fmt.Errorf("%w: no answer in time", storage.ErrUnavailable)
	}
	return classify(err)
}

func sameDeadline(ctx, bounded context.Context) bool {
	want, ok := ctx.Deadline()
	got, _ := bounded.Deadline()
	return ok && want.Equal(got)
}

// classify wraps the sentinel that stands for etcd's answer. Etcd's own error
// is kept as text only: its context errors are not the caller's.
func classify(err error) error {
	if err == nil {
		return nil
	}
	text := rpctypes.ErrorDesc(err)
	text += adviceOn(text, answerHints)
	if meaning := meaningOf(err); meaning != nil {
		return fmt.Errorf("%w: %s", meaning, text)
	}
	return errors.New(text)
}

func meaningOf(err error) error {
	var answer rpctypes.EtcdError
	if errors.As(rpctypes.Error(err), &answer) {
		if meaning := meanings[answer]; meaning != nil {
			return meaning
		}
	}
	switch codeOf(err) {
	case codes.ResourceExhausted:
		if strings.Contains(err.Error(), "larger than max") {
			return storage.ErrTooLarge
		}
		return storage.ErrUnavailable
	case codes.Unavailable, codes.Canceled, codes.DeadlineExceeded, codes.Internal, codes.Aborted:
		return storage.ErrUnavailable
	case codes.PermissionDenied, codes.Unauthenticated:
		return ErrDenied
	}
	return nil
}

func codeOf(err error) codes.Code {
	var answer rpctypes.EtcdError
	switch {
	case errors.As(err, &answer):
		return answer.Code()
	case errors.Is(err, context.Canceled):
		return codes.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return codes.DeadlineExceeded
	case errors.Is(err, io.EOF): // a member has ended a stream
		return codes.Unavailable
	}
	return status.Code(err)
}

// within bounds a request by a timeout on top of the caller's context.
func within(ctx context.Context, timeout time.Duration, request func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return translate(ctx, bounded, request(bounded))
}
