package rest

import (
	"cmp"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// plainColumns are those of kinds that have no others.
var plainColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "The name, unique in its namespace"},
	{Name: "Created At", Type: "date", Description: "When the object was created"},
}

// metaKind is a kind of meta.k8s.io in the version that the client asked for.
func (c *call) metaKind(kind string) schema.GroupVersionKind {
	gvk := metav1.SchemeGroupVersion.WithKind(kind)
	gvk.Version = cmp.Or(c.out.version, gvk.Version)
	return gvk
}

// table makes a table of objects in the version of the request.
func (c *call) table(objs []runtime.Object, list metav1.ListMeta) (*metav1.Table, error) {
	t := &metav1.Table{ListMeta: list, Rows: []metav1.TableRow{}}
	t.SetGroupVersionKind(c.metaKind("Table"))
	t.ColumnDefinitions = c.res.kind.Columns
	if t.ColumnDefinitions == nil {
		t.ColumnDefinitions = plainColumns
	}
	for _, obj := range objs {
		row, err := c.row(obj)
		if err != nil {
			return nil, err
		}
		t.Rows = append(t.Rows, row)
	}
	return t, nil
}

func (c *call) row(obj runtime.Object) (metav1.TableRow, error) {
	stored, err := c.res.toStored(obj)
	if err != nil {
		return metav1.TableRow{}, err
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return metav1.TableRow{}, err
	}
	var row metav1.TableRow
	if c.res.kind.Cells != nil {
		row.Cells = c.res.kind.Cells(stored, metav1.NewTime(c.api.now()))
	} else {
		row.Cells = []any{m.GetName(), m.GetCreationTimestamp().UTC().Format(time.RFC3339)}
	}
	if c.res.kind.RowConditions != nil {
		row.Conditions = c.res.kind.RowConditions(stored)
	}
	row.Object, err = c.rowObject(obj)
	return row, err
}

// rowObject is as much of an object as the client wants with its row.
func (c *call) rowObject(obj runtime.Object) (runtime.RawExtension, error) {
	switch c.query.Get("includeObject") {
	case "None":
		return runtime.RawExtension{}, nil
	case "Object":
		return runtime.RawExtension{Object: obj}, nil
	}
	p, err := c.partial(obj)
	return runtime.RawExtension{Object: p}, err
}

func checkIncludeObject(value string) error {
	switch value {
	case "", "None", "Metadata", "Object":
		return nil
	}
	return apierrors.NewBadRequest(fmt.Sprintf("Unable to convert to Table as requested: includeObject: Invalid value: %q: must be 'Metadata', 'Object', 'None', or empty", value))
}

func resourceVersion(obj runtime.Object) string {
	m, err := meta.Accessor(obj)
	if err != nil {
		return ""
	}
	return m.GetResourceVersion()
}
