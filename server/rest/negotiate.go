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
	// or PartialObjectMetadataList; version is the one of meta.k8s.io it is wanted in.
	as, version string
	pretty      bool
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
		if strings.TrimSpace(part) == "" {
			continue
		}
		// Clients ask for OpenAPI by a name with an @, which the grammar forbids.
		media, params, err := mime.ParseMediaType(strings.ReplaceAll(part, "@", "."))
		if err != nil { // such as a name with an @, which clients do send
			media, _, _ = strings.Cut(strings.ToLower(strings.TrimSpace(part)), ";")
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

// plainMedia are the forms of single objects; lists may be streams, too.
var (
	plainMedia = []string{mediaJSON, mediaYAML, mediaProto}
	listMedia  = append(plainMedia[:3:3], mediaJSON+";stream=watch", mediaProto+";stream=watch")
)

// onlyPlain is the answer to a client that wants objects turned into what they
// cannot be turned into.
func onlyPlain() error {
	return notAcceptable("only the following media types are accepted: " + strings.Join(plainMedia, ", "))
}

// negotiate picks the first answer that a client takes and we can give.
// available are the forms that there are.
func negotiate(r *http.Request, available []string) (output, error) {
	if !routable(r, available) {
		return output{media: mediaJSON}, routingError(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
			"406: Not Acceptable\n\nAvailable representations: "+strings.Join(available, ", "))
	}
	for _, a := range parseAccept(r) {
		media, ok := mediaFor(a.media)
		as := a.params["as"]
		if !ok || as != "" && !transformable(a) || media == mediaProto && as == "Table" {
			continue
		}
		return output{media: media, as: as, version: a.params["v"], pretty: pretty(r, a)}, nil
	}
	return output{media: mediaJSON}, onlyPlain()
}

// refuseProto refuses protobuf for custom resources, which have no such form,
// unless another is acceptable; their metadata has.
func (c *call) refuseProto() error {
	for _, a := range parseAccept(c.r) {
		media, ok := mediaFor(a.media)
		as := a.params["as"]
		if !ok || as != "" && !transformable(a) || media == mediaProto && (as == "" || as == "Table") {
			continue
		}
		c.out = output{media: media, as: as, version: a.params["v"], pretty: pretty(c.r, a)}
		return nil
	}
	return onlyPlain()
}

// routable is the first and literal look at what a client takes, before its
// parameters are read: it knows no application/* and no capitals.
func routable(r *http.Request, available []string) bool {
	header := r.Header.Get("Accept")
	if header == "" {
		return true
	}
	for part := range strings.SplitSeq(header, ",") {
		media, _, _ := strings.Cut(part, ";")
		if media = strings.TrimSpace(media); media == "*/*" || slices.Contains(available, media) {
			return true
		}
	}
	return false
}

// errorOutput is how a client gets its errors: never turned into anything.
func errorOutput(r *http.Request) output {
	for _, a := range parseAccept(r) {
		if media, ok := mediaFor(a.media); ok && a.params["as"] == "" {
			return output{media: media, pretty: pretty(r, a)}
		}
	}
	return output{media: mediaJSON, pretty: pretty(r, accept{})}
}

// pretty says that people read the answer: by its query, or by a program that
// people use.
func pretty(r *http.Request, a accept) bool {
	if a.params["pretty"] == "1" {
		return true
	}
	if asked := r.URL.Query().Get("pretty"); asked != "" {
		yes, _ := strconv.ParseBool(asked)
		return yes
	}
	agent := r.UserAgent()
	return strings.HasPrefix(agent, "curl") || strings.HasPrefix(agent, "Wget") || strings.HasPrefix(agent, "Mozilla/5.0")
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
