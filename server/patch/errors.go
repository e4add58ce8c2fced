package patch

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What can be wrong with a patch. The errors returned carry the Status that a
// client gets, with the real server's texts: see [Error]. An error that is none
// of these says that the patch does not fit the object's type, and that the
// real server would answer 500.
var (
	// ErrInvalid: the document is not a patch (400).
	ErrInvalid = errors.New("invalid patch")
	// ErrFailed: the patch cannot be applied to this object (422).
	ErrFailed = errors.New("patch does not apply")
	// ErrTooLarge: the patch is more work than the server does for one (413).
	ErrTooLarge = errors.New("patch too large")
)

// Error is why a patch was refused. It is an [apierrors.APIStatus]. Its text is
// for the log: the Status may say less, as the real server's does.
type Error struct {
	kind   error
	text   string
	status *apierrors.StatusError
}

var _ apierrors.APIStatus = (*Error)(nil)

func (e *Error) Error() string { return e.text }

// Unwrap returns one of the sentinels.
func (e *Error) Unwrap() error { return e.kind }

// Status is the answer to the client.
func (e *Error) Status() metav1.Status { return e.status.Status() }

func invalid(format string, args ...any) error {
	status := apierrors.NewBadRequest(fmt.Sprintf(format, args...))
	return &Error{kind: ErrInvalid, text: status.Error(), status: status}
}

func failed(format string, args ...any) error {
	status := apierrors.NewGenericServerResponse(
		http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", "", 0, false)
	return &Error{kind: ErrFailed, text: fmt.Sprintf(format, args...), status: status}
}

func tooLarge(format string, args ...any) error {
	status := apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(format, args...))
	return &Error{kind: ErrTooLarge, text: status.Error(), status: status}
}
