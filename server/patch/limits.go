package patch

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// The limits of a patch. The size of the document is the caller's to bound.
const (
	// MaxOperations of one JSON patch, as in the real server.
	MaxOperations = 10_000
	// MaxDepth is how deep objects and lists may nest, in a patch and in what
	// comes out of it. The real server takes 10,000; no object needs 100.
	MaxDepth = 1_000
	// MaxCopied is how many bytes the copy operations of one JSON patch may add,
	// as in the real server.
	MaxCopied = 3 << 20
	// maxMoved is how many list items the operations of one JSON patch may move
	// over to make or fill a gap: 0.2 s of work.
	maxMoved = 50_000_000
	// maxCompared is how many pairs of list items a strategic merge patch may
	// make the library compare, in the worst case: 0.5 s of work.
	maxCompared = 20_000_000
	// maxSorted bounds the work of the library's field sets, which grows with
	// the square of the number of fields in one place: a list of 5,000 items or
	// a map of 15,000, 0.5 s of work.
	maxSorted = 250_000_000
	// maxForeign is how many bytes of managed fields are read from a client that
	// does not send them as they are stored.
	maxForeign = 256 << 10
)

// sorting is the work of a field set with that many items in one place.
func sorting(items int, isList bool) int {
	if isList {
		items *= 3 // compared by key, and more often
	}
	return min(items*items, maxSorted+1)
}

// sortingOf is the work of the field set of a decoded document.
func sortingOf(v any) int {
	work := 0
	switch v := v.(type) {
	case map[string]any:
		work = sorting(len(v), false)
		for _, e := range v {
			work += sortingOf(e)
		}
	case []any:
		work = sorting(len(v), true)
		for _, e := range v {
			work += sortingOf(e)
		}
	}
	return min(work, maxSorted+1)
}

// checkDepth refuses a JSON document that nests too deep. It need not be valid.
func checkDepth(doc []byte) error {
	depth, quoted := 0, false
	for i := 0; i < len(doc); i++ {
		switch c := doc[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > MaxDepth {
				return errDepth()
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}

func errDepth() error {
	return invalid("error decoding patch: exceeded max depth of %d", MaxDepth)
}

// isDeeper reports whether a decoded document nests deeper than a bound.
func isDeeper(v any, bound int) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			if bound == 0 || isDeeper(e, bound-1) {
				return true
			}
		}
	case []any:
		for _, e := range v {
			if bound == 0 || isDeeper(e, bound-1) {
				return true
			}
		}
	}
	return false
}

// decode reads one JSON value and nothing after it. Numbers stay as written.
func decode(doc []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("data after the document")
	}
	return nil
}
