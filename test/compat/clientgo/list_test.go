package clientgo

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"
)

// fill makes config maps m-000 on, each with a label of its number's parity.
func fill(t *testing.T, c kubernetes.Interface, ns string, n int) (names []string) {
	t.Helper()
	for i := range n {
		cm := configMap(fmt.Sprintf("m-%03d", i), "i", fmt.Sprint(i))
		cm.Labels = map[string]string{"parity": []string{"even", "odd"}[i%2]}
		must(c.CoreV1().ConfigMaps(ns).Create(t.Context(), cm, metav1.CreateOptions{}))(t)
		names = append(names, cm.Name)
	}
	return names
}

func namesOf(maps []corev1.ConfigMap) (names []string) {
	for _, cm := range maps {
		names = append(names, cm.Name)
	}
	return names
}

// TestPagesAreOfOneState writes between the pages of a list.
func TestPagesAreOfOneState(t *testing.T) {
	each(t, func(t *testing.T, c kubernetes.Interface, ns string) {
		const all, size = 23, 5
		ctx, maps := t.Context(), c.CoreV1().ConfigMaps(ns)
		want := fill(t, c, ns, all)
		opts := metav1.ListOptions{Limit: size}
		var got []string
		revision := ""
		for page := 0; ; page++ {
			list := must(maps.List(ctx, opts))(t)
			got = append(got, namesOf(list.Items)...)
			if revision == "" {
				revision = list.ResourceVersion
			}
			if list.ResourceVersion != revision {
				t.Errorf("page %d is of revision %s, the first of %s", page, list.ResourceVersion, revision)
			}
			if list.Continue == "" {
				break
			}
			if left := list.RemainingItemCount; left == nil || int(*left) != all-len(got) {
				t.Errorf("page %d leaves %v, want %d", page, left, all-len(got))
			}
			opts.Continue = list.Continue
			check(t, maps.Delete(ctx, want[all-1-page], metav1.DeleteOptions{}))
			must(maps.Create(ctx, configMap(fmt.Sprintf("n-%d", page)), metav1.CreateOptions{}))(t)
		}
		if !slices.Equal(got, want) {
			t.Errorf("pages hold %v, want %v", got, want)
		}
	})
}

func TestPager(t *testing.T) {
	each(t, func(t *testing.T, c kubernetes.Interface, ns string) {
		ctx := t.Context()
		want := fill(t, c, ns, 57)
		pages := 0
		p := pager.New(func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			pages++
			return c.CoreV1().ConfigMaps(ns).List(ctx, opts)
		})
		p.PageSize, p.PageBufferSize = 10, 0
		list, paged, err := p.List(ctx, metav1.ListOptions{})
		check(t, err)
		var got []string
		check(t, meta.EachListItem(list, func(o runtime.Object) error {
			got = append(got, o.(metav1.Object).GetName())
			return nil
		}))
		if !paged || pages != 6 || !slices.Equal(got, want) {
			t.Errorf("paged %v, %d pages, %v", paged, pages, got)
		}
		got = nil
		check(t, p.EachListItem(ctx, metav1.ListOptions{LabelSelector: "parity=odd"}, func(o runtime.Object) error {
			got = append(got, o.(*corev1.ConfigMap).Name)
			return nil
		}))
		if len(got) != 28 || got[0] != "m-001" {
			t.Errorf("odd ones: %v", got)
		}
	})
}

func TestSelectors(t *testing.T) {
	each(t, func(t *testing.T, c kubernetes.Interface, ns string) {
		ctx, maps := t.Context(), c.CoreV1().ConfigMaps(ns)
		fill(t, c, ns, 6)
		for selector, want := range map[metav1.ListOptions]int{
			{LabelSelector: "parity=even"}:                                          3,
			{LabelSelector: "parity in (even,odd),parity!=odd"}:                     3,
			{LabelSelector: "!parity"}:                                              0,
			{FieldSelector: "metadata.name=m-003"}:                                  1,
			{FieldSelector: "metadata.name!=m-003"}:                                 5,
			{FieldSelector: "metadata.namespace=" + ns, LabelSelector: "parity"}:    6,
			{FieldSelector: "metadata.namespace=elsewhere"}:                         0,
			{FieldSelector: "metadata.name=m-003", LabelSelector: "parity=even"}:    0,
			{FieldSelector: "metadata.name=m-003", ResourceVersion: "0", Limit: 10}: 1,
		} {
			list := must(maps.List(ctx, selector))(t)
			if len(list.Items) != want {
				t.Errorf("%+v selects %v, want %d", selector, namesOf(list.Items), want)
			}
		}

		for i, node := range []string{"", "n1", "n1", "n2"} {
			p := pod(fmt.Sprintf("p%d", i))
			p.Spec.NodeName = node
			must(c.CoreV1().Pods(ns).Create(ctx, p, metav1.CreateOptions{}))(t)
		}
		for selector, want := range map[string]int{
			"spec.nodeName=n1": 2, "spec.nodeName=": 1, "spec.nodeName!=n1,status.phase=Pending": 2, "spec.restartPolicy=Never": 0,
		} {
			list := must(c.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{FieldSelector: selector}))(t)
			if len(list.Items) != want {
				t.Errorf("%s selects %d pods, want %d", selector, len(list.Items), want)
			}
		}
	})
}

func TestListsOfThePast(t *testing.T) {
	each(t, func(t *testing.T, c kubernetes.Interface, ns string) {
		ctx, maps := t.Context(), c.CoreV1().ConfigMaps(ns)
		want := fill(t, c, ns, 3)
		then := must(maps.List(ctx, metav1.ListOptions{}))(t).ResourceVersion
		check(t, maps.Delete(ctx, want[0], metav1.DeleteOptions{}))
		must(maps.Create(ctx, configMap("later"), metav1.CreateOptions{}))(t)

		exact := must(maps.List(ctx, metav1.ListOptions{ResourceVersion: then, ResourceVersionMatch: metav1.ResourceVersionMatchExact}))(t)
		if exact.ResourceVersion != then || !slices.Equal(namesOf(exact.Items), want) {
			t.Errorf("at %s: %v of revision %s", then, namesOf(exact.Items), exact.ResourceVersion)
		}
		newer := must(maps.List(ctx, metav1.ListOptions{ResourceVersion: then, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}))(t)
		if !slices.Equal(namesOf(newer.Items), []string{"later", want[1], want[2]}) {
			t.Errorf("not older than %s: %v", then, namesOf(newer.Items))
		}
	})
}

func TestDeleteCollection(t *testing.T) {
	each(t, func(t *testing.T, c kubernetes.Interface, ns string) {
		ctx, maps := t.Context(), c.CoreV1().ConfigMaps(ns)
		fill(t, c, ns, 12)
		other := newNamespace(t, c)
		fill(t, c, other, 2)
		check(t, maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "parity=odd"}))
		if left := must(maps.List(ctx, metav1.ListOptions{}))(t); len(left.Items) != 6 {
			t.Errorf("left: %v", namesOf(left.Items))
		}
		check(t, maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=m-000"}))
		if left := must(maps.List(ctx, metav1.ListOptions{}))(t); len(left.Items) != 5 {
			t.Errorf("left: %v", namesOf(left.Items))
		}
		check(t, maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
		if left := must(maps.List(ctx, metav1.ListOptions{}))(t); len(left.Items) != 0 {
			t.Errorf("left: %v", namesOf(left.Items))
		}
		if left := must(c.CoreV1().ConfigMaps(other).List(ctx, metav1.ListOptions{}))(t); len(left.Items) != 2 {
			t.Errorf("in another namespace: %v", namesOf(left.Items))
		}
	})
}
