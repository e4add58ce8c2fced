package rest

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/server/watch"
)

// buffers are what lists are written through.
var buffers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, 64<<10) }}

// sendJSONList writes a list from the bytes of its objects. Like the real
// server's, the items of built-in kinds do not repeat their kind.
func (c *call) sendJSONList(code int, p page) error {
	head, err := c.listHead(p)
	if err != nil {
		return err
	}
	size := len(head) + len("]}\n") + max(0, len(p.objects)-1)
	for _, o := range p.objects {
		size += o.Len() - c.res.skip(o)
		if c.res.skip(o) > 0 {
			size++
		}
	}
	return c.stream(code, mediaJSON, size, func(w *bufio.Writer) error {
		_, _ = w.Write(head)
		for i, o := range p.objects {
			if i > 0 {
				_ = w.WriteByte(',')
			}
			if err := c.res.writeItem(w, o); err != nil {
				return err
			}
		}
		_, err := w.WriteString("]}\n")
		return err
	})
}

// skip is how much of an object's JSON is its kind and version.
func (r *resource) skip(o *watch.Object) int {
	if o.HasPrefix(r.jsonStart) {
		return len(r.jsonStart)
	}
	return 0
}

func (r *resource) writeItem(w *bufio.Writer, o *watch.Object) error {
	skip := r.skip(o)
	if skip > 0 {
		_ = w.WriteByte('{')
	}
	return o.WriteJSON(w, skip)
}

func (c *call) listHead(p page) ([]byte, error) {
	list, err := json.Marshal(p.listMeta())
	if err != nil {
		return nil, err
	}
	apiVersion, _ := c.res.gvk.ToAPIVersionAndKind()
	return fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":%s,"items":[`, c.res.listKind(), apiVersion, list), nil
}

// stream sends an answer of a known size without holding it whole.
func (c *call) stream(code int, media string, size int, write func(*bufio.Writer) error) error {
	h := c.w.Header()
	c.writeWarnings()
	h.Set("Content-Type", media)
	h.Set("Cache-Control", "no-cache, private")
	var out io.Writer = c.w
	if size >= gzipFrom && acceptsGzip(c.r) {
		h.Set("Content-Encoding", "gzip")
		h.Add("Vary", "Accept-Encoding")
		z, err := gzip.NewWriterLevel(c.w, gzip.BestSpeed)
		if err != nil {
			return err
		}
		defer func() { _ = z.Close() }()
		out = z
	} else {
		h.Set("Content-Length", strconv.Itoa(size))
	}
	c.conn().Hold()
	defer func() { _ = c.conn().Release() }()
	c.w.WriteHeader(code)
	w := buffers.Get().(*bufio.Writer)
	defer buffers.Put(w)
	w.Reset(out)
	if err := write(w); err != nil {
		// Too late for an error: cut the answer, so that the client notices.
		panic(http.ErrAbortHandler)
	}
	_ = w.Flush()
	w.Reset(nil)
	return nil
}

// protoMagic begins every protobuf answer.
var protoMagic = []byte("k8s\x00")

// sendProtoList writes a list from the messages of its objects. The list's
// message is wrapped in an Unknown with its kind, as every protobuf body is.
func (c *call) sendProtoList(p page) error {
	items := make([][]byte, len(p.objects))
	listMeta := p.listMeta()
	metaBytes, err := listMeta.Marshal()
	if err != nil {
		return err
	}
	size := fieldBytes(len(metaBytes))
	for i, o := range p.objects {
		if items[i], err = c.res.protoBytes(o); err != nil {
			return err
		}
		size += fieldBytes(len(items[i]))
	}
	apiVersion, _ := c.res.gvk.ToAPIVersionAndKind()
	head, tail := unknownAround(apiVersion, c.res.listKind(), size)
	return c.stream(http.StatusOK, mediaProto, len(head)+size+len(tail), func(w *bufio.Writer) error {
		_, _ = w.Write(head)
		writeField(w, 1, metaBytes)
		for _, item := range items {
			writeField(w, 2, item)
		}
		_, err := w.Write(tail)
		return err
	})
}

// unknownAround returns what stands before and after a message of a given size
// in the envelope of a protobuf body: TypeMeta is field 1, the message field 2,
// two empty strings are fields 3 and 4.
func unknownAround(apiVersion, kind string, size int) (head, tail []byte) {
	var typeMeta []byte
	typeMeta = appendField(typeMeta, 1, []byte(apiVersion))
	typeMeta = appendField(typeMeta, 2, []byte(kind))
	head = append(head, protoMagic...)
	head = appendField(head, 1, typeMeta)
	head = append(head, 2<<3|2)
	head = binary.AppendUvarint(head, uint64(size))
	return head, []byte{3<<3 | 2, 0, 4<<3 | 2, 0}
}

func appendField(dst []byte, number byte, value []byte) []byte {
	dst = append(dst, number<<3|2)
	dst = binary.AppendUvarint(dst, uint64(len(value)))
	return append(dst, value...)
}

func writeField(w *bufio.Writer, number byte, value []byte) {
	var head [binary.MaxVarintLen64 + 1]byte
	head[0] = number<<3 | 2
	n := binary.PutUvarint(head[1:], uint64(len(value)))
	_, _ = w.Write(head[:1+n])
	_, _ = w.Write(value)
}

// fieldBytes is the size of a field of length-delimited bytes.
func fieldBytes(n int) int {
	size := 2 + n
	for v := n; v >= 0x80; v >>= 7 {
		size++
	}
	return size
}

// typedList decodes a page into a list of the version, or what is to be made
// of it.
func (c *call) typedList(p page) (runtime.Object, error) {
	objs := make([]runtime.Object, 0, len(p.objects))
	for _, o := range p.objects {
		obj, err := c.res.decodedOnce(o) // a long list is not worth keeping decoded
		if err == nil {
			obj, err = c.versioned(obj)
		}
		if err != nil {
			return nil, err
		}
		objs = append(objs, obj)
	}
	switch c.out.as {
	case "Table":
		return c.table(objs, p.listMeta())
	case "PartialObjectMetadataList":
		return c.partialList(objs, p.listMeta())
	}
	if c.res.custom != nil {
		return c.fillCustom(objs, p), nil
	}
	return c.fill(objs, p.listMeta())
}

// fill makes a typed list; its items do not repeat their kind.
func (c *call) fill(objs []runtime.Object, m metav1.ListMeta) (runtime.Object, error) {
	list := c.res.newList()
	for _, obj := range objs {
		obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	if err := meta.SetList(list, objs); err != nil {
		return nil, err
	}
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return nil, err
	}
	accessor.SetResourceVersion(m.ResourceVersion)
	accessor.SetContinue(m.Continue)
	accessor.SetRemainingItemCount(m.RemainingItemCount)
	list.GetObjectKind().SetGroupVersionKind(c.res.gvk.GroupVersion().WithKind(c.res.listKind()))
	return list, nil
}

func (c *call) partialList(objs []runtime.Object, m metav1.ListMeta) (runtime.Object, error) {
	list := &metav1.PartialObjectMetadataList{ListMeta: m, Items: []metav1.PartialObjectMetadata{}}
	list.SetGroupVersionKind(c.metaKind("PartialObjectMetadataList"))
	for _, obj := range objs {
		p, err := c.partial(obj)
		if err != nil {
			return nil, err
		}
		list.Items = append(list.Items, *p)
	}
	return list, nil
}
