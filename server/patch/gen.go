//go:build ignore

// Gen writes schema.txt: the structured-merge-diff types that the apply
// configurations of client-go carry, and those of custom resource definitions,
// in the notation that catalog.go reads.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"maps"
	"os"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	definitions "k8s.io/apiextensions-apiserver/pkg/client/applyconfiguration"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
)

// keys are the fields, as type.field, by which lists tell items of a type apart.
// Only for these does structured-merge-diff look at defaults.
var keys = map[string]bool{}

func main() {
	crds := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(crds); err != nil {
		log.Fatal(err)
	}
	lines := map[string]string{}
	add(lines, crds, definitions.NewTypeConverter(crds), apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	// Last, so that types which both have are those of client-go.
	add(lines, scheme.Scheme, applyconfigurations.NewTypeConverter(scheme.Scheme), schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	if err := os.WriteFile("schema.txt", render(lines), 0o644); err != nil {
		log.Fatal(err)
	}
}

// add adds the lines of all types that a converter knows, and of the kinds of a
// scheme that are among them. sample is one of these.
func add(lines map[string]string, kinds *runtime.Scheme, converter managedfields.TypeConverter, sample schema.GroupVersionKind) {
	types := source(kinds, converter, sample)
	for _, t := range types {
		findKeys(t.Atom)
	}
	for name, t := range types {
		if !strings.Contains(name, ".apiextensions.v1beta1.") {
			lines[name] = atom(name, t.Atom)
		}
	}
	for gvk := range kinds.AllKnownTypes() {
		name, err := kinds.ToOpenAPIDefinitionName(gvk)
		if err != nil {
			continue // a list, or options
		}
		if _, ok := types[name]; ok && isObject(kinds, gvk) {
			lines[gvk.GroupVersion().String()+"/"+gvk.Kind] = name
		}
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

// source returns all types of a converter's schema. A value of any kind has it.
func source(kinds *runtime.Scheme, converter managedfields.TypeConverter, sample schema.GroupVersionKind) map[string]smd.TypeDef {
	obj, err := kinds.New(sample)
	if err != nil {
		log.Fatal(err)
	}
	obj.GetObjectKind().SetGroupVersionKind(sample)
	value, err := converter.ObjectToTyped(obj)
	if err != nil {
		log.Fatal(err)
	}
	all := map[string]smd.TypeDef{}
	for _, t := range value.Schema().Types {
		all[t.Name] = t
	}
	return all
}

func isObject(kinds *runtime.Scheme, gvk schema.GroupVersionKind) bool {
	obj, err := kinds.New(gvk)
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
