package explore

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/informer"
)

func TestMain(m *testing.M) { evenkeeltest.Main(m) }

func server(t *testing.T) *rest.Config { return evenkeeltest.Start(t, evenkeeltest.Bubble()).Config() }

// app is a small controller: of config maps, with secrets that belong to them.
type app struct {
	maps        *client.Client[*corev1.ConfigMap]
	secrets     *client.Client[*corev1.Secret]
	deployments *client.Client[*appsv1.Deployment]
	live        *client.Conn
}

type reconcile func(a *app, ctx context.Context, key client.Key) error

// program runs a controller with such a function.
func program(of controller.Option, f reconcile) func(context.Context, *rest.Config) error {
	return func(ctx context.Context, cfg *rest.Config) error {
		base, err := controller.NewBase(cfg, controller.BaseOptions{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			return err
		}
		a := &app{
			maps: client.Of[*corev1.ConfigMap](base), secrets: client.Of[*corev1.Secret](base),
			deployments: client.Of[*appsv1.Deployment](base), live: base.Conn(),
		}
		own := controller.Watches[*corev1.Secret](func(_ context.Context, s *corev1.Secret) []client.Key {
			return []client.Key{{Namespace: s.Namespace, Name: s.Labels["of"]}}
		})
		err = base.Add(controller.New("app", func(ctx context.Context, req controller.Request) (controller.Result, error) {
			if req.Key.Name != "app" && req.Key.Name != "web" {
				return controller.Done, nil // of the server's own
			}
			return controller.Done, client.IgnoreNotFound(f(a, ctx, req.Key))
		}, of, own))
		if err != nil {
			return err
		}
		return base.Run(ctx)
	}
}

func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{"value": value}}
}

// secretOf is what belongs to an app; without a name, the server makes one.
func secretOf(key client.Key, name, value string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: name, Labels: map[string]string{"of": key.Name}}, Data: map[string][]byte{"value": []byte(value)}}
	if name == "" {
		s.GenerateName = key.Name + "-"
	}
	return s
}

var appKey = client.Key{Namespace: "default", Name: "app"}

func create(value string) Step { return Create(configMap("app", value)) }

func change(value string) Step {
	return Patch[*corev1.ConfigMap](appKey, client.MergePatch(`{"data":{"value":"`+value+`"}}`))
}

var remove = Delete[*corev1.ConfigMap](appKey)

// recorded makes a secret with a generated name, and notes the name in the app.
func recorded(looksFirst bool) reconcile {
	return func(a *app, ctx context.Context, key client.Key) error {
		m, err := a.maps.Get(ctx, key)
		if err != nil || m.Annotations["secret"] != "" {
			return err
		}
		name := ""
		if looksFirst { // at the server: its own cache may not have it yet
			for s, err := range client.Of[*corev1.Secret](a.live).In(key.Namespace).List(ctx, client.Label("of", key.Name)) {
				if err != nil {
					return err
				}
				name = s.Name
			}
		}
		if name == "" {
			s, err := a.secrets.Create(ctx, secretOf(key, "", "x"))
			if err != nil {
				return err
			}
			name = s.Name
		}
		_, err = a.maps.Patch(ctx, key, client.MergePatch(fmt.Sprintf(`{"metadata":{"annotations":{"secret":%q}}}`, name)))
		return err
	}
}

// swept makes a secret of each app, and deletes all secrets of apps that are no more.
func swept(looksTwice bool) reconcile {
	return func(a *app, ctx context.Context, key client.Key) error {
		_, err := a.maps.Get(ctx, key)
		if client.IsNotFound(err) && looksTwice {
			_, err = client.Of[*corev1.ConfigMap](a.live).Get(ctx, key)
		}
		if err == nil {
			if _, err = a.secrets.Get(ctx, key); client.IsNotFound(err) {
				_, err = a.secrets.Create(ctx, secretOf(key, key.Name, "x"))
			}
		}
		if !client.IsNotFound(err) {
			return err
		}
		for s, err := range a.secrets.List(ctx, client.Label("of", key.Name)) {
			if err != nil {
				return err
			}
			if err := a.secrets.Delete(ctx, client.KeyOf(s)); client.IgnoreNotFound(err) != nil {
				return err
			}
		}
		return nil
	}
}

const finalizer = `example.com/app`

// firstOf does all, up to the first that fails.
func firstOf(all ...func() error) error {
	for _, f := range all {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// finalized has a secret as long as its app is not deleted.
func finalized(cleansFirst bool) reconcile {
	return func(a *app, ctx context.Context, key client.Key) error {
		m, err := a.maps.Get(ctx, key)
		if err != nil {
			return err
		}
		clean := func() error { return client.IgnoreNotFound(a.secrets.Delete(ctx, key)) }
		free := func() error {
			_, err := a.maps.Patch(ctx, key, client.MergePatch(`{"metadata":{"finalizers":null}}`))
			return err
		}
		switch {
		case m.DeletionTimestamp != nil && cleansFirst:
			return firstOf(clean, free)
		case m.DeletionTimestamp != nil:
			return firstOf(free, clean)
		case len(m.Finalizers) == 0:
			_, err := a.maps.Patch(ctx, key, client.MergePatch(`{"metadata":{"finalizers":["`+finalizer+`"]}}`))
			return err
		}
		_, err = a.secrets.Get(ctx, key)
		if client.IsNotFound(err) {
			_, err = a.secrets.Create(ctx, secretOf(key, key.Name, "x"))
		}
		return err
	}
}

// mirrored keeps a secret with the value of its app.
func mirrored(updates bool) reconcile {
	return func(a *app, ctx context.Context, key client.Key) error {
		m, err := a.maps.Get(ctx, key)
		if client.IsNotFound(err) {
			return a.secrets.Delete(ctx, key)
		}
		if err != nil {
			return err
		}
		s, err := a.secrets.Get(ctx, key)
		switch {
		case client.IsNotFound(err):
			_, err = a.secrets.Create(ctx, secretOf(key, key.Name, m.Data["value"]))
		case err == nil && updates && string(s.Data["value"]) != m.Data["value"]:
			s = s.DeepCopy()
			s.Data["value"] = []byte(m.Data["value"])
			_, err = a.secrets.Update(ctx, s)
		}
		return err
	}
}

// rolled has one secret of an app, with a name of its value: the old one goes first.
func rolled(stops bool) reconcile {
	return func(a *app, ctx context.Context, key client.Key) error {
		m, err := a.maps.Get(ctx, key)
		if err != nil {
			return err
		}
		want := client.Key{Namespace: key.Namespace, Name: key.Name + "-" + m.Data["value"]}
		for s, err := range a.secrets.List(ctx, client.Label("of", key.Name)) {
			if err == nil && client.KeyOf(s) != want {
				err = client.IgnoreNotFound(a.secrets.Delete(ctx, client.KeyOf(s)))
			}
			if err != nil && stops {
				return err
			}
		}
		_, err = a.secrets.Get(ctx, want)
		if client.IsNotFound(err) {
			_, err = a.secrets.Create(ctx, secretOf(key, want.Name, "x"))
		}
		return err
	}
}

// atMostOne is what must always be true of rolled.
func atMostOne(ctx context.Context, conn *client.Conn) error {
	all, _, err := client.Of[*corev1.Secret](conn).All(ctx, client.Labels("of"))
	if err == nil && len(all) > 1 {
		err = fmt.Errorf("there are %d secrets", len(all))
	}
	return err
}

// observed copies the replicas of a deployment to a secret, and says which generation
// it has seen.
func observed(always bool) reconcile {
	return func(a *app, ctx context.Context, key client.Key) error {
		d, err := a.deployments.Get(ctx, key)
		if err != nil {
			return err
		}
		s, err := a.secrets.Get(ctx, key)
		want, wrote := fmt.Sprint(*d.Spec.Replicas), false
		switch {
		case client.IsNotFound(err):
			_, err = a.secrets.Create(ctx, secretOf(key, key.Name, want))
			wrote = true
		case err == nil && string(s.Data["value"]) != want:
			s = s.DeepCopy()
			s.Data["value"] = []byte(want)
			_, err = a.secrets.Update(ctx, s)
			wrote = true
		}
		if err != nil || d.Status.ObservedGeneration == d.Generation || !(wrote || always) {
			return err
		}
		d = d.DeepCopy()
		d.Status.ObservedGeneration = d.Generation
		_, err = a.deployments.UpdateStatus(ctx, d)
		return err
	}
}

func deploy(replicas int32) Step {
	return func(ctx context.Context, conn *client.Conn) error {
		labels := map[string]string{"app": "web"}
		d := &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
		d.Spec.Replicas, d.Spec.Selector = &replicas, &metav1.LabelSelector{MatchLabels: labels}
		d.Spec.Template.Labels = labels
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "web:1"}}
		_, err := client.Of[*appsv1.Deployment](conn).Apply(ctx, d, client.FieldManager("test"), client.Force())
		return err
	}
}

// both makes an app and a secret that belongs to it, of which the controller hears in
// this order.
func both(ctx context.Context, conn *client.Conn) error {
	if err := create("1")(ctx, conn); err != nil {
		return err
	}
	synctest.Wait()
	return Create(secretOf(appKey, "extra", "x"))(ctx, conn)
}

// What a controller is of. Its informers may begin with any state that a server has at
// hand, by a list or by a watch.
var (
	ofMaps        = controller.For[*corev1.ConfigMap]()
	ofDeployments = controller.For[*appsv1.Deployment]()
	ofAnyMaps     = controller.For[*corev1.ConfigMap](controller.With(informer.AnyVersion()))
	ofListedMaps  = controller.For[*corev1.ConfigMap](controller.With(informer.AnyVersion(), informer.NoWatchList()))
)
