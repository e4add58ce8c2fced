package cache_test

import (
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/even-keel/evenkeel/cache"
)

// FuzzSelector compares lists by a selector with a scan. Objects come from
// words: namespace/name key=value,key=value
func FuzzSelector(f *testing.F) {
	f.Add("app=web", "a/x app=web\nb/y app=db\nb/x app=web,tier=1", "x", "b")
	f.Add("app in (web,db),tier!=1,!zone", "/n app=web\n/m tier=1\na/b app=db,zone=", "", "")
	f.Add("tier>1", "a/a tier=2\na/b tier=x\na/c tier=", "a", "a")
	f.Add("app", "a/a app=\na/\xff app=\x00\na/a/b app=1", "a/", "a")
	f.Add("app notin (a,b)", "a/ab\na/a app=c\nab/ app=a", "a", "ab")
	f.Fuzz(func(t *testing.T, selector, objects, prefix, namespace string) {
		s, err := labels.Parse(selector)
		if err != nil {
			t.Skip()
		}
		store := cache.New(cache.Options[*metav1.PartialObjectMetadata]{})
		all := map[cache.Key]labels.Set{}
		for line := range strings.Lines(objects) {
			obj := parseObject(strings.TrimSuffix(line, "\n"))
			store.Set(obj)
			all[cache.KeyOf(obj)] = obj.Labels
		}
		var want, got []string
		for k, set := range all {
			if s.Matches(set) && strings.HasPrefix(k.Name, prefix) && (namespace == "" || k.Namespace == namespace) {
				want = append(want, k.Namespace+"\x00"+k.Name)
			}
		}
		slices.Sort(want)
		queries := []cache.Query{cache.Selector(s), cache.Prefix(prefix), cache.InNamespace(namespace)}
		for obj := range store.List(queries...) {
			got = append(got, obj.Namespace+"\x00"+obj.Name)
		}
		slices.Sort(got) // the order of keys is not that of these strings
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("want (-), got (+):\n%s", diff)
		}
		if n := store.Count(queries...); n != len(want) {
			t.Errorf("count %d, want %d", n, len(want))
		}
	})
}

func parseObject(line string) *metav1.PartialObjectMetadata {
	key, pairs, _ := strings.Cut(line, " ")
	obj := &metav1.PartialObjectMetadata{}
	obj.Namespace, obj.Name, _ = strings.Cut(key, "/")
	for pair := range strings.SplitSeq(pairs, ",") {
		if k, v, ok := strings.Cut(pair, "="); ok {
			metav1.SetMetaDataLabel(&obj.ObjectMeta, k, v)
		}
	}
	return obj
}
