// Package pods makes pods as a busy cluster has them: made by replica sets,
// scheduled, running, with managed fields and statuses. The same number gives
// the same pod. Other benchmarks may use it.
package pods

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Replicas is how many pods a replica set has; Nodes and Namespaces are how many
// the cluster has.
const (
	Replicas   = 20
	Nodes      = 1000
	Namespaces = 100
)

// alphabet is what Kubernetes makes names of.
const alphabet = "bcdfghjklmnpqrstvwxz2456789"

// random is a generator of one replica set or pod.
type random struct{ *rand.Rand }

func newRandom(kind, n int) random {
	return random{rand.New(rand.NewPCG(uint64(kind), uint64(n)))}
}

func (r random) name(n int) string {
	out := make([]byte, n)
	for i := range out {
		out[i] = alphabet[r.IntN(len(alphabet))]
	}
	return string(out)
}

func (r random) hex(n int) string {
	out := make([]byte, n)
	for i := range out {
		out[i] = "0123456789abcdef"[r.IntN(16)]
	}
	return string(out)
}

func (r random) uid() types.UID {
	return types.UID(fmt.Sprintf("%s-%s-4%s-%s-%s", r.hex(8), r.hex(4), r.hex(3), r.hex(4), r.hex(12)))
}

// Make returns pod number i.
func Make(i int) *corev1.Pod {
	set, pod := newRandom(1, i/Replicas), newRandom(2, i)
	app := fmt.Sprintf("%s-%s", []string{"checkout", "catalog", "search", "billing", "gateway", "session"}[set.IntN(6)], set.name(4))
	hash := set.name(10)
	born := metav1.NewTime(time.Unix(1_790_000_000+int64(set.IntN(5_000_000)), 0).UTC())
	token := "kube-api-access-" + pod.name(5)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:              app + "-" + hash + "-" + pod.name(5),
			GenerateName:      app + "-" + hash + "-",
			Namespace:         fmt.Sprintf("team-%d", i/Replicas%Namespaces),
			UID:               pod.uid(),
			ResourceVersion:   strconv.Itoa(10_000_000 + i*7 + pod.IntN(7)),
			Generation:        1,
			CreationTimestamp: born,
			Labels: map[string]string{
				"app.kubernetes.io/name":    app,
				"app.kubernetes.io/part-of": "shop",
				"app.kubernetes.io/version": "v1." + strconv.Itoa(set.IntN(40)) + ".0",
				"pod-template-hash":         hash,
			},
			Annotations: map[string]string{
				"prometheus.io/scrape":              "true",
				"prometheus.io/port":                "9090",
				"checksum/config":                   set.hex(64),
				"cni.projectcalico.org/podIP":       podIP(i) + "/32",
				"cni.projectcalico.org/containerID": pod.hex(64),
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app + "-" + hash, UID: set.uid(),
				Controller: new(true), BlockOwnerDeletion: new(true),
			}},
			ManagedFields: managedFields(born),
		},
		Spec: spec(app, token, set, pod),
	}
	p.Status = status(p, i, born, pod)
	return p
}

func podIP(i int) string { return fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255) }

func spec(app, token string, set, pod random) corev1.PodSpec {
	s := corev1.PodSpec{
		Volumes: []corev1.Volume{
			{Name: token, VolumeSource: corev1.VolumeSource{Projected: tokenVolume()}},
		},
		Containers:                    []corev1.Container{container(app, app, token, set)},
		RestartPolicy:                 corev1.RestartPolicyAlways,
		TerminationGracePeriodSeconds: new(int64(30)),
		DNSPolicy:                     corev1.DNSClusterFirst,
		ServiceAccountName:            app,
		DeprecatedServiceAccount:      app,
		NodeName:                      fmt.Sprintf("node-%04d.eu-central-1.compute.internal", pod.IntN(Nodes)),
		SecurityContext:               &corev1.PodSecurityContext{RunAsNonRoot: new(true), FSGroup: new(int64(1000))},
		SchedulerName:                 "default-scheduler",
		Tolerations: []corev1.Toleration{
			{Key: "node.kubernetes.io/not-ready", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: new(int64(300))},
			{Key: "node.kubernetes.io/unreachable", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: new(int64(300))},
		},
		Priority:           new(int32(0)),
		EnableServiceLinks: new(true),
		PreemptionPolicy:   new(corev1.PreemptLowerPriority),
	}
	if set.IntN(8) == 0 {
		s.Containers = append(s.Containers, container("proxy", "mesh-proxy", token, set))
	}
	return s
}

func tokenVolume() *corev1.ProjectedVolumeSource {
	return &corev1.ProjectedVolumeSource{DefaultMode: new(int32(420)), Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: new(int64(3607)), Path: "token"}},
		{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
			Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
		}},
		{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
			{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}},
		}}},
	}}
}

func container(name, image, token string, set random) corev1.Container {
	probe := corev1.Probe{
		ProbeHandler:   corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/readyz", Port: intstr.FromString("http"), Scheme: "HTTP"}},
		TimeoutSeconds: 1, PeriodSeconds: 10, SuccessThreshold: 1, FailureThreshold: 3,
	}
	return corev1.Container{
		Name:  name,
		Image: "registry.example.com/shop/" + image + ":v1." + strconv.Itoa(set.IntN(40)) + ".0",
		Ports: []corev1.ContainerPort{
			{Name: "http", ContainerPort: 8080, Protocol: "TCP"},
		},
		Env: []corev1.EnvVar{
			{Name: "LOG_LEVEL", Value: "info"},
			{Name: "DATABASE_URL", Value: "postgres://" + image + "@db.shop.svc:5432/" + image},
		},
		Resources: corev1.ResourceRequirements{
			Limits:   corev1.ResourceList{"cpu": resource.MustParse("500m"), "memory": resource.MustParse("512Mi")},
			Requests: corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("256Mi")},
		},
		VolumeMounts: []corev1.VolumeMount{
			{Name: token, ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"},
		},
		ReadinessProbe:         &probe,
		TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: "File", ImagePullPolicy: "IfNotPresent",
		SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false)},
	}
}

func status(p *corev1.Pod, i int, born metav1.Time, pod random) corev1.PodStatus {
	after := func(seconds int) metav1.Time {
		return metav1.NewTime(born.Add(time.Duration(seconds) * time.Second))
	}
	ready := after(3 + pod.IntN(20))
	s := corev1.PodStatus{
		Phase:  corev1.PodRunning,
		HostIP: fmt.Sprintf("172.16.%d.%d", i%4, i%250), HostIPs: []corev1.HostIP{{IP: fmt.Sprintf("172.16.%d.%d", i%4, i%250)}},
		PodIP: podIP(i), PodIPs: []corev1.PodIP{{IP: podIP(i)}},
		StartTime: new(born), QOSClass: corev1.PodQOSBurstable,
	}
	for _, c := range []struct {
		kind corev1.PodConditionType
		at   metav1.Time
	}{{"PodReadyToStartContainers", after(2)}, {"Initialized", born}, {"Ready", ready}, {"ContainersReady", ready}, {"PodScheduled", born}} {
		s.Conditions = append(s.Conditions, corev1.PodCondition{Type: c.kind, Status: "True", LastTransitionTime: c.at, ObservedGeneration: 1})
	}
	for _, c := range p.Spec.Containers {
		s.ContainerStatuses = append(s.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Ready: true, Started: new(true), Image: c.Image,
			State:       corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: after(2 + pod.IntN(3))}},
			ImageID:     "registry.example.com/shop/" + c.Name + "@sha256:" + newRandom(3, len(c.Image)).hex(64),
			ContainerID: "containerd://" + pod.hex(64),
		})
	}
	return s
}

func managedFields(born metav1.Time) []metav1.ManagedFieldsEntry {
	entry := func(manager, sub, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: "Update", APIVersion: "v1", Time: &born,
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields), Subresource: sub}
	}
	return []metav1.ManagedFieldsEntry{
		entry("kube-controller-manager", "", specFields),
		entry("calico", "status", `{"f:metadata":{"f:annotations":{"f:cni.projectcalico.org/containerID":{},"f:cni.projectcalico.org/podIP":{}}}}`),
		entry("kubelet", "status", statusFields),
	}
}

const specFields = `{"f:metadata":{"f:annotations":{".":{},"f:checksum/config":{},"f:prometheus.io/port":{},"f:prometheus.io/scrape":{}},"f:generateName":{},"f:labels":{".":{},"f:app.kubernetes.io/name":{},"f:app.kubernetes.io/part-of":{},"f:app.kubernetes.io/version":{},"f:pod-template-hash":{}},"f:ownerReferences":{".":{},"k:{\"uid\":\"7d1cf6a6-0b4f-4a63-a0e9-5d3b4e8a1c52\"}":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{".":{},"f:env":{".":{},"k:{\"name\":\"DATABASE_URL\"}":{".":{},"f:name":{},"f:value":{}},"k:{\"name\":\"LOG_LEVEL\"}":{".":{},"f:name":{},"f:value":{}}},"f:image":{},"f:imagePullPolicy":{},"f:readinessProbe":{".":{},"f:failureThreshold":{},"f:httpGet":{".":{},"f:path":{},"f:port":{},"f:scheme":{}},"f:periodSeconds":{},"f:successThreshold":{},"f:timeoutSeconds":{}},"f:name":{},"f:ports":{".":{},"k:{\"containerPort\":8080,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:name":{},"f:protocol":{}}},"f:resources":{".":{},"f:limits":{".":{},"f:cpu":{},"f:memory":{}},"f:requests":{".":{},"f:cpu":{},"f:memory":{}}},"f:terminationMessagePath":{},"f:terminationMessagePolicy":{}}},"f:dnsPolicy":{},"f:enableServiceLinks":{},"f:restartPolicy":{},"f:schedulerName":{},"f:securityContext":{".":{},"f:fsGroup":{},"f:runAsNonRoot":{}},"f:terminationGracePeriodSeconds":{}}}`

const statusFields = `{"f:status":{"f:conditions":{"k:{\"type\":\"ContainersReady\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}},"k:{\"type\":\"Initialized\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}},"k:{\"type\":\"Ready\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}}},"f:containerStatuses":{},"f:hostIP":{},"f:hostIPs":{},"f:phase":{},"f:podIP":{},"f:podIPs":{".":{},"k:{\"ip\":\"10.0.0.1\"}":{".":{},"f:ip":{}}},"f:startTime":{}}}`

// Encode returns pod number i as a server sends it in protobuf.
func Encode(i int) []byte {
	b, err := Make(i).Marshal()
	if err != nil {
		panic(err) // a generated pod always encodes
	}
	return b
}

// Decode returns a pod as a client decodes it, sharing no memory with another.
func Decode(b []byte) (*corev1.Pod, error) {
	p := &corev1.Pod{}
	return p, p.Unmarshal(b)
}
