package client_test

import (
	"context"
	"fmt"
	"log"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/client"
)

func ExampleClient_Create() {
	conn, ns := example()
	maps := client.Of[*corev1.ConfigMap](conn).In(ns)
	made, err := maps.Create(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	fmt.Println(made.Name, made.UID != "", err)
	_, err = maps.Create(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	fmt.Println(client.IsAlreadyExists(err))
	// Output:
	// a true <nil>
	// true
}

// Who wrote on what is no longer the newest reads again, and redoes.
func ExampleClient_Update() {
	ctx, maps := colors()
	mine, err := maps.Get(ctx, client.Key{Name: "red"})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := maps.Patch(ctx, client.KeyOf(mine), client.MergePatch(`{"data":{"by":"another"}}`)); err != nil {
		log.Fatal(err)
	}
	mine.Data = map[string]string{"by": "me"}
	_, err = maps.Update(ctx, mine)
	fmt.Println(client.IsConflict(err))
	// Output: true
}

func ExampleClient_UpdateStatus() {
	ctx := context.Background()
	conn, ns := example()
	deployments := client.Of[*appsv1.Deployment](conn).In(ns)
	web, err := deployments.Create(ctx, deployment("web"))
	if err != nil {
		log.Fatal(err)
	}
	web.Status.Replicas = 3
	web.Spec.Paused = true // which is not the status
	web, err = deployments.UpdateStatus(ctx, web)
	fmt.Println(web.Status.Replicas, web.Spec.Paused, err)
	// Output: 3 false <nil>
}

func ExampleClient_Status() {
	ctx := context.Background()
	conn, ns := example()
	deployments := client.Of[*appsv1.Deployment](conn).In(ns)
	web, err := deployments.Create(ctx, deployment("web"))
	if err != nil {
		log.Fatal(err)
	}
	web, err = deployments.Status().Patch(ctx, client.KeyOf(web), client.MergePatch(`{"status":{"replicas":2}}`))
	fmt.Println(web.Status.Replicas, err)
	// Output: 2 <nil>
}

func ExampleClient_Delete() {
	ctx, maps := colors()
	red, err := maps.Get(ctx, client.Key{Name: "red"})
	if err != nil {
		log.Fatal(err)
	}
	// Not another of the same name, and not if somebody has changed it.
	fmt.Println(maps.Delete(ctx, client.KeyOf(red), client.IfUID(red.UID), client.IfRevision(red.ResourceVersion)))
	fmt.Println(client.IgnoreNotFound(maps.Delete(ctx, client.KeyOf(red))))
	// Output:
	// <nil>
	// <nil>
}

func ExampleClient_DeleteCollection() {
	ctx, maps := colors()
	if err := maps.DeleteCollection(ctx, client.Label("warm", "false")); err != nil {
		log.Fatal(err)
	}
	for m, err := range maps.List(ctx, client.Labels("warm")) {
		fmt.Println(m.Name, err)
	}
	// Output: red <nil>
}

func ExampleStrategicPatch() {
	ctx := context.Background()
	conn, ns := example()
	deployments := client.Of[*appsv1.Deployment](conn).In(ns)
	web, err := deployments.Create(ctx, deployment("web"))
	if err != nil {
		log.Fatal(err)
	}
	name := web.Spec.Template.Spec.Containers[0].Name
	patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":%q,"image":"v2"},{"name":"side","image":"s"}]}}}}`, name)
	web, err = deployments.Patch(ctx, client.KeyOf(web), client.StrategicPatch(patch)) // merged by name
	images := map[string]string{}
	for _, c := range web.Spec.Template.Spec.Containers {
		images[c.Name] = c.Image
	}
	fmt.Println(len(images), images[name], images["side"], err)
	// Output: 2 v2 s <nil>
}

func ExampleJSONPatch() {
	ctx, maps := colors()
	red, err := maps.Patch(ctx, client.Key{Name: "red"}, client.JSONPatch(`[
		{"op": "test", "path": "/metadata/labels/warm", "value": "true"},
		{"op": "add", "path": "/data", "value": {"hex": "f00"}}
	]`))
	fmt.Println(red.Data, err)
	// Output: map[hex:f00] <nil>
}

// What one manager wants of an object, in YAML.
func ExampleApplyPatch() {
	ctx, maps := colors()
	red, err := maps.Patch(ctx, client.Key{Name: "red"}, client.ApplyPatch(`
apiVersion: v1
kind: ConfigMap
data: {hex: f00}
`), client.FieldManager("painter"), client.Force())
	fmt.Println(red.Data, err)
	// Output: map[hex:f00] <nil>
}

// The server does all but keep it: validation, defaults, admission.
func ExampleDry() {
	ctx, maps := colors()
	made, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "pink"}}, client.Dry())
	fmt.Println(made.Name, err)
	_, err = maps.Get(ctx, client.Key{Name: "pink"})
	fmt.Println(client.IsNotFound(err))
	// Output:
	// pink <nil>
	// true
}

func ExampleStrict() {
	ctx, maps := colors()
	_, err := maps.Patch(ctx, client.Key{Name: "red"}, client.MergePatch(`{"dta":{"hex":"f00"}}`), client.Strict())
	fmt.Println(err != nil)
	// Output: true
}
