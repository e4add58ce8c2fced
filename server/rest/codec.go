package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/even-keel/evenkeel/server/plain"
	"github.com/even-keel/evenkeel/server/watch"
)

// maxBody is the largest request body that is read.
const maxBody = 3 << 20

// codec reads and writes objects of the scheme's types.
type codec struct {
	scheme *runtime.Scheme
	json   runtime.Decoder
	yaml   runtime.Decoder
	proto  *protobuf.Serializer
}

func newCodec(scheme *runtime.Scheme) *codec {
	return &codec{
		scheme: scheme,
		json:   jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, scheme, scheme, jsonserializer.SerializerOptions{Strict: true}),
		yaml:   jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, scheme, scheme, jsonserializer.SerializerOptions{Strict: true, Yaml: true}),
		proto:  protobuf.NewSerializer(scheme, scheme),
	}
}

// readBody reads a request's body, up to what is allowed.
func readBody(r *http.Request) ([]byte, error) {
	body, err := readAll(io.LimitReader(r.Body, maxBody+1), r.ContentLength)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, routingError(http.StatusRequestTimeout, metav1.StatusReasonTimeout, "the request's body was not sent in time")
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("reading the request's body: %v", err))
	}
	if len(body) > maxBody {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", maxBody))
	}
	return body, nil
}

// readAll is io.ReadAll of something whose length may be known; it must end even so.
func readAll(r io.Reader, length int64) ([]byte, error) {
	if length < 0 || length > maxBody {
		return io.ReadAll(r)
	}
	out := bytes.NewBuffer(make([]byte, 0, length+bytes.MinRead))
	_, err := out.ReadFrom(r)
	return out.Bytes(), err
}

// contentType returns the media type of a request's body; JSON if it has none.
func contentType(r *http.Request) string {
	header := r.Header.Get("Content-Type")
	if header == "" {
		return mediaJSON
	}
	media, _, err := mime.ParseMediaType(header)
	if err != nil {
		return header
	}
	return media
}

func (c *codec) decoder(media string) (runtime.Decoder, bool) {
	switch media {
	case mediaJSON:
		return c.json, true
	case mediaYAML:
		return c.yaml, true
	case mediaProto:
		return c.proto, true
	}
	return nil, false
}

// decode reads a body that must hold an object of the kind. What a strict
// reader finds wrong with it comes apart from errors.
func (c *codec) decode(media string, body []byte, gvk schema.GroupVersionKind, into runtime.Object) (runtime.Object, []error, error) {
	decoder, ok := c.decoder(media)
	if !ok {
		return nil, nil, errUnknownFormat()
	}
	if err := checkQuantities(media, body, into); err != nil {
		return nil, nil, err
	}
	if media == mediaJSON && decodePlain(body, gvk, into) {
		return into, nil, nil
	}
	obj, got, err := decoder.Decode(body, &gvk, into)
	if err != nil {
		if strict, ok := runtime.AsStrictDecodingError(err); ok && obj != nil {
			return c.checkKind(obj, got, gvk, strict.Errors())
		}
		return nil, nil, decodeError(err, got, gvk.Kind, body)
	}
	return c.checkKind(obj, got, gvk, nil)
}

// decodePlain reads an object about which there is nothing to say, and reports
// whether it is one.
func decodePlain(body []byte, gvk schema.GroupVersionKind, into runtime.Object) bool {
	to := reflect.ValueOf(into).Elem()
	if !to.IsZero() {
		return false
	}
	obj, ok := reflect.New(to.Type()).Interface().(runtime.Object)
	if !ok || !plain.Decode(body, obj) {
		return false
	}
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	says, ok := obj.GetObjectKind().(*metav1.TypeMeta) // as written, not as parsed
	if !ok || (says.APIVersion != "" && says.APIVersion != apiVersion) || (says.Kind != "" && says.Kind != kind) {
		return false
	}
	to.Set(reflect.ValueOf(obj).Elem())
	into.GetObjectKind().SetGroupVersionKind(gvk)
	return true
}

// checkKind refuses what is of another kind than wanted, unless it is the same
// Go type.
func (c *codec) checkKind(obj runtime.Object, got *schema.GroupVersionKind, want schema.GroupVersionKind, strict []error) (runtime.Object, []error, error) {
	if got != nil && *got != want && c.scheme.AllKnownTypes()[*got] != c.scheme.AllKnownTypes()[want] {
		return nil, nil, decodeError(errConversion(*got, want), got, want.Kind, nil)
	}
	obj.GetObjectKind().SetGroupVersionKind(want)
	return obj, strict, nil
}

func errConversion(got, want schema.GroupVersionKind) error {
	return fmt.Errorf("converting (%s.%s) to (%s.%s): unknown conversion", got.Version, got.Kind, kindGroupName(want.Group), want.Kind)
}

func decodeError(err error, got *schema.GroupVersionKind, want string, body []byte) error {
	if got != nil && got.Kind != "" {
		return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", got.Kind, got.Version, want, err))
	}
	return apierrors.NewBadRequest(fmt.Sprintf("the object provided is unrecognized (must be of type %s): %v (%s)", want, err, summary(body)))
}

// summary is the beginning of a body that could not be read.
func summary(body []byte) string {
	const limit = 30
	if len(body) == 0 {
		return "<empty>"
	}
	more := ""
	format := "%x%s"
	if body[0] == '{' {
		format = "%s%s"
	}
	if len(body) > limit {
		body, more = body[:limit], " ..."
	}
	return fmt.Sprintf(format, body, more)
}

// encode returns an object's JSON, as all answers and the store have it.
func encode(obj runtime.Object) ([]byte, error) {
	var content any = obj
	if u, ok := obj.(*unstructured.Unstructured); ok {
		content = u.Object // the type's own marshaler is slower
	}
	out, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", obj.GetObjectKind().GroupVersionKind(), err)
	}
	return out, nil
}

// toStoredBytes returns what is stored of an object.
func (r *resource) toStoredBytes(ctx context.Context, obj runtime.Object) ([]byte, error) {
	accessor(obj).SetResourceVersion(watch.Placeholder)
	obj, err := r.toStoredVersion(ctx, obj)
	if err != nil {
		return nil, err
	}
	out, err := encode(obj)
	if err != nil {
		return nil, err
	}
	return watch.Stored(out)
}

// decodedOnce returns a typed object that nobody shares.
func (r *resource) decodedOnce(o *watch.Object) (runtime.Object, error) {
	if r.custom != nil {
		f, err := r.customForm(o)
		if err != nil {
			return nil, err
		}
		return f.obj.DeepCopy(), nil
	}
	obj := r.kind.New()
	body := o.AppendJSON(make([]byte, 0, o.Len()))
	if !plain.Decode(body, obj) {
		obj = r.kind.New()
		if err := json.Unmarshal(body, obj); err != nil {
			return nil, fmt.Errorf("decode %s %s/%s: %w", r.storage, o.Namespace, o.Name, err)
		}
	}
	obj.GetObjectKind().SetGroupVersionKind(r.kind.GVK)
	return obj, nil
}

// decoded returns the typed form of an object in its stored version. It is
// shared: copy it before a change.
func (r *resource) decoded(o *watch.Object) (runtime.Object, error) {
	if r.custom != nil {
		f, err := r.customForm(o)
		return f.obj, err
	}
	if o.Len() > keptDecoded {
		return r.decodedOnce(o)
	}
	v, err := o.Derive(decodedKey{}, func(o *watch.Object) (any, error) { return r.decodedOnce(o) })
	if err != nil {
		return nil, err
	}
	return v.(runtime.Object), nil
}

type decodedKey struct{}

// keptDecoded is the size up to which the decoded form of an object is kept. It
// takes several times the room of its JSON, and large ones are seldom read.
const keptDecoded = 32 << 10

// copyOf returns a typed object that the caller may change.
func (r *resource) copyOf(o *watch.Object) (runtime.Object, error) {
	obj, err := r.decoded(o)
	if err != nil {
		return nil, err
	}
	return obj.DeepCopyObject(), nil
}

// protoMessage is what all built-in types are.
type protoMessage interface {
	Size() int
	MarshalToSizedBuffer([]byte) (int, error)
}

type protoKey struct{ version schema.GroupVersion }

// protoBytes returns an object's protobuf message, without the envelope.
func (r *resource) protoBytes(o *watch.Object) ([]byte, error) {
	v, err := o.Derive(protoKey{r.gvk.GroupVersion()}, func(o *watch.Object) (any, error) {
		obj, err := r.decoded(o)
		if err == nil {
			obj, err = r.fromStored(obj)
		}
		if err != nil {
			return nil, err
		}
		message, ok := obj.(protoMessage)
		if !ok {
			return nil, errors.New("the object has no protobuf form")
		}
		out := make([]byte, message.Size())
		_, err = message.MarshalToSizedBuffer(out)
		return out, err
	})
	if err != nil {
		return nil, err
	}
	return v.([]byte), nil
}

// partial is what is left of an object when only its metadata is wanted.
func (c *call) partial(obj runtime.Object) (*metav1.PartialObjectMetadata, error) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	p := meta.AsPartialObjectMetadata(m)
	p.SetGroupVersionKind(c.metaKind("PartialObjectMetadata"))
	return p, nil
}
