package schema

// Len returns how many schemas are known.
func (p *Pool) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.schemas)
}
