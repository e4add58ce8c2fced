package patch

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// place is where in a document a JSON pointer (RFC 6901) leads: a key of an
// object or list that is there, whether or not the key is.
type place struct {
	object map[string]any
	list   []any
	key    string
	// store puts the list back after its length has changed.
	store func([]any)
}

var errNoPath = errors.New("the document has no such path")

// unescape undoes the pointer's escapes in the library's way, in one pass.
var unescape = strings.NewReplacer("~1", "/", "~0", "~").Replace

// find follows a pointer to the place of its last element. What comes before
// the first slash is not looked at.
func (d *document) find(pointer string) (*place, error) {
	_, rest, ok := strings.Cut(pointer, "/")
	if !ok {
		return nil, errNoPath
	}
	at := &place{store: func(l []any) { d.root = l }}
	at.object, at.list = container(d.root)
	for {
		part, more, ok := strings.Cut(rest, "/")
		at.key = unescape(part)
		if at.object == nil && at.list == nil {
			return nil, errNoPath
		}
		if !ok {
			return at, nil
		}
		if err := at.descend(); err != nil {
			return nil, err
		}
		rest = more
	}
}

// container returns a value as an object or a list, never nil if it is one.
func container(v any) (map[string]any, []any) {
	switch v := v.(type) {
	case map[string]any:
		return v, nil
	case []any:
		if v == nil {
			v = []any{}
		}
		return nil, v
	}
	return nil, nil
}

// descend goes from a place into what is there.
func (p *place) descend() error {
	v, err := p.get()
	if err != nil {
		return err
	}
	object, list, key := p.object, p.list, p.key
	p.store = func(l []any) { object[key] = l }
	if object == nil {
		i, _ := index(key, len(list))
		p.store = func(l []any) { list[i] = l }
	}
	p.object, p.list = container(v)
	return nil
}

// index reads a list's index; negative ones count from the end.
func index(key string, length int) (int, error) {
	i, err := strconv.Atoi(key)
	if err != nil {
		return 0, fmt.Errorf("%q is no index", key)
	}
	if i < 0 {
		i += length
	}
	if i < 0 || i >= length {
		return 0, fmt.Errorf("index %s of a list of %d", key, length)
	}
	return i, nil
}

// get returns what is at the place; of an object's missing key, null.
func (p *place) get() (any, error) {
	if p.object != nil {
		return p.object[p.key], nil
	}
	i, err := index(p.key, len(p.list))
	if err != nil {
		return nil, err
	}
	return p.list[i], nil
}

func (p *place) set(v any) error {
	if p.object != nil {
		p.object[p.key] = v
		return nil
	}
	i, err := index(p.key, len(p.list))
	if err != nil {
		return err
	}
	p.list[i] = v
	return nil
}

func (d *document) add(pointer string, v any) error {
	at, err := d.find(pointer)
	if err != nil {
		return err
	}
	if at.object != nil {
		at.object[at.key] = v
		return nil
	}
	i := len(at.list)
	if at.key != "-" {
		if i, err = index(at.key, len(at.list)+1); err != nil {
			return err
		}
	}
	if err := d.move(len(at.list) - i); err != nil {
		return err
	}
	at.store(slices.Insert(at.list, i, v))
	return nil
}

func (d *document) remove(pointer string) (any, error) {
	at, err := d.find(pointer)
	if err != nil {
		return nil, err
	}
	if at.object != nil {
		v, ok := at.object[at.key]
		if !ok {
			return nil, errNoPath
		}
		delete(at.object, at.key)
		return v, nil
	}
	i, err := index(at.key, len(at.list))
	if err != nil {
		return nil, err
	}
	if err := d.move(len(at.list) - i); err != nil {
		return nil, err
	}
	v := at.list[i]
	at.store(slices.Delete(at.list, i, i+1))
	return v, nil
}

// move counts items of a list that change their index.
func (d *document) move(items int) error {
	if d.moved += items; d.moved > maxMoved {
		return tooLarge("a JSON patch moves list items more than %d times", maxMoved)
	}
	return nil
}
