package patch

import "reflect"

// check walks a value for what the library would refuse: items of keyed lists
// without a key. It adds up the work of the value's field set. Leaves that have
// no such lists in them are not walked.
func (w *setWriter) check(v reflect.Value, s *shape) error {
	if s == nil {
		return errOpaque
	}
	form := s.form
	if form == leaf {
		form = s.inside
	}
	if s.form == leaf && form == opaque || s.isNull(v) {
		return nil
	}
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	s.fill()
	switch form {
	case record:
		return w.checkRecord(v, s)
	case table:
		w.work += sorting(v.Len(), false)
		for iter := v.MapRange(); iter.Next(); {
			if err := w.check(iter.Value(), s.elem); err != nil {
				return err
			}
		}
		return nil
	case keyed, set, array:
		return w.checkList(v, s)
	}
	return errOpaque
}

func (w *setWriter) checkRecord(v reflect.Value, s *shape) error {
	for i := range s.fields {
		f := &s.fields[i]
		if field := f.GetFrom(v); !f.CanOmit(field) {
			if err := w.check(field, f.shape); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *setWriter) checkList(v reflect.Value, s *shape) error {
	w.work += sorting(v.Len(), true)
	first := len(w.parts)
	for i := range v.Len() {
		if s.form == keyed || s.form == set {
			if _, err := w.keyOf(v.Index(i), s); err != nil {
				return err
			}
			w.parts = w.parts[:first]
		}
		if err := w.check(v.Index(i), s.elem); err != nil {
			return err
		}
	}
	return nil
}
