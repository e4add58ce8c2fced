package webhook

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func mustParse(t testing.TB, text string) any {
	t.Helper()
	tree, err := parse([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return tree
}

// applied is what a patch makes of a document.
func applied(t testing.TB, raw any, p patch) any {
	t.Helper()
	doc, err := json.Marshal(raw)
	if err != nil {
		t.Fatal(err)
	}
	if len(p) == 0 {
		return raw
	}
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := jsonpatch.DecodePatch(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	out, err := decoded.Apply(doc)
	if err != nil {
		t.Fatalf("apply %s to %s: %v", text, doc, err)
	}
	return mustParse(t, string(out))
}

func TestChangesAreTransferred(t *testing.T) {
	tests := map[string]struct{ raw, before, after, want, patch string }{
		"what is not changed stays as it was written": {
			`{"cpu":"1000m","zero":0,"big":12345678901234567890}`, `{"cpu":"1","status":{}}`, `{"cpu":"1","status":{}}`,
			`{"cpu":"1000m","zero":0,"big":12345678901234567890}`, `null`},
		"a field is set": {
			`{"x":1}`, `{}`, `{"a":2}`, `{"x":1,"a":2}`, `[{"op":"add","path":"/a","value":2}]`},
		"a field is set to null": {
			`{"x":1}`, `{}`, `{"a":null}`, `{"x":1,"a":null}`, `[{"op":"add","path":"/a","value":null}]`},
		"a field is changed and one removed": {
			`{"a":1,"b":2,"x":1}`, `{"a":1,"b":2}`, `{"a":3}`, `{"a":3,"x":1}`,
			`[{"op":"remove","path":"/b"},{"op":"replace","path":"/a","value":3}]`},
		"names with slashes and tildes": {
			`{"l":{"a/b":"1","c~d":"1"}}`, `{"l":{"a/b":"1","c~d":"1"}}`, `{"l":{"a/b":"2"}}`, `{"l":{"a/b":"2"}}`,
			`[{"op":"remove","path":"/l/c~0d"},{"op":"replace","path":"/l/a~1b","value":"2"}]`},
		"a struct that was not sent": {
			`{}`, `{"status":{}}`, `{"status":{"a":1}}`, `{"status":{"a":1}}`, `[{"op":"add","path":"/status","value":{"a":1}}]`},
		"a struct that the type leaves out": {
			`{"s":{"x":1}}`, `{}`, `{"s":{"a":1}}`, `{"s":{"x":1,"a":1}}`, `[{"op":"add","path":"/s/a","value":1}]`},
		"null that becomes something": {
			`{"s":null}`, `{}`, `{"s":{"a":1}}`, `{"s":{"a":1}}`, `[{"op":"replace","path":"/s","value":{"a":1}}]`},
		"an item of a list is changed": {
			`[{"name":"a","x":1},{"name":"b","x":2}]`, `[{"name":"a"},{"name":"b"}]`, `[{"name":"a"},{"name":"b","v":1}]`,
			`[{"name":"a","x":1},{"name":"b","x":2,"v":1}]`, `[{"op":"add","path":"/1/v","value":1}]`},
		"an item before others": {
			`[{"name":"a","x":1}]`, `[{"name":"a"}]`, `[{"name":"n"},{"name":"a","v":1}]`,
			`[{"name":"n"},{"name":"a","x":1,"v":1}]`, ``},
		"one of two is removed, the other changed": {
			`[{"name":"a","x":1},{"name":"b","x":2}]`, `[{"name":"a"},{"name":"b"}]`, `[{"name":"b","v":1}]`,
			`[{"name":"b","x":2,"v":1}]`, ``},
		"another item takes a place": {
			`[{"name":"a","x":1}]`, `[{"name":"a"}]`, `[{"name":"b"}]`, `[{"name":"b"}]`, ``},
		"items without names": {
			`[{"v":1,"x":1},{"v":2,"x":2}]`, `[{"v":1},{"v":2}]`, `[{"v":1},{"v":3}]`, `[{"v":1,"x":1},{"v":3,"x":2}]`, ``},
		"an item gets a name": {
			`[{"v":1,"x":1}]`, `[{"v":1}]`, `[{"v":1,"name":"a"}]`, `[{"v":1,"x":1,"name":"a"}]`, ``},
		"items without names change places": {
			`[{"v":1,"x":1},{"v":2,"x":2}]`, `[{"v":1},{"v":2}]`, `[{"v":2},{"v":1}]`, `[{"v":2,"x":2},{"v":1,"x":1}]`, ``},
		"one of several without names is removed": {
			`[{"v":1,"x":1},{"v":2,"x":2}]`, `[{"v":1},{"v":2}]`, `[{"v":2}]`, `[{"v":2,"x":2}]`, ``},
		"lists of lists": {
			`[[{"v":1,"x":1}]]`, `[[{"v":1}]]`, `[[{"v":2}]]`, `[[{"v":2,"x":1}]]`, `[{"op":"replace","path":"/0/0/v","value":2}]`},
		"another type": {
			`{"a":[1]}`, `{"a":[1]}`, `{"a":{"b":1}}`, `{"a":{"b":1}}`, `[{"op":"replace","path":"/a","value":{"b":1}}]`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			raw := mustParse(t, test.raw)
			got := transfer(raw, mustParse(t, test.before), mustParse(t, test.after))
			if diff := cmp.Diff(mustParse(t, test.want), got); diff != "" {
				t.Error(diff)
			}
			var p patch
			p.compare("", raw, got)
			if diff := cmp.Diff(got, applied(t, raw, p)); diff != "" {
				t.Errorf("the patch %v makes something else: %s", p, diff)
			}
			if text, _ := json.Marshal(p); test.patch != "" && string(text) != test.patch {
				t.Errorf("got  %s\nwant %s", text, test.patch)
			}
		})
	}
}

// seeded is a source of chances that is told when a test fails.
func seeded(t *testing.T) *rand.Rand {
	seed, err := strconv.ParseUint(os.Getenv("EVENKEEL_SEED"), 10, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("EVENKEEL_SEED=%d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 0))
}

// randomPod is a pod; randomly changed it is another.
func randomPod(r *rand.Rand) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{}}}
	pod.APIVersion, pod.Kind = "v1", "Pod"
	for i := range r.IntN(4) {
		pod.Spec.Containers = append(pod.Spec.Containers, randomContainer(r, "c"+strconv.Itoa(i)))
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: "k" + strconv.Itoa(i)})
		pod.Labels["l/"+strconv.Itoa(i)] = "v"
	}
	return pod
}

func randomContainer(r *rand.Rand, name string) corev1.Container {
	c := corev1.Container{Name: name, Image: strconv.Itoa(r.IntN(3))}
	if r.IntN(2) == 0 {
		c.Resources.Limits = corev1.ResourceList{"cpu": *resource.NewMilliQuantity(r.Int64N(3000), resource.DecimalSI)}
	}
	if r.IntN(2) == 0 {
		c.SecurityContext = &corev1.SecurityContext{Privileged: new(r.IntN(2) == 0)}
	}
	return c
}

func mutatePod(r *rand.Rand, pod *corev1.Pod) {
	for range r.IntN(6) {
		cs := pod.Spec.Containers
		switch r.IntN(8) {
		case 0:
			metav1.SetMetaDataLabel(&pod.ObjectMeta, "new~", "v")
		case 1:
			delete(pod.Labels, "l/0")
		case 2:
			pod.Spec.Containers = append([]corev1.Container{randomContainer(r, "n"+strconv.Itoa(r.IntN(1e6)))}, cs...)
		case 3:
			r.Shuffle(len(cs), func(i, j int) { cs[i], cs[j] = cs[j], cs[i] })
		case 4:
			if len(cs) > 0 {
				pod.Spec.Containers = cs[1:]
			}
		case 5:
			for i := range cs {
				cs[i].Image = "changed"
			}
		case 6:
			for i := range cs {
				cs[i].SecurityContext = &corev1.SecurityContext{RunAsUser: new(int64(1))}
			}
		case 7:
			pod.Status.Phase, pod.Spec.NodeName = "Running", "n"
		}
	}
}

// fields are those of an object in a tree.
func fields(tree any, key string) map[string]any {
	of, _ := tree.(map[string]any)
	out, _ := of[key].(map[string]any)
	return out
}

func items(tree any, key string) []any {
	out, _ := fields(tree, "spec")[key].([]any)
	return out
}

// addUnknown has a pod, its spec and its items say what the Go type does not know.
func addUnknown(tree any) {
	tree.(map[string]any)["unknown"] = map[string]any{"of": "pod"}
	fields(tree, "spec")["unknown"] = []any{"spec"}
	for _, list := range []string{"containers", "tolerations"} {
		for _, item := range items(tree, list) {
			item.(map[string]any)["unknown"] = "of " + nameOf(item)
		}
	}
}

func TestAPatchKeepsWhatTheTypeDoesNotKnow(t *testing.T) {
	r := seeded(t)
	for range 500 {
		raw, err := treeOf(randomPod(r))
		if err != nil {
			t.Fatal(err)
		}
		addUnknown(raw)
		sent, _ := json.Marshal(raw)
		pod, err := decode[*corev1.Pod](sent)
		if err != nil {
			t.Fatal(err)
		}
		before, _ := treeOf(pod)
		mutatePod(r, pod)
		after, _ := treeOf(pod)

		merged := transfer(raw, before, after)
		var p patch
		p.compare("", raw, merged)
		got := applied(t, raw, p)
		if diff := cmp.Diff(merged, got); diff != "" {
			t.Fatalf("the patch %v does not make what it should of %s: %s", p, sent, diff)
		}
		text, _ := json.Marshal(got)
		decoded, err := decode[*corev1.Pod](text)
		if known, _ := treeOf(decoded); err != nil || !reflect.DeepEqual(known, after) {
			t.Fatalf("%s became %s, %v: %s", sent, text, err, cmp.Diff(after, known))
		}
		checkUnknown(t, got)
	}
}

func checkUnknown(t *testing.T, got any) {
	t.Helper()
	want := map[string]any{"pod": map[string]any{"of": "pod"}, "spec": []any{"spec"}}
	have := map[string]any{"pod": got.(map[string]any)["unknown"], "spec": fields(got, "spec")["unknown"]}
	for _, list := range []string{"containers", "tolerations"} {
		for _, item := range items(got, list) {
			key := fmt.Sprint(list, nameOf(item))
			have[key], want[key] = item.(map[string]any)["unknown"], nil
			if nameOf(item)[0] != 'n' { // not a new one
				want[key] = "of " + nameOf(item)
			}
		}
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Fatalf("in %v: %s", got, diff)
	}
}
