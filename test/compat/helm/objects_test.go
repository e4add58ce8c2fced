package helm

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// installed is what values make of the release's objects.
type installed struct {
	Replicas   int32
	Image      string
	Containers []string
	Env        map[string]string
	Ports      map[string]int32
	Greeting   string
	Password   string
	Audit      bool
}

// plain is what the chart's own values make.
func plain() installed {
	return installed{
		Replicas: 2, Image: "shop:1", Containers: []string{"shop"},
		Env:   map[string]string{"LANG": "C", "MODE": "plain"},
		Ports: map[string]int32{"http": 80, "metrics": 9090}, Greeting: "hello", Password: "s3cret",
	}
}

// richValues and rich differ from plain in each of them: lists lose, gain and
// change items.
var richValues = values{
	"replicas": 3, "image": "shop:2", "greeting": "hi", "password": "better", "audit": true,
	"ports": values{"http": 8080, "metrics": nil, "admin": 9000},
	"env":   values{"LANG": "en", "MODE": nil, "DEBUG": "1"},
}

func rich() installed {
	return installed{
		Replicas: 3, Image: "shop:2", Containers: []string{"shop", "audit"},
		Env:   map[string]string{"LANG": "en", "DEBUG": "1"},
		Ports: map[string]int32{"http": 8080, "admin": 9000}, Greeting: "hi", Password: "better", Audit: true,
	}
}

// find reads the release's objects.
func (u *user) find() installed {
	u.Helper()
	ctx, get := u.Context(), metav1.GetOptions{}
	d := must(u.c.AppsV1().Deployments(u.ns).Get(ctx, shop, get))(u)
	config := must(u.c.CoreV1().ConfigMaps(u.ns).Get(ctx, shop, get))(u)
	secret := must(u.c.CoreV1().Secrets(u.ns).Get(ctx, shop, get))(u)
	service := must(u.c.CoreV1().Services(u.ns).Get(ctx, shop, get))(u)
	_, err := u.c.CoreV1().ConfigMaps(u.ns).Get(ctx, shop+"-audit", get)
	found := installed{
		Replicas: *d.Spec.Replicas, Image: d.Spec.Template.Spec.Containers[0].Image,
		Env: map[string]string{}, Ports: map[string]int32{},
		Greeting: config.Data["greeting"], Password: string(secret.Data["password"]), Audit: !apierrors.IsNotFound(err),
	}
	for _, c := range d.Spec.Template.Spec.Containers {
		found.Containers = append(found.Containers, c.Name)
	}
	for _, e := range d.Spec.Template.Spec.Containers[0].Env {
		found.Env[e.Name] = e.Value
	}
	for _, p := range service.Spec.Ports {
		found.Ports[p.Name] = p.Port
	}
	return found
}

func (u *user) mustFind(want installed) {
	u.Helper()
	if got := u.find(); !reflect.DeepEqual(got, want) {
		u.Fatalf("in the cluster there is %+v, want %+v", got, want)
	}
}

// names are the release's objects, hooks included, by their labels.
func (u *user) names() (out []string) {
	u.Helper()
	for _, resource := range []string{
		"/api/v1/namespaces/%s/configmaps", "/api/v1/namespaces/%s/pods", "/api/v1/namespaces/%s/secrets",
		"/api/v1/namespaces/%s/serviceaccounts", "/api/v1/namespaces/%s/services",
		"/apis/apps/v1/namespaces/%s/deployments", "/apis/batch/v1/namespaces/%s/jobs",
		"/apis/rbac.authorization.k8s.io/v1/namespaces/%s/roles", "/apis/rbac.authorization.k8s.io/v1/namespaces/%s/rolebindings",
	} {
		body := must(u.c.CoreV1().RESTClient().Get().AbsPath(fmt.Sprintf(resource, u.ns)).
			Param("labelSelector", "app.kubernetes.io/instance="+shop).SetHeader("Accept", "application/json").DoRaw(u.Context()))(u)
		var list metav1.PartialObjectMetadataList
		check(u, json.Unmarshal(body, &list))
		for _, item := range list.Items {
			out = append(out, list.Kind+" "+item.Name)
		}
	}
	return out
}

// The release's objects with the chart's own values, before and after an
// upgrade: hooks stay.
var objects = []string{
	"ConfigMapList shop", "SecretList shop", "ServiceAccountList shop", "ServiceList shop",
	"DeploymentList shop", "JobList shop-migrate", "RoleList shop", "RoleBindingList shop",
}

func (u *user) mustHave(what string, got, want []string) {
	u.Helper()
	if !slices.Equal(got, want) {
		u.Fatalf("%s: %q, want %q", what, got, want)
	}
}

// stored are the Secrets that helm keeps the release in: revision and status.
func (u *user) stored() (out []string) {
	u.Helper()
	list := must(u.c.CoreV1().Secrets(u.ns).List(u.Context(), metav1.ListOptions{
		LabelSelector: "owner=helm,name=" + shop, FieldSelector: "type=helm.sh/release.v1",
	}))(u)
	for _, s := range list.Items {
		if want := fmt.Sprintf("sh.helm.release.v1.%s.v%s", shop, s.Labels["version"]); s.Name != want || len(s.Data["release"]) == 0 {
			u.Errorf("release secret %s holds %d bytes, want %s", s.Name, len(s.Data["release"]), want)
		}
		out = append(out, s.Labels["version"]+" "+s.Labels["status"])
	}
	return out
}

func base64Of(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

// managers are those who own fields of the Deployment, and how.
func (u *user) managers() (out []string) {
	u.Helper()
	d := must(u.c.AppsV1().Deployments(u.ns).Get(u.Context(), shop, metav1.GetOptions{}))(u)
	for _, f := range d.ManagedFields {
		if f.Subresource == "" {
			out = append(out, fmt.Sprintf("%s %s", f.Manager, f.Operation))
		}
	}
	return out
}
