package clientgo

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/kubernetes"
)

func TestApply(t *testing.T) {
	each(t, func(t *testing.T, c kubernetes.Interface, ns string) {
		ctx, deployments := t.Context(), c.AppsV1().Deployments(ns)
		labels := map[string]string{"app": "web"}
		wanted := func(image string) *appsapply.DeploymentApplyConfiguration {
			return appsapply.Deployment("web", ns).WithLabels(labels).WithSpec(appsapply.DeploymentSpec().
				WithSelector(metaapply.LabelSelector().WithMatchLabels(labels)).
				WithTemplate(coreapply.PodTemplateSpec().WithLabels(labels).
					WithSpec(coreapply.PodSpec().WithContainers(
						coreapply.Container().WithName("main").WithImage(image).
							WithPorts(coreapply.ContainerPort().WithContainerPort(80)),
					))))
		}
		one := metav1.ApplyOptions{FieldManager: "one"}

		created := must(deployments.Apply(ctx, wanted("img:1"), one))(t)
		if created.UID == "" || *created.Spec.Replicas != 1 || created.Generation != 1 {
			t.Errorf("created %+v", created)
		}
		same := must(deployments.Apply(ctx, wanted("img:1"), one))(t)
		if same.ResourceVersion != created.ResourceVersion {
			t.Errorf("applying the same moved %s to %s", created.ResourceVersion, same.ResourceVersion)
		}

		_, err := deployments.Apply(ctx, wanted("img:2"), metav1.ApplyOptions{FieldManager: "two"})
		refused(t, "another manager's field", err, apierrors.IsConflict)
		if causes := err.(apierrors.APIStatus).Status().Details.Causes; len(causes) != 1 || causes[0].Type != metav1.CauseTypeFieldManagerConflict {
			t.Errorf("causes of the conflict: %+v", causes)
		}
		forced := must(deployments.Apply(ctx, wanted("img:2"), metav1.ApplyOptions{FieldManager: "two", Force: true}))(t)
		if got := forced.Spec.Template.Spec.Containers[0].Image; got != "img:2" {
			t.Errorf("after force the image is %s", got)
		}
		_, err = deployments.Apply(ctx, wanted("img:3"), metav1.ApplyOptions{})
		refused(t, "no manager", err, func(err error) bool { return err != nil })

		// What a manager no longer wants goes, if nobody else wants it.
		more := wanted("img:2").WithAnnotations(map[string]string{"note": "mine"})
		must(deployments.Apply(ctx, more, metav1.ApplyOptions{FieldManager: "two"}))(t)
		less := must(deployments.Apply(ctx, wanted("img:2"), metav1.ApplyOptions{FieldManager: "two"}))(t)
		if _, ok := less.Annotations["note"]; ok {
			t.Errorf("an annotation that nobody wants is still there: %v", less.Annotations)
		}

		// What a manager owns can be read back as a configuration.
		mine := must(appsapply.ExtractDeployment(less, "two"))(t)
		if image := *mine.Spec.Template.Spec.Containers[0].Image; image != "img:2" {
			t.Errorf("extracted %s", image)
		}
		if mine.Spec.Replicas != nil {
			t.Error("extracted replicas, which nobody applied")
		}
	})
}

func TestApplyStatus(t *testing.T) {
	each(t, func(t *testing.T, c kubernetes.Interface, ns string) {
		ctx, deployments := t.Context(), c.AppsV1().Deployments(ns)
		created := must(deployments.Create(ctx, deployment("web"), metav1.CreateOptions{}))(t)
		status := appsapply.Deployment("web", ns).
			WithSpec(appsapply.DeploymentSpec().WithReplicas(9)).
			WithStatus(appsapply.DeploymentStatus().WithObservedGeneration(1).WithReplicas(1).WithConditions(
				appsapply.DeploymentCondition().WithType("Available").WithStatus(corev1.ConditionTrue).WithReason("Test"),
			))
		got := must(deployments.ApplyStatus(ctx, status, metav1.ApplyOptions{FieldManager: "controller"}))(t)
		if got.Status.Replicas != 1 || len(got.Status.Conditions) != 1 {
			t.Errorf("status is %+v", got.Status)
		}
		if *got.Spec.Replicas != 1 || got.Generation != created.Generation {
			t.Errorf("the status endpoint changed the spec: %d replicas, generation %d", *got.Spec.Replicas, got.Generation)
		}
		mine := must(appsapply.ExtractDeploymentStatus(got, "controller"))(t)
		if mine.Status == nil || *mine.Status.Replicas != 1 || mine.Spec != nil {
			t.Errorf("extracted %+v", mine)
		}
	})
}

// TestApplyKeyedLists has two managers own items of one list.
func TestApplyKeyedLists(t *testing.T) {
	each(t, func(t *testing.T, c kubernetes.Interface, ns string) {
		ctx, services := t.Context(), c.CoreV1().Services(ns)
		port := func(name string, n int32) *coreapply.ServicePortApplyConfiguration {
			return coreapply.ServicePort().WithName(name).WithPort(n).WithProtocol(corev1.ProtocolTCP).WithTargetPort(intstr.FromInt32(n))
		}
		apply := func(manager string, ports ...*coreapply.ServicePortApplyConfiguration) *corev1.Service {
			t.Helper()
			s := coreapply.Service("web", ns).WithSpec(coreapply.ServiceSpec().WithPorts(ports...))
			return must(services.Apply(ctx, s, metav1.ApplyOptions{FieldManager: manager}))(t)
		}
		apply("one", port("http", 80))
		both := apply("two", port("https", 443))
		if len(both.Spec.Ports) != 2 || both.Spec.ClusterIP == "" {
			t.Errorf("two managers made %+v", both.Spec)
		}
		left := apply("one", port("metrics", 9090))
		names := map[string]bool{}
		for _, p := range left.Spec.Ports {
			names[p.Name] = true
		}
		if len(names) != 2 || !names["https"] || !names["metrics"] {
			t.Errorf("ports %v, want https of the one and metrics of the other", names)
		}
		if left.Spec.ClusterIP != both.Spec.ClusterIP {
			t.Errorf("the address went from %s to %s", both.Spec.ClusterIP, left.Spec.ClusterIP)
		}
	})
}
