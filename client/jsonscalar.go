package client

import (
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"time"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// null skips a null, which leaves what it is for as it is.
func (p *parser) null() (bool, error) {
	if p.peek() != 'n' {
		return false, nil
	}
	return true, p.literal("null")
}

func decodeBool(p *parser, at unsafe.Pointer) error {
	switch p.peek() {
	case 't':
		*(*bool)(at) = true
		return p.literal("true")
	case 'f':
		*(*bool)(at) = false
		return p.literal("false")
	case 'n':
		return p.literal("null")
	}
	return p.fail("no boolean")
}

func decodeString(p *parser, at unsafe.Pointer) error {
	switch p.peek() {
	case '"':
		s, err := p.text()
		*(*string)(at) = s
		return err
	case 'n':
		return p.literal("null")
	}
	return p.fail("no string")
}

func decodeAny(p *parser, at unsafe.Pointer) (err error) {
	*(*any)(at), err = p.value(p.depth)
	return err
}

// decodeTime is metav1.Time's own, without its detours.
func decodeTime(p *parser, at unsafe.Pointer) error {
	raw, err := p.raw()
	if err != nil {
		return err
	}
	t := (*metav1.Time)(at)
	if len(raw) > 2 && raw[0] == '"' {
		if parsed, err := time.Parse(time.RFC3339, string(raw[1:len(raw)-1])); err == nil {
			t.Time = parsed.Local()
			return nil
		}
	}
	return t.UnmarshalJSON(raw)
}

// customPlan leaves a value to its type's own method.
func customPlan(t reflect.Type) plan {
	return func(p *parser, at unsafe.Pointer) error {
		raw, err := p.raw()
		if err != nil {
			return err
		}
		return reflect.NewAt(t, at).Interface().(json.Unmarshaler).UnmarshalJSON(raw)
	}
}

func intPlan(t reflect.Type) plan {
	bits := t.Bits()
	return func(p *parser, at unsafe.Pointer) error {
		if is, err := p.null(); is || err != nil {
			return err
		}
		n, err := strconv.ParseInt(p.digits(), 10, bits)
		if err != nil {
			return p.fail("no whole number that fits")
		}
		switch bits {
		case 8:
			*(*int8)(at) = int8(n)
		case 16:
			*(*int16)(at) = int16(n)
		case 32:
			*(*int32)(at) = int32(n)
		default:
			*(*int64)(at) = n
		}
		return nil
	}
}

func uintPlan(t reflect.Type) plan {
	bits := t.Bits()
	return func(p *parser, at unsafe.Pointer) error {
		if is, err := p.null(); is || err != nil {
			return err
		}
		n, err := strconv.ParseUint(p.digits(), 10, bits)
		if err != nil {
			return p.fail("no whole number that fits")
		}
		switch bits {
		case 8:
			*(*uint8)(at) = uint8(n)
		case 16:
			*(*uint16)(at) = uint16(n)
		case 32:
			*(*uint32)(at) = uint32(n)
		default:
			*(*uint64)(at) = n
		}
		return nil
	}
}

func floatPlan(t reflect.Type) plan {
	bits := t.Bits()
	return func(p *parser, at unsafe.Pointer) error {
		if is, err := p.null(); is || err != nil {
			return err
		}
		f, err := strconv.ParseFloat(p.digits(), bits)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return p.fail("no number that fits")
		}
		if bits == 32 {
			*(*float32)(at) = float32(f)
		} else {
			*(*float64)(at) = f
		}
		return nil
	}
}

// digits reads the characters of a number. They are good until data changes.
func (p *parser) digits() string {
	p.peek()
	start := p.at
	for p.at < len(p.data) && isNumber(p.data[p.at]) {
		p.at++
	}
	return unsafe.String(unsafe.SliceData(p.data[start:p.at]), p.at-start)
}

func isNumber(c byte) bool {
	return c >= '0' && c <= '9' || c == '-' || c == '.' || c == 'e' || c == 'E' || c == '+'
}
