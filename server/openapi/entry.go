package openapi

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Document is one document as it is sent.
type Document struct {
	Body []byte // shared: nobody may change it
	// Hash changes with the body. It is the document's ETag, without quotes, and
	// the hash in the URLs of the index.
	Hash string
}

// entry is a document that is made when it is first asked for; who asks
// meanwhile waits.
//
// The index needs the hashes of all documents, but no more. So a hash can be had
// without the body: the document is written, summed up piece by piece, and
// forgotten. That costs a few milliseconds of the first index, and the memory
// of no document that nobody reads.
type entry struct {
	write func(*jsonWriter, *typeModels)

	mu   sync.Mutex
	hash string
	size int
	body []byte
}

// document returns the document, with its body.
func (e *entry) document() Document {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.body == nil {
		w := &jsonWriter{b: make([]byte, 0, e.size)}
		e.write(w, newTypeModels())
		e.body = slices.Clip(w.b)
		if e.hash == "" {
			e.hash = hashText(sha256.Sum256(e.body))
		}
	}
	return Document{Body: e.body, Hash: e.hash}
}

// sum returns the hash. types are for the models of this document and others.
func (e *entry) sum(types *typeModels) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.hash == "" {
		h := sha256.New()
		w := &jsonWriter{flush: func(b []byte) { h.Write(b) }}
		e.write(w, types)
		h.Write(w.b)
		e.size = w.written + len(w.b)
		e.hash = hashText([sha256.Size]byte(h.Sum(nil)))
	}
	return e.hash
}

func hashText(sum [sha256.Size]byte) string {
	return strings.ToUpper(hex.EncodeToString(sum[:]))
}

// fingerprinted gives an entry the hash that follows from its resources, if they
// tell.
func (e *entry) fingerprinted(resources []Resource) *entry {
	h := sha256.New()
	for _, r := range resources {
		if r.Fingerprint == "" {
			return e
		}
		h.Write([]byte(r.GVK.String() + "\x00" + r.Plural + "\x00" + r.Fingerprint + "\x00"))
	}
	e.hash = hashText([sha256.Size]byte(h.Sum(nil)))
	return e
}

// v3Entry is a document of version 3 with what add puts into it.
func v3Entry(add func(*documentBuilder)) *entry {
	return &entry{write: func(w *jsonWriter, types *typeModels) {
		b := newDocumentBuilder(types)
		add(b)
		writeV3(w, b.done())
	}}
}

func writeIndex(w *jsonWriter, types *typeModels, v3 map[string]*entry) {
	w.open('{')
	w.key("paths")
	w.open('{')
	for _, path := range slices.Sorted(maps.Keys(v3)) {
		w.key(path)
		w.open('{')
		w.field("serverRelativeURL", "/openapi/v3/"+path+"?hash="+v3[path].sum(types))
		w.close('}')
	}
	w.close('}')
	w.close('}')
}
