package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/rand"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/equality"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	kjson "sigs.k8s.io/json"

	"github.com/even-keel/evenkeel/server/kinds"
)

// TestBuiltinKindsAreReadAsKubernetesReadsThem decodes random objects of all
// built-in kinds, and compares with the decoder of Kubernetes.
func TestBuiltinKindsAreReadAsKubernetesReadsThem(t *testing.T) {
	const seed = 7
	scheme := kinds.Scheme()
	fill := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(seed), serializer.NewCodecFactory(scheme))
	for gvk, goType := range scheme.AllKnownTypes() {
		if !strings.HasPrefix(goType.PkgPath(), builtinTypes) || strings.HasSuffix(gvk.Kind, "List") {
			continue
		}
		if got, ok := builtinKind(goType); !ok || got != gvk && strings.HasSuffix(goType.PkgPath(), gvk.Version) {
			t.Errorf("%s is taken for %s", gvk, got)
		}
		for range 3 {
			obj := reflect.New(goType).Interface()
			fill.Fill(obj)
			data, err := json.Marshal(obj)
			if err != nil {
				t.Fatalf("%s, seed %d: %v", gvk, seed, err)
			}
			compareDecoders(t, goType, data)
		}
	}
}

// compareDecoders holds ours against that of Kubernetes, for a type and for none.
func compareDecoders(t *testing.T, goType reflect.Type, data []byte) {
	t.Helper()
	want, got := reflect.New(goType).Interface(), reflect.New(goType).Interface()
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, want); err != nil {
		return // theirs to refuse: ours may be laxer in what the server never sends
	}
	if err := decodeJSON(data, got); err != nil {
		t.Errorf("%s: %v\n%s", goType, err, data)
		return
	}
	if !reflect.DeepEqual(want, got) {
		t.Errorf("%s:\ntheirs %+v\nours   %+v\n%s", goType, want, got, data)
	}
}

func compareUntyped(t *testing.T, data []byte) {
	t.Helper()
	var want any
	theirs := kjson.UnmarshalCaseSensitivePreserveInts(data, &want)
	got, ours := parseValue(data)
	if (theirs == nil) != (ours == nil) {
		t.Fatalf("theirs: %v; ours: %v\n%q", theirs, ours, data)
	}
	if theirs == nil && !reflect.DeepEqual(want, got) {
		t.Errorf("-theirs +ours\n%s\n%q", cmp.Diff(want, got), data)
	}
}

var untypedSeeds = []string{
	`{}`, `[]`, `null`, ` {"a" : [ 1 , -2.5e3, true,false , null , "x\ny\u00e9😀" ] } `, `{"a":{"b":{"a":9223372036854775807}},"c":9223372036854775808}`,
	`"\ud83d\ude00"`, `"\ud800"`, "\"\xff\"", `01`, `-`, `1.`, `.5`, `+1`, `1e999`, `-0`, `{"a":1,}`, `[1,]`, `{"a"}`, `"a`, `tru`, `{} {}`, "\"\x01\"", "\x00", `""`,
	`{"a":1,"a":2}`, `1-2`, `--1`, `"\x"`, `["\"",{"\\":"\\\""}]`,
}

func FuzzUntyped(f *testing.F) {
	for _, s := range untypedSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) { compareUntyped(t, data) })
}

func FuzzTyped(f *testing.F) {
	for _, s := range append(untypedSeeds,
		`{"metadata":{"name":"a","Name":"b","labels":{"a":"b"},"creationTimestamp":"2026-01-02T03:04:05Z"},"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"1","memory":1}}}]}}`,
		`{"metadata":{"creationTimestamp":null,"managedFields":[{"fieldsV1":{"f:a":{}}}]},"spec":{"containers":null,"nodeSelector":{}}}`,
	) {
		f.Add([]byte(s))
	}
	pod := reflect.TypeFor[corev1.Pod]()
	f.Fuzz(func(t *testing.T, data []byte) { compareDecoders(t, pod, data) })
}

// readList reads all items, in the pieces in which a reader gives them.
func readList(e Encoding, from io.Reader) (items []string, head listHead, err error) {
	r := newListReader(e, from)
	var buf []byte
	for {
		buf, err = r.next(buf[:0])
		if errors.Is(err, io.EOF) {
			return items, *r.about(), nil
		}
		if err != nil {
			return nil, listHead{}, err
		}
		items = append(items, string(buf))
	}
}

var listSeeds = []string{
	`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7","continue":"x","remainingItemCount":3},"items":[{"a":"}\"]"},{"b":[{}]}]}`,
	`{"items":[],"metadata":{}}`, `{"items":null}`, ` { "items" : [ 1 , "x" , true , null , [ ] ] , "metadata" : { "resourceVersion" : "9" } } `,
	`{}`, `{"items":[{}`, `{"items":[{}]`, `{"items":[{},]}`, `{"items":[,]}`, `{"items":{}}`, `[`, ``, `{"a":1 "b":2}`, `{"a":"\\","items":["\"",{"\\":1}]}`, `{"metadata":1}`,
}

// FuzzJSONList reads lists in one piece and byte by byte, and compares with a
// decoder that holds all of it.
func FuzzJSONList(f *testing.F) {
	for _, s := range listSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, head, err := readList(JSON, bytes.NewReader(data))
		slow, slowHead, slowErr := readList(JSON, iotest.OneByteReader(bytes.NewReader(data)))
		if (err == nil) != (slowErr == nil) || !reflect.DeepEqual(got, slow) || !reflect.DeepEqual(head, slowHead) {
			t.Fatalf("in one piece %q, %v; byte by byte %q, %v", got, err, slow, slowErr)
		}
		var want struct {
			Metadata metav1.ListMeta   `json:"metadata"`
			Items    []json.RawMessage `json:"items"`
			Kind     string            `json:"kind"`
			Version  string            `json:"apiVersion"`
		}
		if kjson.UnmarshalCaseSensitivePreserveInts(data, &want) != nil || bytes.ContainsRune(data, '\\') || data[bytes.IndexAny(data, "{n")] == 'n' || twice(data) {
			return
		}
		if err != nil || len(got) != len(want.Items) || head.ResourceVersion != want.Metadata.ResourceVersion {
			t.Fatalf("%q at %q, %v; want %q at %q", got, head.ResourceVersion, err, want.Items, want.Metadata.ResourceVersion)
		}
		for i := range got {
			if got[i] != string(want.Items[i]) {
				t.Errorf("item %d is %s, not %s", i, got[i], want.Items[i])
			}
		}
	})
}

// twice says that a field of the list is there more than once, which no server
// does, and which decoders merge.
func twice(data []byte) bool {
	for _, name := range []string{`"items"`, `"metadata"`} {
		if bytes.Count(data, []byte(name)) > 1 {
			return true
		}
	}
	return false
}

func protoPods(t testing.TB, pods ...corev1.Pod) []byte {
	t.Helper()
	list := corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "7", Continue: "next"}, Items: pods}
	data, err := list.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return wrap("v1", "PodList", data)
}

// FuzzProtobufList reads lists in one piece and byte by byte, and compares with
// the generated decoder.
func FuzzProtobufList(f *testing.F) {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.PodSpec{NodeName: "n"}}
	for _, data := range [][]byte{protoPods(f), protoPods(f, pod), protoPods(f, pod, corev1.Pod{}, pod), []byte(magic), nil} {
		f.Add(data)
		f.Add(append(bytes.Clone(data), 0x1a, 0x00, 0x20, 0x05)) // content encoding, and something unknown
		f.Add(data[:len(data)*2/3])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, head, err := readList(Protobuf, bytes.NewReader(data))
		slow, _, slowErr := readList(Protobuf, iotest.OneByteReader(bytes.NewReader(data)))
		if (err == nil) != (slowErr == nil) || !reflect.DeepEqual(got, slow) {
			t.Fatalf("in one piece %q, %v; byte by byte %q, %v", got, err, slow, slowErr)
		}
		var want corev1.PodList
		var envelope runtime.Unknown
		if len(data) < len(magic) || string(data[:len(magic)]) != magic || envelope.Unmarshal(data[len(magic):]) != nil || want.Unmarshal(envelope.Raw) != nil {
			return
		}
		if messages(data) != 1 || err != nil {
			return // the generated code skips groups, and numbers that are too large
		}
		if len(got) != len(want.Items) || head.ResourceVersion != want.ResourceVersion {
			t.Fatalf("%d items at %q; want %d at %q", len(got), head.ResourceVersion, len(want.Items), want.ResourceVersion)
		}
	})
}

// messages counts them in an envelope: of several, the generated code takes the last.
func messages(data []byte) (n int) {
	_ = eachField(data[len(magic):], func(field protowire.Number, _ []byte) error {
		if field == 2 {
			n++
		}
		return nil
	})
	return n
}

func TestProtobufListsAreWhole(t *testing.T) {
	pods := []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, {}, {ObjectMeta: metav1.ObjectMeta{Name: strings.Repeat("b", 200_000)}}}
	data := protoPods(t, pods...)
	items, head, err := readList(Protobuf, iotest.HalfReader(bytes.NewReader(data)))
	if err != nil || head.ResourceVersion != "7" || head.Continue != "next" || head.Kind != "PodList" || len(items) != 3 {
		t.Fatalf("%d items, %+v, %v", len(items), head, err)
	}
	for i, item := range items {
		var p corev1.Pod
		if err := p.Unmarshal([]byte(item)); err != nil || p.Name != pods[i].Name {
			t.Errorf("item %d is %q, %v", i, p.Name, err)
		}
	}
	const tail = 4 // two fields of the envelope, both empty
	data = append(data, 0x1a, 0x00, 0x22, 0x00)
	for n := range len(data) - tail {
		if n > 1000 && n < len(data)-1000 {
			continue
		}
		if _, _, err := readList(Protobuf, bytes.NewReader(data[:n])); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("the first %d of %d bytes: %v", n, len(data), err)
		}
	}
}

var frameSeeds = []string{
	`{"type":"ADDED","object":{"a":1}}` + "\n" + `{"type":"DELETED","object":{}}`, `{"object":{"type":"x"},"type":"BOOKMARK"}{"type":"MODIFIED","object":null}`,
	`{"type":"ERROR","object":{"kind":"Status"}}`, `{"type":"ADDED"}`, `{"type":7}`, `{"type":"ADDED","object":{"a":"`, ``, ` `, `null`, `{"x":{},"type":"ADDED","object":[]}`,
}

func readFrames(e Encoding, from io.Reader) (frames []string, err error) {
	r := newFrameReader(e, from)
	var buf []byte
	for {
		var f Frame
		f, buf, err = r.next(buf[:0])
		if errors.Is(err, io.EOF) {
			return frames, nil
		}
		if err != nil {
			return frames, err
		}
		frames = append(frames, string(f.Type)+string(f.Object.Bytes))
	}
}

// FuzzFrames reads events in both encodings, in one piece and byte by byte.
func FuzzFrames(f *testing.F) {
	for _, s := range frameSeeds {
		f.Add([]byte(s))
	}
	event := metav1.WatchEvent{Type: "ADDED", Object: runtime.RawExtension{Raw: wrap("v1", "Pod", []byte{0x0a, 0x00})}}
	data, err := event.Marshal()
	if err != nil {
		f.Fatal(err)
	}
	data = append([]byte{0, 0, 0, byte(len(data))}, data...)
	f.Add(data)
	f.Add(append(bytes.Clone(data), data...))
	f.Add(data[:len(data)-1])
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1})
	f.Add([]byte{0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, e := range []Encoding{JSON, Protobuf} {
			got, err := readFrames(e, bytes.NewReader(data))
			slow, slowErr := readFrames(e, iotest.OneByteReader(bytes.NewReader(data)))
			if (err == nil) != (slowErr == nil) || !reflect.DeepEqual(got, slow) {
				t.Fatalf("%s in one piece %q, %v; byte by byte %q, %v", e, got, err, slow, slowErr)
			}
		}
	})
}

func TestTheLargestObjectIsBounded(t *testing.T) {
	huge := io.MultiReader(strings.NewReader(`{"items":["`), io.LimitReader(zeros{}, MaxObject+10))
	if _, _, err := readList(JSON, huge); !errors.Is(err, ErrTooLarge) {
		t.Errorf("the error is %v", err)
	}
	if _, err := readFrames(Protobuf, bytes.NewReader([]byte{0xff, 0xff, 0xff, 0xff})); !errors.Is(err, ErrTooLarge) {
		t.Errorf("the error is %v", err)
	}
}

// zeros is a stream of the character 0.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

func TestDecodingKeepsNoBytes(t *testing.T) {
	conn := &Conn{}
	data := []byte(`{"metadata":{"name":"a","labels":{"k":"v"},"managedFields":[{"fieldsV1":{"f:x":{}}}]}}`)
	check := func(t *testing.T, decode func([]byte) (Object, error)) {
		buf := bytes.Clone(data)
		obj, err := decode(buf)
		if err != nil {
			t.Fatal(err)
		}
		before := obj.DeepCopyObject()
		for i := range buf {
			buf[i] = 'x'
		}
		if !equality.Semantic.DeepEqual(before, obj) {
			t.Error(cmp.Diff(before, obj))
		}
	}
	pods := newCodec[*corev1.Pod](conn, corev1.SchemeGroupVersion.WithKind("Pod"))
	check(t, func(b []byte) (Object, error) { return pods.decode(Raw{JSON, b}) })
	dynamic := newCodec[*unstructured.Unstructured](conn, corev1.SchemeGroupVersion.WithKind("Pod"))
	check(t, func(b []byte) (Object, error) { return dynamic.decode(Raw{JSON, b}) })
	if _, err := dynamic.decode(Raw{Protobuf, data}); !errors.Is(err, ErrMalformed) {
		t.Errorf("protobuf for an unstructured object: %v", err)
	}
}
