package explore

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestRequestsAreUnderstood(t *testing.T) {
	tests := map[string]struct {
		method, url, media string
		want, path         string
		counts             bool
	}{
		"create":           {"POST", "https://x/api/v1/namespaces/default/pods", "", "create pods default/", "/api/v1/pods", true},
		"update status":    {"PUT", "https://x/apis/apps/v1/namespaces/a/deployments/web/status", "", "update deployments/status a/web", "/apis/apps/v1/deployments", true},
		"apply":            {"PATCH", "https://x/api/v1/namespaces/a/pods/p?force=true", "application/apply-patch+yaml", "apply pods a/p", "/api/v1/pods", true},
		"patch":            {"PATCH", "https://x/api/v1/nodes/n", "application/merge-patch+json", "patch nodes n", "/api/v1/nodes", true},
		"a namespace":      {"DELETE", "https://x/api/v1/namespaces/a", "", "delete namespaces a", "/api/v1/namespaces", true},
		"its end":          {"PUT", "https://x/api/v1/namespaces/a/finalize", "", "update namespaces/finalize a", "/api/v1/namespaces", true},
		"below a path":     {"DELETE", "https://x/clusters/c/apis/g/v1/things/t", "", "delete things t", "/apis/g/v1/things", true},
		"all of them":      {"DELETE", "https://x/api/v1/namespaces/a/pods", "", "delete pods a/", "/api/v1/pods", true},
		"only to see":      {"POST", "https://x/api/v1/namespaces/a/pods?dryRun=All", "", "create pods a/", "/api/v1/pods", false},
		"an event":         {"POST", "https://x/apis/events.k8s.io/v1/namespaces/a/events", "", "create events a/", "/apis/events.k8s.io/v1/events", false},
		"a question":       {"POST", "https://x/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "", "create selfsubjectaccessreviews ", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", false},
		"list":             {"GET", "https://x/api/v1/pods", "", "list pods ", "/api/v1/pods", false},
		"watch":            {"GET", "https://x/api/v1/pods?watch=true", "", "watch pods ", "/api/v1/pods", false},
		"get":              {"GET", "https://x/api/v1/namespaces/a/pods/p", "", " pods a/p", "/api/v1/pods", false},
		"no resource":      {"GET", "https://x/version", "", "  ", "", false},
		"no resource, too": {"GET", "https://x/apis/apps/v1", "", "  ", "", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			req, err := http.NewRequest(test.method, test.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", test.media)
			c := parse(req)
			if c.String() != test.want || c.path != test.path || c.counts(req.URL.Query()) != test.counts {
				t.Errorf("it is %q of %q, which counts: %v", c, c.path, c.counts(req.URL.Query()))
			}
		})
	}
}

func object(fields map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: fields}
}

// Two runs of which each has its own uids, names and times.
func TestStatesThatDifferByChanceAreTheSame(t *testing.T) {
	state := func(uid, suffix, time, last string, flip bool) map[string]string {
		conditions := []any{map[string]any{"type": "A", "lastTransitionTime": time}, map[string]any{"type": "B"}}
		if flip {
			conditions[0], conditions[1] = conditions[1], conditions[0]
		}
		owner := object(map[string]any{
			"metadata": map[string]any{"name": "app", "namespace": "default", "uid": uid, "resourceVersion": "7" + last, "generation": float64(len(last))},
			"status":   map[string]any{"observedGeneration": float64(len(last)), "conditions": conditions, "pod": "app-" + suffix},
		})
		pod := object(map[string]any{"metadata": map[string]any{
			"name": "app-" + suffix, "generateName": "app-", "namespace": "default", "uid": strings.Replace(uid, "1", "2", 1), "resourceVersion": "8" + last,
			"creationTimestamp": time, "annotations": map[string]any{touched: "true"},
			"ownerReferences": []any{map[string]any{"uid": uid}, map[string]any{"uid": strings.Replace(uid, "1", "3", 1)}},
		}})
		s := snapshot{objects: map[string][]*unstructured.Unstructured{"/apis/x/v1/apps": {owner}, "/api/v1/pods": {pod}}}
		return s.normal(newRecord(), 1, nil)
	}
	one := state("1aaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa", "x7k2p", "2000-01-01T00:00:00Z", "1", false)
	two := state("1bbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb", "zzzzz", "2000-01-01T01:00:00.5Z", "22", true)
	if diff := cmp.Diff(one, two); diff != "" {
		t.Error(diff)
	}
	if _, ok := one["pods default/app-~"]; !ok || !strings.Contains(one["apps default/app"], `"pod": "app-~"`) {
		t.Errorf("it is %v", one)
	}
}

func TestWhatDiffersInStatesIsTold(t *testing.T) {
	meta := func(more ...string) map[string]any {
		m := map[string]any{"name": "app", "resourceVersion": "9", "generation": float64(2)}
		for _, field := range more {
			m[field] = "x"
		}
		return m
	}
	base := object(map[string]any{"metadata": meta(), "status": map[string]any{"observedGeneration": float64(2)}})
	others := map[string]*unstructured.Unstructured{
		"another field":       object(map[string]any{"metadata": meta("deletionTimestamp"), "status": map[string]any{"observedGeneration": float64(2)}}),
		"an older generation": object(map[string]any{"metadata": meta(), "status": map[string]any{"observedGeneration": float64(1)}}),
		"no status":           object(map[string]any{"metadata": meta()}),
	}
	text := func(began uint64, objs ...*unstructured.Unstructured) map[string]string {
		var copies []*unstructured.Unstructured
		for _, o := range objs {
			copies = append(copies, o.DeepCopy())
		}
		return snapshot{objects: map[string][]*unstructured.Unstructured{"/api/v1/apps": copies}}.normal(newRecord(), began, nil)
	}
	for name, other := range others {
		if cmp.Equal(text(1, base), text(1, other)) {
			t.Errorf("%s makes no difference", name)
		}
		if !cmp.Equal(text(9, base), text(9, other)) {
			t.Errorf("%s makes a difference before the first step", name)
		}
	}
	if cmp.Equal(text(1, base, base), text(1, base)) || cmp.Equal(text(9, base), text(9)) {
		t.Error("the number makes no difference")
	}
}

func TestSomeOfManyPlansAreChosenAlike(t *testing.T) {
	var all []plan
	for nth := range 50 {
		all = append(all, plan{fault: CrashAfter, write: "often", nth: nth + 1})
	}
	all = append(all, plan{fault: CrashAfter, write: "once", nth: 1}, plan{fault: Stale, of: "pods"})
	names := func(plans []plan) (out []string) {
		for _, p := range plans {
			out = append(out, p.name())
		}
		return out
	}
	got := names(choose(all, 4, 7))
	want := []string{"crash-after:often:1", "crash-after:often:2", "crash-after:once:1", "stale:pods:step:1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if n := len(choose(all, 100, 7)); n != len(all) {
		t.Errorf("%d of %d are chosen", n, len(all))
	}
}

func TestPlansAreSaidInWords(t *testing.T) {
	for want, p := range map[string]plan{
		`crash after write "create pods default/web-~", time 2`:                {fault: CrashAfter, write: "create pods default/web-~", nth: 2},
		`stale view of pods from write "create pods default/a"`:                {fault: Stale, of: "pods", write: "create pods default/a", nth: 1},
		`stale changes of pods in step 3`:                                      {fault: Stale, of: "pods", step: 2},
		`changes of pods in steps 1 and 2 seen as one`:                         {fault: Skipped, of: "pods"},
		`lost answer of write "update deployments/status default/web", time 3`: {fault: Lost, write: "update deployments/status default/web", nth: 3},
	} {
		if got := p.String(); got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
}
