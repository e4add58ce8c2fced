package explore

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/even-keel/evenkeel/client"
)

// snapshot is what a server holds of some resources.
type snapshot struct {
	objects map[string][]*unstructured.Unstructured // by path
	// revisions are those of the lists.
	revisions map[string]string
}

// start returns the revision before a run.
func start(ctx context.Context, conn *client.Conn) (uint64, error) {
	const any = "/api/v1/namespaces"
	s, err := read(ctx, conn, []string{any})
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(s.revisions[any], 10, 64)
}

// read lists resources, of all namespaces. What is not served has no objects.
func read(ctx context.Context, conn *client.Conn, paths []string) (snapshot, error) {
	s := snapshot{objects: map[string][]*unstructured.Unstructured{}, revisions: map[string]string{}}
	for _, path := range paths {
		content, err := conn.Get(ctx, path)
		if client.IsNotFound(err) {
			continue
		}
		if err != nil {
			return s, fmt.Errorf("list %s: %w", path, err)
		}
		var list struct {
			Metadata struct {
				ResourceVersion string `json:"resourceVersion"`
			} `json:"metadata"`
			Items []map[string]any `json:"items"`
		}
		if err := json.Unmarshal(content, &list); err != nil {
			return s, fmt.Errorf("list %s: %w", path, err)
		}
		s.revisions[path] = list.Metadata.ResourceVersion
		for _, item := range list.Items {
			s.objects[path] = append(s.objects[path], &unstructured.Unstructured{Object: item})
		}
	}
	return s, nil
}

// mark is the same for two snapshots if nothing was written between them.
func (s snapshot) mark() string {
	var all []string
	for _, objs := range s.objects {
		for _, o := range objs {
			all = append(all, string(o.GetUID())+"@"+o.GetResourceVersion())
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// learn notes the names that were generated.
func (s snapshot) learn(r *record) {
	for _, objs := range s.objects {
		for _, o := range objs {
			var n named
			n.Metadata.Name, n.Metadata.GenerateName = o.GetName(), o.GetGenerateName()
			r.learn(n)
		}
	}
}

var (
	times = regexp.MustCompile(`"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"`)
	uids  = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
)

// normal are the objects as text, by what stands for their names, without what differs
// between any two runs. Of what nobody has written in this run, it is only said that it
// is there.
func (s snapshot) normal(r *record, began uint64, keep func(*unstructured.Unstructured) bool) map[string]string {
	names := s.stands(r)
	texts := map[string][]string{}
	for path, objs := range s.objects {
		for _, o := range objs {
			revision, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
			key := identity(path, o, names)
			if keep != nil && !keep(o) {
				continue
			}
			text := "as it was before the first step"
			if err != nil || revision > began {
				text = times.ReplaceAllString(names.Replace(normalText(o)), `"a time"`)
				text = uids.ReplaceAllString(text, "uid of what is gone")
			}
			texts[key] = append(texts[key], text)
		}
	}
	out := map[string]string{}
	for key, all := range texts {
		slices.Sort(all)
		for i, text := range all {
			if len(all) > 1 {
				out[fmt.Sprintf("%s (%d of %d)", key, i+1, len(all))] = text
			} else {
				out[key] = text
			}
		}
	}
	return out
}

func identity(path string, o *unstructured.Unstructured, names *strings.Replacer) string {
	resource := path[strings.LastIndex(path, "/")+1:]
	if ns := o.GetNamespace(); ns != "" {
		return resource + " " + ns + "/" + names.Replace(o.GetName())
	}
	return resource + " " + names.Replace(o.GetName())
}

// stands replaces generated names and uids by what stands for them.
func (s snapshot) stands(r *record) *strings.Replacer {
	s.learn(r)
	r.mu.Lock()
	defer r.mu.Unlock()
	type pair struct{ old, now string }
	var pairs []pair
	for name, stand := range r.generated {
		pairs = append(pairs, pair{name, stand})
	}
	for path, objs := range s.objects {
		for _, o := range objs {
			name := o.GetName()
			pairs = append(pairs, pair{string(o.GetUID()), "uid of " + path[strings.LastIndex(path, "/")+1:] + " " + cmp.Or(r.generated[name], name)})
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int { return cmp.Or(len(b.old)-len(a.old), strings.Compare(a.old, b.old)) })
	var flat []string
	for _, p := range pairs {
		flat = append(flat, p.old, p.now)
	}
	return strings.NewReplacer(flat...)
}

// normalText is an object without what the server adds, and with generations that were
// observed told apart from others.
func normalText(o *unstructured.Unstructured) string {
	generation, _, _ := unstructured.NestedFieldNoCopy(o.Object, "metadata", "generation")
	if meta, ok := o.Object["metadata"].(map[string]any); ok {
		for _, field := range []string{"uid", "generation", "managedFields", "creationTimestamp", "selfLink"} {
			delete(meta, field)
		}
		if annotations, ok := meta["annotations"].(map[string]any); ok {
			if delete(annotations, touched); len(annotations) == 0 {
				delete(meta, "annotations")
			}
		}
	}
	text, err := json.MarshalIndent(normalValue(o.Object, generation), "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func normalValue(v, generation any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			switch {
			case key == "resourceVersion": // also of a reference
				delete(v, key)
			case key != "observedGeneration":
				v[key] = normalValue(value, generation)
			case value == generation:
				v[key] = "the present one"
			default:
				v[key] = "not the present one"
			}
		}
	case []any:
		for i := range v {
			v[i] = normalValue(v[i], generation)
		}
		slices.SortStableFunc(v, func(a, b any) int { return strings.Compare(typeOf(a), typeOf(b)) })
	}
	return v
}

// typeOf is by what conditions are sorted: who comes first may differ.
func typeOf(v any) string {
	m, _ := v.(map[string]any)
	t, _ := m["type"].(string)
	return t
}
