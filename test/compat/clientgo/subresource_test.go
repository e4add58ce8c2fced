package clientgo

import (
	"net/http"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	autoscalingapply "k8s.io/client-go/applyconfigurations/autoscaling/v1"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/utils/ptr"

	"github.com/even-keel/evenkeel/test/compat/cluster"
)

// TestStatusIsApart: the object's endpoint ignores the status, the status
// endpoint the spec.
func TestStatusIsApart(t *testing.T) {
	each(t, func(t *testing.T, c kubernetes.Interface, ns string) {
		ctx, pods := t.Context(), c.CoreV1().Pods(ns)
		p := pod("one")
		p.Status.Phase = corev1.PodFailed
		created := must(pods.Create(ctx, p, metav1.CreateOptions{}))(t)
		if created.Status.Phase != corev1.PodPending {
			t.Errorf("created as %s", created.Status.Phase)
		}
		wanted := created.DeepCopy()
		wanted.Status.Phase = corev1.PodRunning
		wanted.Spec.Containers[0].Image = "img:2"
		updated := must(pods.UpdateStatus(ctx, wanted, metav1.UpdateOptions{}))(t)
		if updated.Status.Phase != corev1.PodRunning || updated.Spec.Containers[0].Image != "img:1" {
			t.Errorf("status update: %s, %s", updated.Status.Phase, updated.Spec.Containers[0].Image)
		}
		wanted = updated.DeepCopy()
		wanted.Status.Phase = corev1.PodFailed
		wanted.Spec.Containers[0].Image = "img:2"
		updated = must(pods.Update(ctx, wanted, metav1.UpdateOptions{}))(t)
		if updated.Status.Phase != corev1.PodRunning || updated.Spec.Containers[0].Image != "img:2" {
			t.Errorf("update: %s, %s", updated.Status.Phase, updated.Spec.Containers[0].Image)
		}
		patched := must(pods.Patch(ctx, "one", types.StrategicMergePatchType,
			[]byte(`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`), metav1.PatchOptions{}, "status"))(t)
		if len(patched.Status.Conditions) != 1 {
			t.Errorf("patched status: %+v", patched.Status)
		}
	})
}

func TestScale(t *testing.T) {
	each(t, func(t *testing.T, c kubernetes.Interface, ns string) {
		ctx, deployments := t.Context(), c.AppsV1().Deployments(ns)
		must(deployments.Create(ctx, deployment("web"), metav1.CreateOptions{}))(t)
		s := must(deployments.GetScale(ctx, "web", metav1.GetOptions{}))(t)
		if s.Spec.Replicas != 1 || s.Status.Selector != "app=web" {
			t.Errorf("scale is %+v", s)
		}
		s.Spec.Replicas = 4
		s = must(deployments.UpdateScale(ctx, "web", s, metav1.UpdateOptions{}))(t)
		if s.Spec.Replicas != 4 {
			t.Errorf("scaled to %d", s.Spec.Replicas)
		}
		stale := s.DeepCopy()
		stale.ResourceVersion = "1"
		_, err := deployments.UpdateScale(ctx, "web", stale, metav1.UpdateOptions{})
		refused(t, "scale from a stale revision", err, apierrors.IsConflict)
		_, err = deployments.UpdateScale(ctx, "web", &autoscalingv1.Scale{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: ns}, Spec: autoscalingv1.ScaleSpec{Replicas: -1},
		}, metav1.UpdateOptions{})
		refused(t, "scale below zero", err, apierrors.IsInvalid)

		applied := must(deployments.ApplyScale(ctx, "web", autoscalingapply.Scale().
			WithSpec(autoscalingapply.ScaleSpec().WithReplicas(5)), metav1.ApplyOptions{FieldManager: "hpa", Force: true}))(t)
		if applied.Spec.Replicas != 5 {
			t.Errorf("applied %d", applied.Spec.Replicas)
		}
		d := must(deployments.Get(ctx, "web", metav1.GetOptions{}))(t)
		if *d.Spec.Replicas != 5 || d.Generation != 3 {
			t.Errorf("%d replicas, generation %d", *d.Spec.Replicas, d.Generation)
		}
	})
}

// TestScaleOfAnything is what autoscalers use: they find the scale by discovery.
func TestScaleOfAnything(t *testing.T) {
	cluster.Each(t, func(t *testing.T, s *cluster.Server) {
		c := clientset(t, s.Admin())
		ctx, ns := t.Context(), newNamespace(t, c)
		must(c.AppsV1().Deployments(ns).Create(ctx, deployment("web"), metav1.CreateOptions{}))(t)
		cached := memory.NewMemCacheClient(c.Discovery())
		mapper := restmapper.NewDeferredDiscoveryRESTMapper(cached)
		scales := must(scale.NewForConfig(s.Admin(), mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(cached)))(t).Scales(ns)
		gr := schema.GroupResource{Group: "apps", Resource: "deployments"}
		got := must(scales.Get(ctx, gr, "web", metav1.GetOptions{}))(t)
		got.Spec.Replicas = 7
		got = must(scales.Update(ctx, gr, got, metav1.UpdateOptions{}))(t)
		if got.Spec.Replicas != 7 {
			t.Errorf("scaled to %d", got.Spec.Replicas)
		}
		got = must(scales.Patch(ctx, gr.WithVersion("v1"), "web", types.MergePatchType, []byte(`{"spec":{"replicas":8}}`), metav1.PatchOptions{}))(t)
		if got.Spec.Replicas != 8 {
			t.Errorf("patched to %d", got.Spec.Replicas)
		}
	})
}

func TestBindAndEvict(t *testing.T) {
	each(t, func(t *testing.T, c kubernetes.Interface, ns string) {
		ctx, pods := t.Context(), c.CoreV1().Pods(ns)
		must(pods.Create(ctx, pod("one"), metav1.CreateOptions{}))(t)
		to := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: ns}, Target: corev1.ObjectReference{Kind: "Node", Name: "n1"}}
		check(t, pods.Bind(ctx, to, metav1.CreateOptions{}))
		bound := must(pods.Get(ctx, "one", metav1.GetOptions{}))(t)
		if bound.Spec.NodeName != "n1" || len(bound.Status.Conditions) != 1 || bound.Status.Conditions[0].Type != corev1.PodScheduled {
			t.Errorf("bound: %s, %+v", bound.Spec.NodeName, bound.Status.Conditions)
		}
		refused(t, "bind twice", pods.Bind(ctx, to, metav1.CreateOptions{}), apierrors.IsConflict)

		evict := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: ns}}
		check(t, pods.EvictV1(ctx, evict))
		dying := must(pods.Get(ctx, "one", metav1.GetOptions{}))(t)
		if dying.DeletionTimestamp == nil || *dying.DeletionGracePeriodSeconds != 30 {
			t.Errorf("evicted: %+v", dying.ObjectMeta)
		}
		check(t, pods.Delete(ctx, "one", metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}))
		_, err := pods.Get(ctx, "one", metav1.GetOptions{})
		refused(t, "get of a pod killed at once", err, apierrors.IsNotFound)
		refused(t, "evict what is gone", pods.EvictV1(ctx, evict), apierrors.IsNotFound)
	})
}

func TestPodParts(t *testing.T) {
	each(t, func(t *testing.T, c kubernetes.Interface, ns string) {
		ctx, pods := t.Context(), c.CoreV1().Pods(ns)
		p := must(pods.Create(ctx, pod("one"), metav1.CreateOptions{}))(t)
		p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{
			EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "busybox"},
		}}
		p = must(pods.UpdateEphemeralContainers(ctx, "one", p, metav1.UpdateOptions{}))(t)
		if len(p.Spec.EphemeralContainers) != 1 {
			t.Errorf("ephemeral containers: %+v", p.Spec.EphemeralContainers)
		}
		got := must(pods.Get(ctx, "one", metav1.GetOptions{}))(t)
		if got.ResourceVersion != p.ResourceVersion {
			t.Errorf("stored at %s, answered %s", got.ResourceVersion, p.ResourceVersion)
		}

		said := must(pods.GetLogs("one", &corev1.PodLogOptions{}).DoRaw(ctx))(t)
		if len(said) != 0 {
			t.Errorf("a pod without a node said %q", said)
		}
		check(t, pods.Bind(ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: "one"}, Target: corev1.ObjectReference{Kind: "Node", Name: "n1"},
		}, metav1.CreateOptions{}))
		// Nobody runs pods yet: the answer is a Status that says so.
		_, err := pods.GetLogs("one", &corev1.PodLogOptions{}).Stream(ctx)
		refused(t, "logs", err, func(err error) bool {
			status, ok := err.(apierrors.APIStatus)
			return ok && status.Status().Code == http.StatusNotImplemented && strings.Contains(err.Error(), "node agent")
		})
	})
}

func TestTokens(t *testing.T) {
	each(t, func(t *testing.T, c kubernetes.Interface, ns string) {
		ctx, accounts := t.Context(), c.CoreV1().ServiceAccounts(ns)
		sa := must(accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}, metav1.CreateOptions{}))(t)
		req := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](3600)}}
		got := must(accounts.CreateToken(ctx, "robot", req, metav1.CreateOptions{}))(t)
		if got.Status.Token == "" || time.Until(got.Status.ExpirationTimestamp.Time) < 50*time.Minute {
			t.Fatalf("token: %+v", got)
		}
		review := must(c.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
			Spec: authenticationv1.TokenReviewSpec{Token: got.Status.Token},
		}, metav1.CreateOptions{}))(t)
		want := "system:serviceaccount:" + ns + ":robot"
		if !review.Status.Authenticated || review.Status.User.Username != want || review.Status.User.UID != string(sa.UID) {
			t.Errorf("the token is %+v's, want %s", review.Status, want)
		}
		review = must(c.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
			Spec: authenticationv1.TokenReviewSpec{Token: "nobody's"},
		}, metav1.CreateOptions{}))(t)
		if review.Status.Authenticated {
			t.Errorf("an unknown token is %+v's", review.Status.User)
		}
		_, err := accounts.CreateToken(ctx, "none", req, metav1.CreateOptions{})
		refused(t, "token of no account", err, apierrors.IsNotFound)
		short := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](5)}}
		_, err = accounts.CreateToken(ctx, "robot", short, metav1.CreateOptions{})
		refused(t, "token of five seconds", err, apierrors.IsInvalid)
	})
}

func TestNamespaceFinalize(t *testing.T) {
	each(t, func(t *testing.T, c kubernetes.Interface, _ string) {
		ctx, namespaces := t.Context(), c.CoreV1().Namespaces()
		name := newNamespace(t, c)
		check(t, namespaces.Delete(ctx, name, metav1.DeleteOptions{}))
		dying := must(namespaces.Get(ctx, name, metav1.GetOptions{}))(t)
		if dying.Status.Phase != corev1.NamespaceTerminating || dying.DeletionTimestamp == nil {
			t.Errorf("deleted: %+v", dying)
		}
		_, err := c.CoreV1().ConfigMaps(name).Create(ctx, configMap("late"), metav1.CreateOptions{})
		refused(t, "create in a dying namespace", err, func(err error) bool {
			return apierrors.IsForbidden(err) && apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
		})
		dying.Spec.Finalizers = nil
		must(namespaces.Finalize(ctx, dying, metav1.UpdateOptions{}))(t)
		_, err = namespaces.Get(ctx, name, metav1.GetOptions{})
		refused(t, "get after finalize", err, apierrors.IsNotFound)
	})
}

func TestCertificateApproval(t *testing.T) {
	each(t, func(t *testing.T, c kubernetes.Interface, ns string) {
		ctx, requests := t.Context(), c.CertificatesV1().CertificateSigningRequests()
		csr := &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: ns},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				Request:    certificateRequest(t),
				SignerName: "example.com/signer",
				Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
			},
		}
		created := must(requests.Create(ctx, csr, metav1.CreateOptions{}))(t)
		if created.Spec.Username != "kubernetes-admin" {
			t.Errorf("requested by %q", created.Spec.Username)
		}
		created.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
			Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test",
		}}
		approved := must(requests.UpdateApproval(ctx, created.Name, created, metav1.UpdateOptions{}))(t)
		if len(approved.Status.Conditions) != 1 || approved.Status.Conditions[0].LastUpdateTime.IsZero() {
			t.Errorf("approved: %+v", approved.Status)
		}
		approved.Status.Conditions = nil
		_, err := requests.UpdateApproval(ctx, created.Name, approved, metav1.UpdateOptions{})
		refused(t, "take an approval back", err, apierrors.IsInvalid)
	})
}
