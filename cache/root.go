package cache

import "slices"

// root is everything that a snapshot shows. It never changes once published.
//
// Invariants: objects and each bucket are ordered by key; terms is ordered by
// term; the ident of an entry is in exactly the buckets of its terms, and those
// hold nothing else; no bucket is empty; bytes is the sum over the entries.
//
// Buckets hold idents, not entries: an update that changes no term changes no
// bucket, and a list by index looks up the entries of what it found.
type root struct {
	objects  tree[*entry]
	terms    tree[bucket]
	indexes  []index
	revision Revision
	bytes    int
	writers  *writers // of the store; nil in a root that belongs to none
}

// bucket holds the idents that have a term.
type bucket struct {
	term *term
	set  tree[*ident]
}

func termProbe(t *term) probe[bucket] {
	return func(b bucket) int { return b.term.compare(t) }
}

// draft is the root that a writer is working on.
type draft struct {
	root
	edit edit
}

func newDraft(r *root) *draft { return &draft{root: *r, edit: newEdit()} }

// put stores an entry, and returns the one that it replaces.
func (d *draft) put(e *entry) *entry {
	old, _ := d.objects.set(d.edit, e, keyProbe[*entry](e.key))
	d.bytes += e.bytes
	var before []*term
	if old != nil {
		d.bytes -= old.bytes
		before = old.terms
	}
	if old != nil && old.ident == e.ident {
		return old
	}
	e.ident = d.adopted(e.ident)
	mergeTerms(before, e.terms, func(old, new *term) {
		if new == nil {
			d.unlist(old, e.key)
		} else {
			d.list(new, e.ident)
		}
	})
	return old
}

// remove takes an object out.
func (d *draft) remove(k Key) *entry {
	old, ok := d.objects.delete(d.edit, keyProbe[*entry](k))
	if !ok {
		return nil
	}
	d.bytes -= old.bytes
	for _, t := range old.terms {
		d.unlist(t, k)
	}
	return old
}

// adopted returns an equal ident that uses the terms of this root.
func (d *draft) adopted(i *ident) *ident {
	own := &ident{i.key, slices.Clone(i.terms)}
	for n, t := range own.terms {
		own.terms[n] = d.sharedTerm(t)
	}
	return own
}

// sharedTerm returns the pointer that stands for a term in this root.
func (d *draft) sharedTerm(t *term) *term {
	if b, ok := d.terms.get(termProbe(t)); ok {
		return b.term
	}
	return t
}

// list enters an ident under a term, in place of the one with its key.
func (d *draft) list(t *term, i *ident) {
	if b := d.terms.place(d.edit, termProbe(t)); b != nil {
		b.set.set(d.edit, i, keyProbe[*ident](i.key))
		return
	}
	d.terms.insert(d.edit, bucket{t, buildTree(d.edit, []*ident{i})}, termProbe(t))
}

func (d *draft) unlist(t *term, k Key) {
	b := d.terms.place(d.edit, termProbe(t))
	b.set.delete(d.edit, keyProbe[*ident](k))
	if b.set.len() == 0 {
		d.terms.delete(d.edit, termProbe(t))
	}
}

// mergeTerms calls visit for each term of two ordered lists, with nil for the
// list that does not have it.
func mergeTerms(a, b []*term, visit func(a, b *term)) {
	for len(a) > 0 && len(b) > 0 {
		switch c := a[0].compare(b[0]); {
		case c < 0:
			visit(a[0], nil)
			a = a[1:]
		case c > 0:
			visit(nil, b[0])
			b = b[1:]
		default:
			visit(a[0], b[0])
			a, b = a[1:], b[1:]
		}
	}
	for _, t := range a {
		visit(t, nil)
	}
	for _, t := range b {
		visit(nil, t)
	}
}

// rebuild makes the draft hold these entries, which are in order, and no others.
// Entries that it held before have its terms; the others, which nobody has seen
// yet, get them.
func (d *draft) rebuild(entries []*entry) {
	d.bytes = 0
	places := map[*term]int{}
	var buckets []bucket
	var sets [][]*ident
	known := map[term]*term{}
	for _, e := range entries {
		d.bytes += e.bytes
		d.adoptKnown(e, known)
		for _, t := range e.terms {
			place, ok := places[t]
			if !ok {
				place = len(buckets)
				places[t] = place
				buckets, sets = append(buckets, bucket{term: t}), append(sets, nil)
			}
			sets[place] = append(sets[place], e.ident)
		}
	}
	for i := range buckets {
		buckets[i].set = buildTree(d.edit, sets[i])
	}
	slices.SortFunc(buckets, func(a, b bucket) int { return a.term.compare(b.term) })
	d.objects, d.terms = buildTree(d.edit, entries), buildTree(d.edit, buckets)
}

// adoptKnown makes an entry use the terms of this root, and those that are known
// from other entries. An entry that was in this root does, and stays as it is.
func (d *draft) adoptKnown(e *entry, known map[term]*term) {
	var own *ident
	for n, t := range e.terms {
		shared, ok := known[*t]
		if !ok {
			shared = d.sharedTerm(t)
			known[*t] = shared
		}
		if shared != t && own == nil {
			own = &ident{e.key, slices.Clone(e.terms)}
		}
		if own != nil {
			own.terms[n] = shared
		}
	}
	if own != nil {
		e.ident = own
	}
}
