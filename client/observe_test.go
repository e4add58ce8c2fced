package client_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
)

// told is what an observer heard, a line for each request. Tests that use it send
// one request at a time.
type told []string

func (l *told) observe(_ context.Context, c client.Call) {
	line := fmt.Sprintf("%s %s %d %s", c.Verb, c.Method, c.Code, c.Path)
	if c.Resource.Resource != "" {
		line = fmt.Sprintf("%s %s %d %s %s %q", c.Verb, c.Method, c.Code, c.Resource.Resource, c.Subresource, c.Key.Name)
	}
	if c.Revision != "" {
		line += " made " + c.Revision
	}
	if c.Start.IsZero() || c.Duration < 0 || c.Host == "" || (c.Code/100 == 2) != (c.Err == nil) {
		line += fmt.Sprintf(" is wrong: %+v", c)
	}
	*l = append(*l, line)
}

func (l *told) mustBe(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(*l, want) {
		t.Errorf("observers were told\n%s\nnot\n%s", strings.Join(*l, "\n"), strings.Join(want, "\n"))
	}
}

func TestObserversAreToldOfEachRequest(t *testing.T) {
	for name, cfg := range map[string]*rest.Config{"protobuf": theServer.Config(), "JSON": jsonOnly(theServer.Config())} {
		t.Run(name, func(t *testing.T) {
			var lines told
			conn, ns := connectAs(t, cfg, client.Observe(lines.observe))
			maps := client.Of[*corev1.ConfigMap](conn).In(ns)
			ctx, a := t.Context(), client.Key{Name: "a"}
			made := must[*corev1.ConfigMap](t)

			created := made(maps.Create(ctx, configMap("a", map[string]string{"resourceVersion": "b"})))
			named := made(maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "x-"}}))
			_, _ = maps.Create(ctx, configMap("a", nil))
			_, _ = maps.Get(ctx, a)
			_, _, _ = maps.All(ctx, client.Chunk(1))
			w, err := maps.WatchRaw(ctx)
			if err != nil {
				t.Fatal(err)
			}
			w.Close()
			updated := made(maps.Update(ctx, configMap("a", nil)))
			patched := made(maps.Patch(ctx, a, client.MergePatch(`{"data":{"a":"b"}}`)))
			applied := made(maps.Apply(ctx, configMap("b", nil)))
			_ = maps.Delete(ctx, a)
			_ = maps.DeleteCollection(ctx)
			_, _ = conn.Get(ctx, "/version")
			lines.mustBe(t,
				`create POST 201 configmaps  "a" made `+created.ResourceVersion,
				`create POST 201 configmaps  "`+named.Name+`" made `+named.ResourceVersion,
				`create POST 409 configmaps  "a"`,
				`get GET 200 configmaps  "a"`,
				`list GET 200 configmaps  ""`,
				`list GET 200 configmaps  ""`,
				`watch GET 200 configmaps  ""`,
				`update PUT 200 configmaps  "a" made `+updated.ResourceVersion,
				`patch PATCH 200 configmaps  "a" made `+patched.ResourceVersion,
				`apply PATCH 201 configmaps  "b" made `+applied.ResourceVersion,
				`delete DELETE 200 configmaps  "a"`,
				`deletecollection DELETE 200 configmaps  ""`,
				`get GET 200 /version`,
			)
		})
	}
}

func TestObserversAreToldOfSubresources(t *testing.T) {
	var lines told
	conn, ns := connect(t, client.Observe(lines.observe))
	deployments := client.Of[*appsv1.Deployment](conn).In(ns)
	web := must[*appsv1.Deployment](t)(deployments.Create(t.Context(), deployment("web")))
	scales := client.Sub[*autoscalingv1.Scale](deployments, "scale")
	scale := must[*autoscalingv1.Scale](t)(scales.Patch(t.Context(), client.KeyOf(web), client.MergePatch(`{"spec":{"replicas":3}}`)))
	lines.mustBe(t,
		`create POST 201 deployments  "web" made `+web.ResourceVersion,
		`patch PATCH 200 deployments scale "web" made `+scale.ResourceVersion,
	)
}

// The figures of a request are its own: not those of waiting to send it again.
func TestObserversAreToldOfEachAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		type who struct{}
		first := client.Observe(func(ctx context.Context, c client.Call) {
			got = append(got, fmt.Sprintf("%v sent %d after %s took %s", ctx.Value(who{}), c.Attempt, time.Since(c.Start), c.Duration))
		})
		second := client.Observe(func(_ context.Context, c client.Call) { got = append(got, fmt.Sprint(c.Code)) })
		times := 0
		maps := serveInMemory(t, func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Second)
			if times++; times < 3 {
				w.Header().Set("Retry-After", "7")
				http.Error(w, "not now", http.StatusServiceUnavailable)
				return
			}
			answer(w, configMap("a", nil))
		}, nil, first, second)
		if _, err := maps.Get(context.WithValue(t.Context(), who{}, "me"), client.Key{Name: "a"}); err != nil {
			t.Fatal(err)
		}
		want := []string{
			"me sent 0 after 1s took 1s", "503", "me sent 1 after 1s took 1s", "503", "me sent 2 after 1s took 1s", "200",
		}
		if !slices.Equal(got, want) {
			t.Errorf("observers were told %q", got)
		}
	})
}

func TestObserversAreToldOfRequestsThatGotNoAnswer(t *testing.T) {
	var got []client.Call
	conn, err := client.Connect(&rest.Config{Host: "http://nowhere.invalid:1"}, client.Observe(func(_ context.Context, c client.Call) { got = append(got, c) }))
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Of[*corev1.Node](conn).Get(t.Context(), client.Key{Name: "n"})
	if len(got) != 1 || got[0].Code != 0 || got[0].Err == nil || err == nil || got[0].Host != "nowhere.invalid:1" {
		t.Errorf("observers were told %+v", got)
	}
}

func ExampleObserve() {
	cfg := theServer.Config()
	conn, err := client.Connect(cfg, client.Observe(func(_ context.Context, c client.Call) {
		fmt.Println(c.Verb, c.Resource.Resource, c.Key.Name, c.Code)
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _ = client.Of[*corev1.Namespace](conn).Get(context.Background(), client.Key{Name: "default"})
	_, _ = client.Of[*corev1.Namespace](conn).Get(context.Background(), client.Key{Name: "nowhere"})
	// Output:
	// get namespaces default 200
	// get namespaces nowhere 404
}
