package auth

import "errors"

var (
	// ErrUnauthorized is what authenticating returns for credentials that are
	// there and wrong. The answer to the client is 401, without the reason.
	ErrUnauthorized = errors.New("unauthorized")
	// ErrDamaged is a file of [OpenCredentials] that cannot be used. The error around it
	// names the file and says what to do.
	ErrDamaged = errors.New("damaged file")
	// ErrForeign is a kubeconfig that is not evenkeel's to replace.
	ErrForeign = errors.New("not written by evenkeel")
)
