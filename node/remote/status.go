package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Clients look for these to find the exit code.
const (
	reasonNonZero metav1.StatusReason = "NonZeroExitCode"
	causeExitCode metav1.CauseType    = "ExitCode"
)

// statusOf is how clients are told of an end.
func statusOf(err error) metav1.Status {
	var exit *ExitError
	switch {
	case err == nil:
		return metav1.Status{Status: metav1.StatusSuccess}
	case errors.As(err, &exit):
		return metav1.Status{
			Status: metav1.StatusFailure, Reason: reasonNonZero,
			Message: fmt.Sprintf("command terminated with non-zero exit code: %v", exit),
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: causeExitCode, Message: strconv.Itoa(int(exit.Code))}}},
		}
	}
	return apierrors.NewInternalError(err).ErrStatus
}

// writeStatus tells of an end: as an object, or, to those that do not know it, as a
// text that is empty if all went well.
func writeStatus(to io.Writer, asObject bool, err error) {
	status := statusOf(err)
	if !asObject {
		if err != nil {
			_, _ = io.WriteString(to, status.Message) // a client that has left does not care
		}
		return
	}
	body, bad := json.Marshal(status)
	if bad != nil {
		panic(bad) // a Status is always JSON
	}
	_, _ = to.Write(body)
}
