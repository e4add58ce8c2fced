package client

import (
	"reflect"
	"strings"
)

// fieldName is what a field is called in JSON. An embedded field without a name of
// its own lends its fields to the struct around it. The name is "" if the tag has
// an option that changes how a value is written.
func fieldName(f reflect.StructField) (name string, embedded, skip bool) {
	tag := f.Tag.Get("json")
	if tag == "-" {
		return "", false, true
	}
	name, options, _ := strings.Cut(tag, ",")
	for option := range strings.SplitSeq(options, ",") {
		if option == "string" {
			return "", false, false
		}
	}
	if f.Anonymous && name == "" {
		return f.Name, true, false
	}
	if !f.IsExported() {
		return "", false, true
	}
	if name == "" {
		name = f.Name
	}
	return name, false, false
}
