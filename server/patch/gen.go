//go:build ignore

// Gen writes schema.txt: the structured-merge-diff types that client-go's apply
// configurations carry, in the notation that catalog.go reads.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"maps"
	"os"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
)

// keys are the fields, as type.field, by which lists tell items of a type apart.
// Only for these does structured-merge-diff look at defaults.
var keys = map[string]bool{}

func main() {
	types := source()
	for _, t := range types {
		findKeys(t.Atom)
	}
	lines := map[string]string{}
	for name, t := range types {
		lines[name] = atom(name, t.Atom)
	}
	for gvk := range scheme.Scheme.AllKnownTypes() {
		name, err := scheme.Scheme.ToOpenAPIDefinitionName(gvk)
		if err != nil {
			continue // a list, or options
		}
		if _, ok := types[name]; ok && isObject(gvk) {
			lines[gvk.GroupVersion().String()+"/"+gvk.Kind] = name
		}
	}
	if err := os.WriteFile("schema.txt", render(lines), 0o644); err != nil {
		log.Fatal(err)
	}
}

func findKeys(a smd.Atom) {
	if a.List != nil {
		for _, key := range a.List.Keys {
			keys[*a.List.ElementType.NamedType+"."+key] = true
		}
		findKeys(a.List.ElementType.Inlined)
	}
	if a.Map != nil {
		findKeys(a.Map.ElementType.Inlined)
		for _, f := range a.Map.Fields {
			findKeys(f.Type.Inlined)
		}
	}
}

// source returns all types of client-go's schema. A value of any kind has it.
func source() map[string]smd.TypeDef {
	gvk := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	obj, err := scheme.Scheme.New(gvk)
	if err != nil {
		log.Fatal(err)
	}
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	value, err := applyconfigurations.NewTypeConverter(scheme.Scheme).ObjectToTyped(obj)
	if err != nil {
		log.Fatal(err)
	}
	all := map[string]smd.TypeDef{}
	for _, t := range value.Schema().Types {
		all[t.Name] = t
	}
	return all
}

func isObject(gvk schema.GroupVersionKind) bool {
	obj, err := scheme.Scheme.New(gvk)
	if err != nil {
		return false
	}
	_, ok := obj.(metav1.ObjectMetaAccessor)
	return ok
}

func render(lines map[string]string) []byte {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(lines)) {
		b.WriteString(key + " " + lines[key] + "\n")
	}
	return []byte(b.String())
}

// atom writes an atom; name is that of the type it belongs to, if it has one.
func atom(name string, a smd.Atom) string {
	var parts []string
	if a.Scalar != nil {
		parts = append(parts, "$"+string(*a.Scalar)[:1])
	}
	if a.List != nil {
		parts = append(parts, "["+relation(a.List.ElementRelationship)+strings.Join(a.List.Keys, ",")+":"+ref(a.List.ElementType)+"]")
	}
	if a.Map != nil {
		parts = append(parts, "{"+relation(a.Map.ElementRelationship)+ref(a.Map.ElementType)+fields(name, a.Map.Fields)+"}")
	}
	return strings.Join(parts, "|")
}

func fields(owner string, list []smd.StructField) string {
	var b strings.Builder
	for _, f := range list {
		fmt.Fprintf(&b, " %s:%s", f.Name, ref(f.Type))
		if f.Default == nil || !keys[owner+"."+f.Name] {
			continue
		}
		text, err := json.Marshal(f.Default)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Fprintf(&b, "=%d:%s", len(text), text)
	}
	return b.String()
}

func ref(r smd.TypeRef) string {
	if r.Nullable {
		log.Fatalf("%v is nullable, which the notation does not have", r)
	}
	text := atom("", r.Inlined)
	if r.NamedType != nil {
		text = *r.NamedType
	}
	if r.ElementRelationship != nil {
		text += "!" + relation(*r.ElementRelationship)
	}
	return text
}

func relation(r smd.ElementRelationship) string {
	if r == "" {
		return "-"
	}
	if r == smd.Associative {
		return "c"
	}
	return string(r)[:1]
}
