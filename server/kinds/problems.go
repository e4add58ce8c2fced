package kinds

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// problems collects what is wrong with an object, in the order found.
type problems struct {
	list field.ErrorList
}

func (p *problems) add(errs ...*field.Error) { p.list = append(p.list, errs...) }

// invalid adds one error for each detail; none means that value is fine.
func (p *problems) invalid(path *field.Path, value any, details ...string) {
	for _, d := range details {
		p.add(field.Invalid(path, value, d))
	}
}

func (p *problems) required(path *field.Path, detail string) { p.add(field.Required(path, detail)) }

func (p *problems) forbidden(path *field.Path, detail string) { p.add(field.Forbidden(path, detail)) }

func (p *problems) duplicate(path *field.Path, value any) { p.add(field.Duplicate(path, value)) }

// named checks a value that must be there and pass valid.
func (p *problems) named(path *field.Path, value string, valid func(string) []string) {
	if value == "" {
		p.required(path, "")
		return
	}
	p.invalid(path, value, valid(value)...)
}

// nonEmpty checks that a value is there.
func (p *problems) nonEmpty(path *field.Path, value string) {
	if value == "" {
		p.required(path, "")
	}
}

// nonNegative checks a number.
func (p *problems) nonNegative(path *field.Path, n int64) {
	if n < 0 {
		p.invalid(path, n, "must be greater than or equal to 0")
	}
}

// oneOf checks that value is one of those allowed, which the error lists in the
// order given.
func oneOf[T ~string](p *problems, path *field.Path, value T, allowed ...T) {
	for _, a := range allowed {
		if value == a {
			return
		}
	}
	p.add(field.NotSupported(path, value, allowed))
}

// chosen is oneOf for a value that must also be there.
func chosen[T ~string](p *problems, path *field.Path, value T, allowed ...T) {
	if value == "" {
		p.required(path, "")
		return
	}
	oneOf(p, path, value, allowed...)
}

// seen remembers names; it reports whether a name came before.
type seen map[string]bool

func (s seen) again(name string) bool {
	before := s[name]
	s[name] = true
	return before
}

// option is one of several fields of which exactly one is to be set.
type option struct {
	name  string
	set   bool
	check func(path *field.Path)
}

// exactlyOne checks the option that is set, forbids all after the first, and
// asks for one if there is none.
func (p *problems) exactlyOne(path *field.Path, tooMany, none string, options ...option) {
	found := false
	for _, o := range options {
		switch {
		case !o.set:
		case found:
			p.forbidden(path.Child(o.name), tooMany)
		default:
			found = true
			o.check(path.Child(o.name))
		}
	}
	if !found {
		p.required(path, none)
	}
}
