package kinds

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The functions below let a kind be declared with functions on its own type;
// each panics when handed an object of another.

func newOf[T any, P interface {
	*T
	runtime.Object
}]() runtime.Object {
	return P(new(T))
}

func each[T runtime.Object](f func(T)) func(runtime.Object) {
	return func(obj runtime.Object) { f(obj.(T)) }
}

func eachPair[T runtime.Object](f func(obj, old T)) func(obj, old runtime.Object) {
	return func(obj, old runtime.Object) { f(obj.(T), old.(T)) }
}

func check[T runtime.Object](f func(T) field.ErrorList) func(runtime.Object) field.ErrorList {
	return func(obj runtime.Object) field.ErrorList { return f(obj.(T)) }
}

func checkPair[T runtime.Object](f func(obj, old T) field.ErrorList) func(obj, old runtime.Object) field.ErrorList {
	return func(obj, old runtime.Object) field.ErrorList { return f(obj.(T), old.(T)) }
}

// warn hands f a nil old on create.
func warn[T runtime.Object](f func(obj, old T) []string) func(obj, old runtime.Object) []string {
	return func(obj, old runtime.Object) []string {
		before, _ := old.(T)
		return f(obj.(T), before)
	}
}

func fieldSet[T runtime.Object](f func(T) fields.Set) func(runtime.Object) fields.Set {
	return func(obj runtime.Object) fields.Set { return f(obj.(T)) }
}

func cells[T runtime.Object](f func(obj T, now metav1.Time) []any) func(runtime.Object, metav1.Time) []any {
	return func(obj runtime.Object, now metav1.Time) []any { return f(obj.(T), now) }
}

// Age is the age of t as tables show it.
func Age(t, now metav1.Time) string { return ageAt(t.Time, now) }

func ageAt(t time.Time, now metav1.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(t))
}

// column is a table column that is always shown, wideColumn one for -o wide.
func column(name, description string) metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: name, Type: "string", Description: description}
}

func wideColumn(name, description string) metav1.TableColumnDefinition {
	c := column(name, description)
	c.Priority = 1
	return c
}

func nameColumn() metav1.TableColumnDefinition {
	c := column("Name", "Name of the object.")
	c.Format = "name"
	return c
}

func ageColumn() metav1.TableColumnDefinition {
	return column("Age", "Time since the object was created.")
}

// orElse is s, or what to show in its place when it is empty.
func orElse(s, empty string) string {
	if s == "" {
		return empty
	}
	return s
}

// setDefault makes p point to value when it points to nothing.
func setDefault[T any](p **T, value T) {
	if *p == nil {
		*p = &value
	}
}

// setEmpty gives v the value when it has the zero one.
func setEmpty[T comparable](v *T, value T) {
	var zero T
	if *v == zero {
		*v = value
	}
}
