package custom

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/jsonpath"

	"github.com/even-keel/evenkeel/server/kinds"
)

// scale reads and writes replicas where the version says that they are.
func (v *Version) scale() *kinds.Scale {
	at := v.spec.Subresources.Scale
	spec, status := splitPath(at.SpecReplicasPath), splitPath(at.StatusReplicasPath)
	return &kinds.Scale{
		Check: func(obj runtime.Object) error {
			content := obj.(*unstructured.Unstructured).Object
			_, found, err := unstructured.NestedInt64(content, spec...)
			if err == nil {
				_, _, err = unstructured.NestedInt64(content, status...)
			}
			if err == nil && !found {
				err = fmt.Errorf("the spec replicas field %q does not exist", at.SpecReplicasPath)
			}
			return err
		},
		Get: func(obj runtime.Object) (int32, int32, string) {
			content := obj.(*unstructured.Unstructured).Object
			wanted, _, _ := unstructured.NestedInt64(content, spec...)
			there, _, _ := unstructured.NestedInt64(content, status...)
			selector := ""
			if at.LabelSelectorPath != nil {
				selector, _, _ = unstructured.NestedString(content, splitPath(*at.LabelSelectorPath)...)
			}
			return int32(wanted), int32(there), selector
		},
		Set: func(obj runtime.Object, replicas int32) {
			// It fails where a parent is no object: then validation does, too.
			_ = unstructured.SetNestedField(obj.(*unstructured.Unstructured).Object, int64(replicas), spec...)
		},
	}
}

// addFields makes fields selectable. Definitions with a bad path are refused, so
// that one that cannot be read has no value.
func (v *Version) addFields(k *kinds.Kind) {
	if len(v.spec.SelectableFields) == 0 {
		return
	}
	paths := map[string]*jsonpath.JSONPath{}
	for _, f := range v.spec.SelectableFields {
		name := strings.TrimPrefix(f.JSONPath, ".")
		k.Fields = append(k.Fields, name)
		if path, err := parsePath(name, f.JSONPath); err == nil {
			paths[name] = path
		}
	}
	k.FieldSet = func(obj runtime.Object) fields.Set {
		set := fields.Set{}
		for name, path := range paths {
			set[name] = ""
			if value, ok := find(path, obj); ok && value != nil {
				set[name] = fmt.Sprint(value)
			}
		}
		return set
	}
}

func parsePath(name, path string) (*jsonpath.JSONPath, error) {
	p := jsonpath.New(name).AllowMissingKeys(true)
	return p, p.Parse("{" + path + "}")
}

// find returns what is at a path.
func find(path *jsonpath.JSONPath, obj runtime.Object) (any, bool) {
	results, err := path.FindResults(obj.(runtime.Unstructured).UnstructuredContent())
	if err != nil || len(results) == 0 || len(results[0]) == 0 {
		return nil, false
	}
	return results[0][0].Interface(), true
}

var metaDocs = metav1.ObjectMeta{}.SwaggerDoc()

// addColumns makes the table: the name, and the columns of the version or the
// age.
func (v *Version) addColumns(k *kinds.Kind) {
	columns := v.spec.Columns
	if len(columns) == 0 {
		columns = []apiextensionsv1.CustomResourceColumnDefinition{
			{Name: "Age", Type: "date", Description: metaDocs["creationTimestamp"], JSONPath: ".metadata.creationTimestamp"},
		}
	}
	k.Columns = []metav1.TableColumnDefinition{{Name: "Name", Type: "string", Format: "name", Description: metaDocs["name"]}}
	var paths []*jsonpath.JSONPath
	for _, c := range columns {
		path, err := parsePath(c.Name, c.JSONPath)
		if err != nil {
			break // as the real server, which shows the columns before it
		}
		description := c.Description
		if description == "" {
			description = "Custom resource definition column (in JSONPath format): " + c.JSONPath
		}
		paths = append(paths, path)
		k.Columns = append(k.Columns, metav1.TableColumnDefinition{
			Name: c.Name, Type: c.Type, Format: c.Format, Description: description, Priority: c.Priority,
		})
	}
	k.Cells = func(obj runtime.Object, now metav1.Time) []any {
		row := []any{obj.(*unstructured.Unstructured).GetName()}
		for i, path := range paths {
			row = append(row, cell(path, k.Columns[i+1].Type, obj, now))
		}
		return row
	}
}

// cell is what a table shows of a value: nil if it is not of the column's type.
func cell(path *jsonpath.JSONPath, kind string, obj runtime.Object, now metav1.Time) any {
	value, ok := find(path, obj)
	if !ok {
		return nil
	}
	switch kind {
	case "string":
		var text bytes.Buffer
		if path.PrintResults(&text, []reflect.Value{reflect.ValueOf(value)}) != nil {
			return nil
		}
		return text.String()
	case "integer":
		if n, ok := value.(int64); ok {
			return n
		}
		if n, err := number(value); err == nil {
			return int64(n)
		}
	case "number":
		if n, err := number(value); err == nil {
			return n
		}
	case "boolean":
		if b, ok := value.(bool); ok {
			return b
		}
	case "date":
		return dateCell(value, now)
	}
	return nil
}

var errNoNumber = errors.New("not a number")

func number(value any) (float64, error) {
	switch n := value.(type) {
	case int64:
		return float64(n), nil
	case float64:
		return n, nil
	case json.Number:
		return n.Float64()
	}
	return 0, errNoNumber
}

func dateCell(value any, now metav1.Time) any {
	text, ok := value.(string)
	if !ok {
		return nil
	}
	var t metav1.Time
	if t.UnmarshalQueryParameter(text) != nil {
		return "<invalid>"
	}
	return kinds.Age(t, now)
}
