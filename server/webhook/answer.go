package webhook

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// maxFailure is how much of a failed answer is read.
	maxFailure = 64 << 10
	// maxText is how much of what a webhook says gets into an error.
	maxText = 2048
)

func readAnswer(resp *http.Response, limit int64) ([]byte, error) {
	if resp.StatusCode < http.StatusOK || resp.StatusCode > http.StatusPartialContent {
		return nil, failedAnswer(resp)
	}
	if resp.ContentLength > limit {
		return nil, fmt.Errorf("%w: %d bytes, at most %d are read", ErrTooLarge, resp.ContentLength, limit)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the answer: %w", err)
	case int64(len(body)) > limit:
		return nil, fmt.Errorf("%w: at most %d bytes are read", ErrTooLarge, limit)
	}
	return body, nil
}

func failedAnswer(resp *http.Response) error {
	// What was read of a broken answer is better than nothing.
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxFailure))
	status := fmt.Sprintf("%d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	return fmt.Errorf("%w %s: %s", ErrStatus, strings.TrimSpace(status), failureText(resp, body))
}

// failureText says what kube-apiserver says, but for redirects, which it follows.
func failureText(resp *http.Response, body []byte) string {
	if to := resp.Header.Get("Location"); to != "" && resp.StatusCode/100 == 3 {
		return fmt.Sprintf("redirects are not followed, here to %q", shorten(to))
	}
	var status metav1.Status
	if json.Unmarshal(body, &status) == nil && status.Kind == "Status" && status.Message != "" {
		return shorten(status.Message)
	}
	said := shorten(strings.TrimSpace(string(body)))
	if said == "" {
		said = "unknown"
	}
	return apierrors.NewGenericServerResponse(resp.StatusCode, http.MethodPost, schema.GroupResource{}, "", said, 0, true).Error()
}

// shorten bounds what a webhook can put into an error.
func shorten(text string) string {
	if len(text) > maxText {
		text = text[:maxText] + "..."
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
