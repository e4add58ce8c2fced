// Package helm has helm's library as a client of our server: it installs,
// upgrades, rolls back, tests and uninstalls a chart, by server-side apply and
// by three-way merge.
package helm

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"helm.sh/helm/v4/pkg/action"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/kube"
	"helm.sh/helm/v4/pkg/release"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/even-keel/evenkeel/server/auth"
	"github.com/even-keel/evenkeel/test/compat/cluster"
)

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard()) // what matters is asserted
	os.Exit(m.Run())
}

// shop is the release that tests make of the chart in testdata.
const shop = "shop"

// patience is how long helm waits for hooks and for readiness.
const patience = 30 * time.Second

// methods are the ways in which helm writes: whether it is by server-side apply.
var methods = map[string]bool{"server-side": true, "client-side": false}

// user is somebody who has helm, and a namespace for one release.
type user struct {
	*testing.T
	c          kubernetes.Interface
	ns         string
	config     *action.Configuration
	chart      *chart.Chart
	serverSide bool
}

// each runs a test with each method, on a server of its own.
func each(t *testing.T, test func(u *user)) {
	t.Parallel()
	s := cluster.Memory.Start(t)
	eachMethod(t, s, test)
}

// eachMethod runs a test with each method. Somebody runs what a release starts.
func eachMethod(t *testing.T, s *cluster.Server, test func(u *user)) {
	for name, serverSide := range methods {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := must(kubernetes.NewForConfig(s.Admin()))(t)
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "helm-"}}
			ns := must(c.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}))(t).Name
			runWorkloads(t, c, ns)
			file := filepath.Join(t.TempDir(), "kubeconfig")
			check(t, auth.WriteKubeconfig(file, s.Credentials.Kubeconfig("https://"+s.Address)))
			test(&user{
				T: t, c: c, ns: ns, config: newConfig(t, file, ns), serverSide: serverSide,
				chart: must(loader.LoadDir("testdata/shop"))(t),
			})
		})
	}
}

// newConfig is what helm knows of a server by a kubeconfig file.
func newConfig(t *testing.T, kubeconfig, ns string) *action.Configuration {
	t.Helper()
	config := action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler))
	check(t, config.Init(getter(t, kubeconfig, ns), ns, "secret"))
	return config
}

func getter(t *testing.T, kubeconfig, ns string) genericclioptions.RESTClientGetter {
	t.Helper()
	flags := genericclioptions.NewConfigFlags(true).WithWrapConfigFn(func(c *rest.Config) *rest.Config {
		c.QPS = -1
		return c
	})
	flags.KubeConfig, flags.Namespace, flags.CacheDir = &kubeconfig, &ns, ptr.To(t.TempDir())
	return flags
}

type values = map[string]any

func (u *user) newInstall() *action.Install {
	i := action.NewInstall(u.config)
	i.ReleaseName, i.Namespace, i.ServerSideApply = shop, u.ns, u.serverSide
	i.WaitStrategy, i.Timeout = kube.HookOnlyStrategy, patience
	return i
}

func (u *user) install(v values) *releasev1.Release {
	u.Helper()
	return made(must(u.newInstall().RunWithContext(u.Context(), u.chart, v))(u))
}

// newUpgrade is an upgrade that writes as the release before did, like helm's
// command without flags.
func (u *user) newUpgrade() *action.Upgrade {
	up := action.NewUpgrade(u.config)
	up.Namespace, up.WaitStrategy, up.Timeout = u.ns, kube.HookOnlyStrategy, patience
	return up
}

func (u *user) upgrade(v values) *releasev1.Release {
	u.Helper()
	return made(must(u.newUpgrade().RunWithContext(u.Context(), shop, u.chart, v))(u))
}

func (u *user) rollback(to int) {
	u.Helper()
	r := action.NewRollback(u.config)
	r.Version, r.WaitStrategy, r.Timeout = to, kube.HookOnlyStrategy, patience
	check(u, r.Run(shop))
}

func (u *user) uninstall() {
	u.Helper()
	un := action.NewUninstall(u.config)
	un.WaitStrategy, un.Timeout = kube.StatusWatcherStrategy, patience
	must(un.Run(shop))(u)
}

// history is each revision of the release and its status, oldest first.
func (u *user) history() (out []string) {
	u.Helper()
	for _, r := range must(action.NewHistory(u.config).Run(shop))(u) {
		out = append(out, fmt.Sprintf("%d %s", made(r).Version, made(r).Info.Status))
	}
	return out
}

// made is the release that an action returned.
func made(r release.Releaser) *releasev1.Release { return r.(*releasev1.Release) }

// must returns what a call returned, in a test that cannot go on without:
// must(call())(t).
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
