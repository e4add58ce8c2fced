package schema

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
	"weak"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Pool makes one schema of all that are written alike. It keeps none alive.
// Safe for concurrent use; the zero value is ready.
type Pool struct {
	mu      sync.Mutex
	schemas map[[sha256.Size]byte]weak.Pointer[Schema]
}

// Get returns the schema that is written as the given JSON; nil is none.
func (p *Pool) Get(text []byte) (*Schema, error) {
	sum := sha256.Sum256(text)
	if s := p.known(sum); s != nil {
		return s, nil
	}
	var props *apiextensionsv1.JSONSchemaProps
	if len(text) > 0 {
		if err := json.Unmarshal(text, &props); err != nil {
			return nil, fmt.Errorf("decode the schema: %w", err)
		}
	}
	s, err := New(props)
	if err != nil {
		return nil, err
	}
	return p.add(sum, s), nil
}

func (p *Pool) known(sum [sha256.Size]byte) *Schema {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.schemas[sum].Value()
}

// add returns the given schema, or one that another has added meanwhile.
func (p *Pool) add(sum [sha256.Size]byte, s *Schema) *Schema {
	p.mu.Lock()
	defer p.mu.Unlock()
	if first := p.schemas[sum].Value(); first != nil {
		return first
	}
	if p.schemas == nil {
		p.schemas = map[[sha256.Size]byte]weak.Pointer[Schema]{}
	}
	p.schemas[sum] = weak.Make(s)
	runtime.AddCleanup(s, p.forget, sum)
	return s
}

// forget drops what nobody holds any more.
func (p *Pool) forget(sum [sha256.Size]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.schemas[sum].Value() == nil {
		delete(p.schemas, sum)
	}
}
