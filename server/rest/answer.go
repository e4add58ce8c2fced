package rest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/even-keel/evenkeel/server/watch"
)

// answer sends a stored object. Its own bytes are sent if they are what the
// client wants.
func (c *call) answer(code int, o *watch.Object) error {
	if c.out.as == "" && c.out.media == mediaJSON && !c.out.pretty && c.res.asStored(o) {
		return c.send(code, mediaJSON, append(o.AppendJSON(make([]byte, 0, o.Len()+1)), '\n'))
	}
	obj, err := c.res.decoded(o)
	if err != nil {
		return err
	}
	return c.answerObject(code, obj)
}

// answerObject sends a typed object of the stored version, or a Status.
func (c *call) answerObject(code int, obj runtime.Object) error {
	if _, isStatus := obj.(*metav1.Status); !isStatus {
		var err error
		if obj, err = c.versioned(obj); err != nil {
			return err
		}
		if obj, err = c.transform(obj); err != nil {
			return err
		}
	}
	return c.sendObject(code, obj)
}

// transform makes of an object what the client asked for.
func (c *call) transform(obj runtime.Object) (runtime.Object, error) {
	switch c.out.as {
	case "PartialObjectMetadata":
		return c.partial(obj)
	case "Table":
		return c.table([]runtime.Object{obj}, metav1.ListMeta{ResourceVersion: resourceVersion(obj)})
	case "PartialObjectMetadataList":
		return nil, notAcceptable(fmt.Sprintf("you requested PartialObjectMetadataList, but the requested object is not a list (*%s.%s)", kindGroupName(c.res.kind.GVK.Group), c.res.kind.GVK.Kind))
	}
	return obj, nil
}

// sendObject encodes a typed object with its kind and sends it.
func (c *call) sendObject(code int, obj runtime.Object) error {
	body, err := c.encodeAs(c.out, obj)
	if err != nil {
		return err
	}
	return c.send(code, c.out.media, body)
}

func (c *call) encodeAs(as output, obj runtime.Object) ([]byte, error) {
	switch as.media {
	case mediaProto:
		var out bytes.Buffer
		if err := c.api.codec.proto.Encode(obj, &out); err != nil {
			return nil, fmt.Errorf("encode as protobuf: %w", err)
		}
		return out.Bytes(), nil
	case mediaYAML:
		body, err := encode(obj)
		if err != nil {
			return nil, err
		}
		return yaml.JSONToYAML(body)
	}
	body, err := encode(obj)
	if err != nil {
		return nil, err
	}
	if as.pretty {
		var out bytes.Buffer
		err := json.Indent(&out, body, "", "  ")
		return out.Bytes(), err
	}
	return append(body, '\n'), nil
}

// Answers below this size are not worth compressing.
const gzipFrom = 128 << 10

// send writes a whole answer.
func (c *call) send(code int, media string, body []byte) error {
	c.writeWarnings()
	c.w.Header().Set("Cache-Control", "no-cache, private")
	return c.sendBody(code, media, body)
}

// sendBody compresses what is large, if the client can read that.
func (c *call) sendBody(code int, media string, body []byte) error {
	h := c.w.Header()
	h.Set("Content-Type", media)
	if len(body) >= gzipFrom && acceptsGzip(c.r) {
		return c.sendGzip(code, body)
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	c.w.WriteHeader(code)
	_, _ = c.w.Write(body) // the client has gone: nobody is left to tell
	return nil
}

func (c *call) sendGzip(code int, body []byte) error {
	h := c.w.Header()
	h.Set("Content-Encoding", "gzip")
	h.Add("Vary", "Accept-Encoding")
	c.w.WriteHeader(code)
	z, err := gzip.NewWriterLevel(c.w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	_, _ = z.Write(body)
	_ = z.Close()
	return nil
}

func acceptsGzip(r *http.Request) bool {
	for _, v := range r.Header.Values("Accept-Encoding") {
		for _, part := range strings.Split(v, ",") {
			if name, _, _ := strings.Cut(strings.TrimSpace(part), ";"); name == "gzip" {
				return true
			}
		}
	}
	return false
}

func (c *call) writeWarnings() {
	seen := map[string]bool{}
	for _, w := range c.warnings {
		if !seen[w] {
			seen[w] = true
			c.w.Header().Add("Warning", fmt.Sprintf("299 - %q", w))
		}
	}
}

// fail sends an error as a Status.
func (c *call) fail(err error) {
	s := status(err)
	s.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	if s.Code == 0 {
		s.Code = http.StatusInternalServerError
	}
	gone := c.ctx().Err() != nil // and nobody hears the answer
	if s.Code >= http.StatusInternalServerError && s.Code != http.StatusNotImplemented && !gone {
		c.api.log.Error("request failed", "method", c.r.Method, "path", c.r.URL.Path, "error", err)
	}
	if s.Details != nil && s.Details.RetryAfterSeconds > 0 {
		c.w.Header().Set("Retry-After", strconv.Itoa(int(s.Details.RetryAfterSeconds)))
	}
	out := errorOutput(c.r)
	body, encodeErr := c.encodeAs(out, &s)
	if encodeErr != nil {
		out.media, body = mediaJSON, []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":500}`)
	}
	_ = c.send(int(s.Code), out.media, body)
}

// success is the answer to a deletion or another deed without a result.
func success(code int32, details *metav1.StatusDetails) *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusSuccess, Code: code, Details: details,
	}
}
