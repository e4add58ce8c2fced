package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/storage"
)

// routingError is what is wrong with the path or the method: unlike errors about
// objects it has empty details.
func routingError(code int32, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message,
		Details: &metav1.StatusDetails{},
	}}
}

func errNoSuchResource() error {
	return routingError(http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource")
}

// ErrMethodNotAllowed is the answer to a method that a path does not have.
func ErrMethodNotAllowed() error { return errMethodNotAllowed() }

func errMethodNotAllowed() error {
	return routingError(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "the server does not allow this method on the requested resource")
}

func errUnsupportedMediaType() error {
	return routingError(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType, "415: Unsupported Media Type")
}

func errUnknownFormat() error {
	return unknownFormat("application/json, application/yaml, application/vnd.kubernetes.protobuf")
}

// errNoPatchOfCustom is the answer to a patch that custom resources do not take.
func errNoPatchOfCustom() error {
	return unknownFormat("application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml")
}

func unknownFormat(accepted string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: "the body of the request was in an unknown format - accepted media types include: " + accepted,
	}}
}

// expired is the answer to a revision that has been compacted.
func expired(message string) *apierrors.StatusError { return apierrors.NewResourceExpired(message) }

// tooLarge is the answer to a revision that is yet to come.
func tooLarge(wanted, current storage.Revision) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", wanted, current), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type:    metav1.CauseTypeResourceVersionTooLarge,
		Message: "Too large resource version",
	}}
	return err
}

// status turns any error into what the client sees of it.
func status(err error) metav1.Status {
	var known apierrors.APIStatus
	if errors.As(err, &known) {
		return known.Status()
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, storage.ErrUnavailable):
		return apierrors.NewTimeoutError("the request could not be completed in time: "+err.Error(), 1).Status()
	case errors.Is(err, storage.ErrReadOnly), errors.Is(err, storage.ErrClosed), errors.Is(err, context.Canceled):
		return apierrors.NewServiceUnavailable(err.Error()).Status()
	case errors.Is(err, storage.ErrTooLarge):
		return apierrors.NewRequestEntityTooLargeError(err.Error()).Status()
	case errors.Is(err, storage.ErrCompacted):
		return expired(err.Error()).Status()
	default:
		// As in the real server, what nobody foresaw has no reason.
		return metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error()}
	}
}
