package helm

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/kube"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/evenkeeltest/controlplane"
)

// calm is how long helm waits for what will come.
const calm = 2 * time.Minute

// operator is a user whose helm waits for a control plane: controllers, scheduler
// and nodes make the chart fleet ready, and nobody else.
type operator struct {
	*user
	env      *evenkeeltest.Env
	strategy kube.WaitStrategy
}

// withPlane runs a test with each of helm's ways to wait, on a server of its own.
func withPlane(t *testing.T, test func(o *operator)) {
	t.Parallel()
	for _, strategy := range []kube.WaitStrategy{kube.StatusWatcherStrategy, kube.LegacyStrategy} {
		t.Run(string(strategy), func(t *testing.T) {
			t.Parallel()
			env := evenkeeltest.Start(t)
			controlplane.Run(env, controlplane.Options{Nodes: 2})
			c := must(kubernetes.NewForConfig(env.Config()))(t)
			const ns = "fleet"
			must(c.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{}))(t)
			test(&operator{env: env, strategy: strategy, user: &user{
				T: t, c: c, ns: ns, config: newConfig(t, env.Kubeconfig(), ns), serverSide: true,
				chart: must(loader.LoadDir("testdata/fleet"))(t),
			}})
		})
	}
}

// install is `helm install --wait --wait-for-jobs`.
func (o *operator) install() {
	o.Helper()
	i := o.newInstall()
	i.WaitStrategy, i.WaitForJobs, i.Timeout = o.strategy, true, calm
	must(i.RunWithContext(o.Context(), o.chart, nil))(o)
}

// upgrade is `helm upgrade --wait --wait-for-jobs`.
func (o *operator) upgrade(v values, change ...func(*action.Upgrade)) error {
	up := o.newUpgrade()
	up.WaitStrategy, up.WaitForJobs, up.Timeout = o.strategy, true, calm
	for _, change := range change {
		change(up)
	}
	_, err := up.RunWithContext(o.Context(), shop, o.chart, v)
	return err
}

// rollback is `helm rollback --wait --wait-for-jobs`.
func (o *operator) rollback(to int) {
	o.Helper()
	r := action.NewRollback(o.config)
	r.Version, r.WaitStrategy, r.WaitForJobs, r.Timeout = to, o.strategy, true, calm
	check(o, r.Run(shop))
}

// uninstall is `helm uninstall --wait --cascade foreground`. Helm's watcher ends when all
// that it has heard of is gone, which may be one object of many; if it then hears of
// another, it takes that for an error. Callers wait until all is gone.
func (o *operator) uninstall() {
	o.Helper()
	un := action.NewUninstall(o.config)
	un.WaitStrategy, un.DeletionPropagation, un.Timeout = o.strategy, "foreground", calm
	_, err := un.Run(shop)
	early := o.strategy == kube.StatusWatcherStrategy && err != nil && strings.Contains(err.Error(), "still exists. status: Terminating")
	if err != nil && !early {
		o.Fatal(err)
	}
}

// mustRun fails the test unless all is ready now: two pods of an image for the Deployment,
// two for the StatefulSet, and the Jobs of a revision. Helm need not have waited for
// the pods of before to go.
func (o *operator) mustRun(image string, revision int) {
	o.Helper()
	ready := map[string]int{}
	for _, pod := range must(o.c.CoreV1().Pods(o.ns).List(o.Context(), metav1.ListOptions{LabelSelector: "app"}))(o).Items {
		if pod.DeletionTimestamp == nil && isReady(pod) {
			ready[pod.Labels["app"]+" "+pod.Spec.Containers[0].Image]++
		}
	}
	if ready["web "+image] != 2 || ready["db "+image] != 2 {
		o.Errorf("helm did not wait: ready are %v, want two of each with %s", ready, image)
	}
	o.mustComplete(fmt.Sprintf("%s-load-%d", shop, revision))
	o.mustComplete(shop + "-announce")
}

func isReady(pod corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (o *operator) mustComplete(job string) {
	o.Helper()
	j := must(o.c.BatchV1().Jobs(o.ns).Get(o.Context(), job, metav1.GetOptions{}))(o)
	for _, c := range j.Status.Conditions {
		if c.Type == batchv1.JobComplete && c.Status == corev1.ConditionTrue {
			return
		}
	}
	o.Errorf("helm did not wait for the job %s: %+v", job, j.Status)
}

func TestTheControlPlaneMakesReleasesReady(t *testing.T) {
	withPlane(t, func(o *operator) {
		o.install()
		o.mustRun("fleet:1", 1)
		evenkeeltest.EventuallyAll(o.env, o.twoServe)
		check(o, o.upgrade(values{"image": "fleet:2"}))
		o.mustRun("fleet:2", 2)
		o.rollback(1)
		o.mustRun("fleet:1", 1)
		evenkeeltest.EventuallyAll(o.env, o.twoServe)
		o.mustHave("history", o.history(), []string{"1 superseded", "2 superseded", "3 deployed"})

		o.uninstall()
		o.mustHave("release secrets", o.stored(), nil)
		o.mustHaveGone()
	})
}

// twoServe looks for two endpoints of the Service.
func (o *operator) twoServe(all []*discoveryv1.EndpointSlice) error {
	ready := 0
	for _, slice := range all {
		if slice.Namespace != o.ns || slice.Labels[discoveryv1.LabelServiceName] != shop {
			continue
		}
		for _, e := range slice.Endpoints {
			if e.Conditions.Ready != nil && *e.Conditions.Ready {
				ready++
			}
		}
	}
	if ready != 2 {
		return fmt.Errorf("%d endpoints are ready", ready)
	}
	return nil
}

// mustHaveGone waits until nothing of the release is left but its hook, which helm leaves,
// and until all of that has gone with the namespace.
func (o *operator) mustHaveGone() {
	o.Helper()
	eventuallyNone[*appsv1.Deployment](o)
	eventuallyNone[*appsv1.ReplicaSet](o)
	eventuallyNone[*appsv1.StatefulSet](o)
	eventuallyNone[*appsv1.ControllerRevision](o)
	eventuallyNone[*corev1.Service](o)
	eventuallyNone[*discoveryv1.EndpointSlice](o)
	eventuallyNone[*batchv1.Job](o)
	eventuallyNone[*corev1.Pod](o)
	check(o, o.c.CoreV1().Namespaces().Delete(o.Context(), o.ns, metav1.DeleteOptions{}))
	evenkeeltest.EventuallyGone[*corev1.Namespace](o.env, client.Key{Name: o.ns})
}

// eventuallyNone waits until no object of a type is left but of the hook. Helm's watcher
// may return as soon as it knows that one object of the release is gone.
func eventuallyNone[T client.Object](o *operator) {
	o.Helper()
	evenkeeltest.EventuallyAll(o.env, func(all []T) error {
		for _, obj := range all {
			if obj.GetNamespace() == o.ns && !strings.HasPrefix(obj.GetName(), shop+"-announce") {
				return fmt.Errorf("%T %s is left: %v", obj, obj.GetName(), obj)
			}
		}
		return nil
	})
}

// TestRollsThatNeverEnd: an upgrade to what does not start fails, what ran before runs
// on, and a rollback brings all back.
func TestRollsThatNeverEnd(t *testing.T) {
	withPlane(t, func(o *operator) {
		o.install()
		broken := values{"image": "fleet:2", "broken": "no such image", "deadline": 2}
		wants := []string{"Deployment/fleet/shop not ready. status: Failed", "Progress deadline exceeded"}
		var brief []func(*action.Upgrade)
		if o.strategy == kube.LegacyStrategy { // it knows no failure, only its timeout
			wants = []string{"context deadline exceeded"}
			brief = append(brief, func(up *action.Upgrade) { up.Timeout = 3 * time.Second })
		}
		o.mustFail(o.upgrade(broken, brief...), wants...)
		o.mustHave("history", o.history(), []string{"1 deployed", "2 failed"})
		evenkeeltest.Eventually(o.env, client.Key{Namespace: o.ns, Name: shop}, twoAreAvailable)
		o.rollback(1)
		o.mustRun("fleet:1", 1)
		o.mustHave("history", o.history(), []string{"1 superseded", "2 failed", "3 deployed"})
	})
}

func twoAreAvailable(d *appsv1.Deployment) error {
	if d.Status.AvailableReplicas != 2 {
		return fmt.Errorf("what ran before does not: %+v", d.Status)
	}
	return nil
}

// TestFailedHooksAreRolledBack: an upgrade whose hook fails comes back by itself, with
// --rollback-on-failure.
func TestFailedHooksAreRolledBack(t *testing.T) {
	withPlane(t, func(o *operator) {
		o.install()
		err := o.upgrade(values{"image": "fleet:2", "jobExit": 1}, func(up *action.Upgrade) { up.RollbackOnFailure = true })
		o.mustFail(err, "post-upgrade", "has been rolled back")
		o.mustRun("fleet:1", 1)
		o.mustHave("history", o.history(), []string{"1 superseded", "2 failed", "3 deployed"})
	})
}

func (o *operator) mustFail(err error, wants ...string) {
	o.Helper()
	for _, want := range wants {
		if err == nil || !strings.Contains(err.Error(), want) {
			o.Fatalf("got %v, want an error with %q", err, want)
		}
	}
}
