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

func main() {
	types := source()
	lines := map[string]string{}
	for name, t := range types {
		lines[name] = atom(t.Atom)
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

func atom(a smd.Atom) string {
	var parts []string
	if a.Scalar != nil {
		parts = append(parts, "$"+string(*a.Scalar)[:1])
	}
	if a.List != nil {
		parts = append(parts, "["+relation(a.List.ElementRelationship)+strings.Join(a.List.Keys, ",")+":"+ref(a.List.ElementType)+"]")
	}
	if a.Map != nil {
		parts = append(parts, "{"+relation(a.Map.ElementRelationship)+ref(a.Map.ElementType)+fields(a.Map.Fields)+"}")
	}
	return strings.Join(parts, "|")
}

func fields(list []smd.StructField) string {
	var b strings.Builder
	for _, f := range list {
		fmt.Fprintf(&b, " %s:%s", f.Name, ref(f.Type))
		if f.Default != nil {
			text, err := json.Marshal(plain(f.Default))
			if err != nil {
				log.Fatal(err)
			}
			fmt.Fprintf(&b, "=%d:%s", len(text), text)
		}
	}
	return b.String()
}

// plain turns what a YAML decoder made into what JSON can write.
func plain(v any) any {
	m, ok := v.(map[any]any)
	if !ok {
		return v
	}
	out := map[string]any{}
	for k, e := range m {
		out[k.(string)] = plain(e)
	}
	return out
}

func ref(r smd.TypeRef) string {
	if r.Nullable {
		log.Fatalf("%v is nullable, which the notation does not have", r)
	}
	text := atom(r.Inlined)
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
