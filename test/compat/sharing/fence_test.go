package sharing

import (
	"context"
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/even-keel/evenkeel/leader"
	"github.com/even-keel/evenkeel/test/compat/cluster"
)

// The lease is taken through one server, and the deposed leader writes through the
// other, which has yet to hear of it. It writes with client-go.
func TestAFenceHoldsAtTheOtherServer(t *testing.T) {
	t.Parallel()
	etcd := cluster.NewEtcd(t, 1)
	near := etcd.Start(t)
	far := etcd.Start(t, cluster.WithCredentials(near.Credentials), cluster.Lagging(300*time.Millisecond))
	here := client(t, near)
	ns := newNamespace(t, here)
	cfg := far.Admin()
	cfg.Wrap(leader.Transport)
	there := must(kubernetes.NewForConfig(cfg))(t)

	leases := here.CoordinationV1().Leases(ns)
	l := must(leases.Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "l"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("a")},
	}, metav1.CreateOptions{}))(t)
	fence := leader.Fence{Namespace: ns, Name: "l", UID: l.UID, Holder: "a"}
	write := func(ctx context.Context, name string) error {
		_, err := there.CoreV1().ConfigMaps(ns).Create(fence.Context(ctx), configMap(name), metav1.CreateOptions{})
		return err
	}
	for i := range 5 { // while it is renewed
		if err := write(t.Context(), fmt.Sprint("in-time-", i)); err != nil {
			t.Fatal(err)
		}
		l.Spec.LeaseDurationSeconds = ptr.To(int32(i + 1))
		l = must(leases.Update(t.Context(), l, metav1.UpdateOptions{}))(t)
	}
	l.Spec.HolderIdentity, l.Spec.LeaseTransitions = ptr.To("b"), ptr.To(int32(1))
	must(leases.Update(t.Context(), l, metav1.UpdateOptions{}))(t)
	if err := write(t.Context(), "late"); !leader.IsFenced(err) {
		t.Errorf("the late write returned %v", err)
	}
	if _, err := here.CoreV1().ConfigMaps(ns).Get(t.Context(), "late", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("it was written: %v", err)
	}
}
