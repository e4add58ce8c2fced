package client

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
)

var (
	// ErrUnknownType says that nothing tells which kind a Go type is.
	ErrUnknownType = errors.New("the kind of the type is not known")
	// ErrScope says that a namespace is missing, or given where there is none.
	ErrScope = errors.New("wrong scope")
	// ErrWrongKind says that an object is given to a client of another kind.
	ErrWrongKind = errors.New("wrong kind")
	// ErrMetadataOnly says that an object without a body cannot be written whole.
	ErrMetadataOnly = errors.New("only metadata is known of it: use a patch")
	// ErrTooLarge says that a server sent an object larger than [MaxObject].
	ErrTooLarge = errors.New("the object is too large")
	// ErrMalformed says that an answer of the server cannot be read.
	ErrMalformed = errors.New("malformed answer")
	// ErrUncached is for layers: the server is to be asked instead.
	ErrUncached = errors.New("the cache does not have that")
	// ErrNoConfig says that there is no configuration to be found.
	ErrNoConfig = errors.New("no cluster is configured")
)

// IsNotFound reports whether the object does not exist.
func IsNotFound(err error) bool { return apierrors.IsNotFound(err) }

// IsAlreadyExists reports whether an object of that name exists.
func IsAlreadyExists(err error) bool { return apierrors.IsAlreadyExists(err) }

// IsConflict reports whether somebody else wrote first: read again and redo.
func IsConflict(err error) bool { return apierrors.IsConflict(err) }

// IsInvalid reports whether the object breaks a rule of its kind.
func IsInvalid(err error) bool { return apierrors.IsInvalid(err) }

// IsForbidden reports whether the client may not do that.
func IsForbidden(err error) bool { return apierrors.IsForbidden(err) }

// IsUnauthorized reports whether the server does not know who the client is.
func IsUnauthorized(err error) bool { return apierrors.IsUnauthorized(err) }

// IsTooManyRequests reports whether the server asks for patience.
func IsTooManyRequests(err error) bool { return apierrors.IsTooManyRequests(err) }

// IsExpired reports whether the server no longer has the revision that a list or
// a watch goes on from: list again.
func IsExpired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}

// IsNoKind reports whether the server does not serve the kind, or not yet.
func IsNoKind(err error) bool { return meta.IsNoMatchError(err) }

// IgnoreNotFound is nil if the object does not exist, and err otherwise.
func IgnoreNotFound(err error) error {
	if IsNotFound(err) {
		return nil
	}
	return err
}
