package rest

import (
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The media types of bodies.
const (
	mediaJSON  = "application/json"
	mediaYAML  = "application/yaml"
	mediaProto = "application/vnd.kubernetes.protobuf"
)

// output is how a client wants its answer.
type output struct {
	media string
	// as is the kind to transform objects into: "", Table, PartialObjectMetadata
	// or PartialObjectMetadataList.
	as string
	// params are the media type's parameters, for discovery.
	params map[string]string
}

// accept is one of the media types that a client takes.
type accept struct {
	media  string
	params map[string]string
	q      float64
}

// parseAccept returns what a client takes, best first.
func parseAccept(r *http.Request) []accept {
	var out []accept
	for _, part := range strings.Split(strings.Join(r.Header.Values("Accept"), ","), ",") {
		media, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		a := accept{media: media, params: params, q: 1}
		if q, err := strconv.ParseFloat(params["q"], 64); err == nil {
			a.q = q
		}
		out = append(out, a)
	}
	if len(out) == 0 {
		out = []accept{{media: "*/*", q: 1}}
	}
	slices.SortStableFunc(out, func(a, b accept) int {
		switch {
		case a.q > b.q:
			return -1
		case a.q < b.q:
			return 1
		}
		return 0
	})
	return out
}

// mediaFor returns the media type that stands for one that a client takes.
func mediaFor(name string) (string, bool) {
	switch name {
	case mediaJSON, "application/*", "*/*":
		return mediaJSON, true
	case mediaYAML, mediaProto:
		return name, true
	}
	return "", false
}

// negotiate picks the first answer that a client takes and we can give.
// protobuf says that the objects have such an encoding.
func negotiate(r *http.Request, protobuf bool) (output, error) {
	known := false
	for _, a := range parseAccept(r) {
		media, ok := mediaFor(a.media)
		if !ok {
			continue
		}
		as := a.params["as"]
		known = true
		if as != "" && !transformable(a) {
			continue
		}
		if media == mediaProto && (as == "Table" || as == "" && !protobuf) {
			continue
		}
		return output{media: media, as: as, params: a.params}, nil
	}
	if known {
		return output{media: mediaJSON}, notAcceptable("only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf")
	}
	return output{media: mediaJSON}, routingError(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
		"406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch")
}

func transformable(a accept) bool {
	switch a.params["as"] {
	case "Table", "PartialObjectMetadata", "PartialObjectMetadataList":
		return a.params["g"] == "meta.k8s.io" && (a.params["v"] == "v1" || a.params["v"] == "v1beta1")
	}
	return false
}

func notAcceptable(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotAcceptable,
		Reason: metav1.StatusReasonNotAcceptable, Message: message,
	}}
}
