package helm

import (
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	"helm.sh/helm/v4/pkg/release/common"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/even-keel/evenkeel/test/compat/cluster"
)

func TestReleasesLiveAndDie(t *testing.T) {
	cluster.Each(t, func(t *testing.T, s *cluster.Server) { eachMethod(t, s, liveAndDie) })
}

func liveAndDie(u *user) {
	first := u.install(nil)
	u.mustFind(plain())
	u.mustHave("after install", u.names(), objects)
	u.mustHave("release secrets", u.stored(), []string{"1 deployed"})
	if want := "shop says hello on Kubernetes v1.37.2."; !strings.Contains(first.Info.Notes, want) {
		u.Errorf("notes are %q", first.Info.Notes)
	}
	want := map[bool]string{true: "ssa", false: "csa"}[u.serverSide]
	if first.ApplyMethod != want {
		u.Errorf("installed by %s", first.ApplyMethod)
	}
	key := u.key()

	u.upgrade(richValues)
	u.mustFind(rich())
	u.mustHave("release secrets", u.stored(), []string{"1 superseded", "2 deployed"})
	if got := u.key(); got != key {
		u.Errorf("the looked up key was %q and became %q", key, got)
	}

	u.rollback(1)
	u.mustFind(plain())
	u.mustHave("history", u.history(), []string{"1 superseded", "2 superseded", "3 deployed"})

	u.uninstall()
	u.mustHave("after uninstall", u.names(), []string{"ConfigMapList shop-farewell", "JobList shop-migrate"})
	u.mustHave("release secrets", u.stored(), nil)
}

// key is what the chart has generated.
func (u *user) key() string {
	u.Helper()
	return string(must(u.c.CoreV1().Secrets(u.ns).Get(u.Context(), shop, metav1.GetOptions{}))(u).Data["key"])
}

// TestUpgradesLeaveAlone: what others have added stays, and an upgrade that
// changes nothing writes nothing but the hooks.
func TestUpgradesLeaveAlone(t *testing.T) {
	each(t, func(u *user) {
		u.install(nil)
		deployments := u.c.AppsV1().Deployments(u.ns)
		added := []byte(`{"metadata":{"annotations":{"team":"a"}},"spec":{"template":{"spec":{"containers":[{"name":"mesh","image":"mesh:1"}]}}}}`)
		before := must(deployments.Patch(u.Context(), shop, types.StrategicMergePatchType, added, metav1.PatchOptions{FieldManager: "mesh"}))(u)
		u.upgrade(nil)
		same := must(deployments.Get(u.Context(), shop, metav1.GetOptions{}))(u)
		if same.Generation != before.Generation {
			u.Errorf("an upgrade to the same moved generation %d to %d", before.Generation, same.Generation)
		}
		u.upgrade(values{"image": "shop:2"})
		after := must(deployments.Get(u.Context(), shop, metav1.GetOptions{}))(u)
		containers := map[string]string{}
		for _, c := range after.Spec.Template.Spec.Containers {
			containers[c.Name] = c.Image
		}
		if after.Annotations["team"] != "a" || containers["mesh"] != "mesh:1" || containers["shop"] != "shop:2" {
			u.Errorf("after upgrade: annotations %v, containers %v", after.Annotations, containers)
		}
	})
}

// TestUpgradesMeetOthers: server-side apply refuses to change what somebody else
// has set since, unless forced; a three-way merge wins.
func TestUpgradesMeetOthers(t *testing.T) {
	each(t, func(u *user) {
		u.install(nil)
		edited := []byte(`{"spec":{"replicas":7}}`)
		must(u.c.AppsV1().Deployments(u.ns).Patch(u.Context(), shop, types.MergePatchType, edited, metav1.PatchOptions{FieldManager: "editor"}))(u)
		_, err := u.newUpgrade().RunWithContext(u.Context(), shop, u.chart, values{"replicas": 4})
		if u.serverSide {
			if err == nil || !strings.Contains(err.Error(), `conflict with "editor"`) {
				u.Fatalf("upgrade over another's change got %v", err)
			}
			u.mustHave("history", u.history(), []string{"1 deployed", "2 failed"})
			forced := u.newUpgrade()
			forced.ForceConflicts = true
			_, err = forced.RunWithContext(u.Context(), shop, u.chart, values{"replicas": 4})
		}
		check(u, err)
		want := plain()
		want.Replicas = 4
		u.mustFind(want)
	})
}

// TestFailedUpgrades: one that the server refuses in the middle is kept as
// failed, and can be rolled back.
func TestFailedUpgrades(t *testing.T) {
	each(t, func(u *user) {
		u.install(nil)
		broken := values{"replicas": -1, "greeting": "broken", "password": "broken", "audit": true}
		_, err := u.newUpgrade().RunWithContext(u.Context(), shop, u.chart, broken)
		if err == nil || !strings.Contains(err.Error(), "must be greater than or equal to 0") {
			u.Fatalf("upgrade to -1 replicas got %v", err)
		}
		u.mustHave("history", u.history(), []string{"1 deployed", "2 failed"})
		if got := u.find(); got.Greeting != "broken" || got.Replicas != 2 {
			u.Errorf("what came before the refusal was not written, or what was refused was: %+v", got)
		}
		u.rollback(1)
		u.mustFind(plain())
		u.mustHave("history", u.history(), []string{"1 superseded", "2 failed", "3 deployed"})

		careful := u.newUpgrade()
		careful.RollbackOnFailure, careful.WaitStrategy = true, kube.StatusWatcherStrategy
		if _, err := careful.RunWithContext(u.Context(), shop, u.chart, broken); err == nil {
			u.Error("the careful upgrade succeeded")
		}
		u.mustFind(plain())
		u.mustHave("release secrets", u.stored(), []string{"1 superseded", "2 failed", "3 superseded", "4 failed", "5 deployed"})
	})
}

// TestFailedInstalls: a release that could not be installed is kept as failed,
// and one that is to clean up leaves nothing.
func TestFailedInstalls(t *testing.T) {
	each(t, func(u *user) {
		broken := values{"ports": values{"http": 70000}}
		if _, err := u.newInstall().RunWithContext(u.Context(), u.chart, broken); err == nil || !strings.Contains(err.Error(), "70000") {
			u.Fatalf("install with port 70000 got %v", err)
		}
		u.mustHave("history", u.history(), []string{"1 failed"})
		u.upgrade(values{"ports": values{"http": 80}}) // without values it would take the broken ones
		u.mustFind(plain())
		u.uninstall()

		careful := u.newInstall()
		careful.RollbackOnFailure, careful.WaitStrategy = true, kube.StatusWatcherStrategy
		if _, err := careful.RunWithContext(u.Context(), u.chart, broken); err == nil {
			u.Error("the careful install succeeded")
		}
		u.mustHave("release secrets", u.stored(), nil)
		if _, err := u.c.CoreV1().ConfigMaps(u.ns).Get(u.Context(), shop, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			u.Errorf("the careful install left its ConfigMap: %v", err)
		}
	})
}

// TestDryRuns: helm asks the server, and nothing changes.
func TestDryRuns(t *testing.T) {
	each(t, func(u *user) {
		dry := u.newInstall()
		dry.DryRunStrategy = action.DryRunServer
		r := made(must(dry.RunWithContext(u.Context(), u.chart, nil))(u))
		if !strings.Contains(r.Manifest, "kind: Deployment") || r.Info.Status != common.StatusPendingInstall {
			u.Errorf("dry install is %s with manifest %q", r.Info.Status, r.Manifest)
		}
		u.mustHave("after dry install", u.names(), nil)
		u.mustHave("release secrets", u.stored(), nil)

		u.install(nil)
		key := must(u.c.CoreV1().Secrets(u.ns).Get(u.Context(), shop, metav1.GetOptions{}))(u).Data["key"]
		up := u.newUpgrade()
		up.DryRunStrategy = action.DryRunServer
		r = made(must(up.RunWithContext(u.Context(), shop, u.chart, richValues))(u))
		if encoded := "key: " + base64Of(key); !strings.Contains(r.Manifest, encoded) {
			u.Errorf("the dry upgrade did not look up %q: %q", encoded, r.Manifest)
		}
		u.mustFind(plain())
		u.mustHave("history", u.history(), []string{"1 deployed"})
	})
}

// TestWaits: helm follows the release until it is ready.
func TestWaits(t *testing.T) {
	each(t, func(u *user) {
		i := u.newInstall()
		i.WaitStrategy, i.WaitForJobs = kube.StatusWatcherStrategy, true
		must(i.RunWithContext(u.Context(), u.chart, nil))(u)
		u.mustBeAvailable(2)
		up := u.newUpgrade()
		up.WaitStrategy, up.WaitForJobs = kube.StatusWatcherStrategy, true
		must(up.RunWithContext(u.Context(), shop, u.chart, richValues))(u)
		u.mustBeAvailable(3)
	})
}

func (u *user) mustBeAvailable(replicas int32) {
	u.Helper()
	d := must(u.c.AppsV1().Deployments(u.ns).Get(u.Context(), shop, metav1.GetOptions{}))(u)
	if d.Status.AvailableReplicas != replicas || d.Status.ObservedGeneration != d.Generation {
		u.Errorf("helm did not wait: generation %d, status %+v", d.Generation, d.Status)
	}
}

// TestTestsOfReleases runs the chart's test Pod.
func TestTestsOfReleases(t *testing.T) {
	each(t, func(u *user) {
		u.install(nil)
		test := action.NewReleaseTesting(u.config)
		test.Namespace, test.Timeout = u.ns, patience
		r, shutdown, err := test.Run(shop)
		check(u, err)
		check(u, shutdown())
		for _, h := range made(r).Hooks {
			if h.Name == shop+"-test" && h.LastRun.Phase != releasev1.HookPhaseSucceeded {
				u.Errorf("the test %s", h.LastRun.Phase)
			}
		}
		must(u.c.CoreV1().Pods(u.ns).Get(u.Context(), shop+"-test", metav1.GetOptions{}))(u)
		status := must(action.NewStatus(u.config).Run(shop))(u)
		if made(status).Info.Status != common.StatusDeployed {
			u.Errorf("after its test the release is %s", made(status).Info.Status)
		}
		list := action.NewList(u.config)
		if all := must(list.Run())(u); len(all) != 1 || made(all[0]).Name != shop {
			u.Errorf("%d releases are listed", len(all))
		}
	})
}

// TestMethodsChange: a release of one method is upgraded by the other, and its
// fields change hands.
func TestMethodsChange(t *testing.T) {
	each(t, func(u *user) {
		u.install(nil)
		up := u.newUpgrade()
		up.ServerSideApply = map[bool]string{true: "false", false: "true"}[u.serverSide]
		r := made(must(up.RunWithContext(u.Context(), shop, u.chart, richValues))(u))
		if want := map[bool]string{true: "csa", false: "ssa"}[u.serverSide]; r.ApplyMethod != want {
			u.Errorf("upgraded by %s", r.ApplyMethod)
		}
		u.mustFind(rich())
		applies, updates := "helm.test Apply", "helm.test Update"
		owners := map[bool][]string{true: {applies, updates}, false: {applies}}
		u.mustHave("managers after upgrade", u.managers(), owners[u.serverSide])
		u.rollback(1) // by the method of that revision
		u.mustFind(plain())
		u.mustHave("managers after rollback", u.managers(), owners[!u.serverSide])
	})
}
