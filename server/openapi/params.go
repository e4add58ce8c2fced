package openapi

import (
	"cmp"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// parameter is a query or path parameter.
type parameter struct {
	name, in, description string
	kind                  string // "string", "integer", "boolean"
}

func (p parameter) required() bool { return p.in == "path" }

// inline tells whether version 2 repeats the parameter at each operation instead
// of referring to a common one: kubectl looks for these two there.
func (p parameter) inline() bool {
	return p.name == "dryRun" || p.name == "fieldValidation" || p.name == "name"
}

var (
	prettyParam = parameter{"pretty", "query", "Indents the answer for people to read if 'true'.", "string"}
	inNamespace = parameter{"namespace", "path", "The namespace of the objects.", "string"}
	proxiedPath = parameter{"path", "path", "The path behind the proxy.", "string"}
)

func nameParam(kind string) parameter {
	return parameter{"name", "path", "name of the " + kind, "string"}
}

// unsupported are parameters of the options that this server does not have.
var unsupported = []string{
	"ignoreStoreReadErrorWithClusterBreakingPotential", "shardSelector", // alpha
}

// optionParams are the parameters of each verb: the fields of the options that
// clients send with it, described as the options' type does.
type optionParams struct {
	list, create, update, patch, delete, deleteCollection []parameter
}

func newOptionParams() optionParams {
	p := optionParams{
		list:   queryParams(reflect.TypeFor[metav1.ListOptions]()),
		create: queryParams(reflect.TypeFor[metav1.CreateOptions]()),
		update: queryParams(reflect.TypeFor[metav1.UpdateOptions]()),
		patch:  queryParams(reflect.TypeFor[metav1.PatchOptions]()),
		delete: queryParams(reflect.TypeFor[metav1.DeleteOptions]()),
	}
	selecting := slices.DeleteFunc(slices.Clone(p.list), func(p parameter) bool {
		return p.name == "watch" || p.name == "allowWatchBookmarks"
	})
	p.deleteCollection = sortParams(slices.Concat(selecting, p.delete))
	return p
}

// queryParams returns the fields of options as parameters, sorted by name.
// Fields that are objects cannot be said in a query.
func queryParams(t reflect.Type) []parameter {
	doc := docOf(reflect.New(t).Interface())
	var found []parameter
	for i := range t.NumField() {
		f := t.Field(i)
		name := jsonName(f)
		kind := queryKind(f.Type)
		if name != "" && kind != "" && !slices.Contains(unsupported, name) {
			found = append(found, parameter{name, "query", doc[name], kind})
		}
	}
	return sortParams(found)
}

// queryKind returns the type of a parameter; a list is a parameter that may be
// repeated.
func queryKind(t reflect.Type) string {
	t = deref(t)
	if t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Struct, reflect.Map, reflect.Interface:
		return ""
	}
	kind, _ := scalar(t.Kind())
	return kind
}

func sortParams(params []parameter) []parameter {
	slices.SortFunc(params, func(a, b parameter) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.in, b.in))
	})
	return params
}
