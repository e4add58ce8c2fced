package webhook

import "errors"

var (
	// ErrConfig is a webhook that cannot be called as it is configured.
	ErrConfig = errors.New("invalid webhook configuration")
	// ErrResolve is a service that no address was found for.
	ErrResolve = errors.New("resolve the service")
	// ErrStatus is an answer whose HTTP status is no success.
	ErrStatus = errors.New("the webhook answered")
	// ErrTooLarge is an answer longer than [Call.MaxAnswer].
	ErrTooLarge = errors.New("the webhook's answer is too large")
	// ErrClosed is a call through a closed [Client].
	ErrClosed = errors.New("the webhook client is closed")
)
