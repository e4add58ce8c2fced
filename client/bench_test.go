package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"

	"github.com/even-keel/evenkeel/server/kinds"
)

// benchPod is a pod as a cluster has it.
func benchPod(i int) corev1.Pod {
	at := metav1.NewTime(time.Unix(1_790_000_000+int64(i)*37, 0))
	app := fmt.Sprintf("app-%d", i/20) // replica sets of 20, as bench/cache/pods has them
	set := fmt.Sprintf("%s-%09x", app, i/20*2654435761%(1<<36))
	name := fmt.Sprintf("%s-%05x", set, i*7919%(1<<20))
	ready := func(kind corev1.PodConditionType) corev1.PodCondition {
		return corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: at}
	}
	yes := true
	limits := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("512Mi")}
	fields := (`{"f:metadata":{"f:generateName":{},"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{".":{},"f:env":{},"f:image":{},"f:name":{},"f:resources":{}}},"f:restartPolicy":{}}}`)
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, GenerateName: set + "-", Namespace: "shop", UID: types.UID(fmt.Sprintf("%08x-3c55-4e0f-9b8e-%012x", i*2654435761%(1<<32), i*7919)),
			ResourceVersion: fmt.Sprint(1000 + i), CreationTimestamp: at, Generation: 1,
			Labels:          map[string]string{"app": app, "pod-template-hash": set[len(app)+1:], "tier": "web"},
			Annotations:     map[string]string{"prometheus.io/scrape": "true", "prometheus.io/port": "9090"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: set, UID: types.UID(fmt.Sprintf("%08x-1111-4e0f-9b8e-%012x", i/20*40503, i/20)), Controller: &yes, BlockOwnerDeletion: &yes}},
			ManagedFields: []metav1.ManagedFieldsEntry{
				{Manager: "kube-controller-manager", Operation: "Update", APIVersion: "v1", Time: &at, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)},
				{Manager: "kubelet", Operation: "Update", APIVersion: "v1", Time: &at, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields), Subresource: "status"},
			},
		},
		Spec: corev1.PodSpec{
			NodeName: fmt.Sprintf("node-%d", i%100), RestartPolicy: corev1.RestartPolicyAlways, ServiceAccountName: app, SchedulerName: "default-scheduler",
			Containers: []corev1.Container{{
				Name: "app", Image: "registry.example.com/shop/" + app + ":v1.17.0", ImagePullPolicy: corev1.PullIfNotPresent,
				Ports:        []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
				Env:          []corev1.EnvVar{{Name: "LOG_LEVEL", Value: "info"}, {Name: "REGION", Value: "eu-1"}},
				Resources:    corev1.ResourceRequirements{Limits: limits, Requests: limits},
				VolumeMounts: []corev1.VolumeMount{{Name: "token", ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}},
			}},
			Tolerations: []corev1.Toleration{{Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: fmt.Sprintf("10.1.%d.%d", i/250, i%250), HostIP: fmt.Sprintf("10.0.0.%d", i%100), StartTime: &at, QOSClass: corev1.PodQOSGuaranteed,
			Conditions: []corev1.PodCondition{ready(corev1.PodInitialized), ready(corev1.PodReady), ready(corev1.ContainersReady), ready(corev1.PodScheduled)},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "app", Ready: true, Started: &yes, Image: "registry.example.com/shop/" + app + ":v1.17.0",
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}},
			}},
		},
	}
}

const benchPods = 500

func benchList(b *testing.B, e Encoding) []byte {
	b.Helper()
	list := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
	for i := range benchPods {
		list.Items = append(list.Items, benchPod(i))
	}
	if e == Protobuf {
		return protoPods(b, list.Items...)
	}
	data, err := json.Marshal(list)
	if err != nil {
		b.Fatal(err)
	}
	return data
}

func benchOurs[T Object](b *testing.B, e Encoding) {
	data := benchList(b, e)
	c := newCodec[T](&Conn{}, corev1.SchemeGroupVersion.WithKind("Pod"))
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		r := newListReader(e, bytes.NewReader(data))
		var buf []byte
		for n := 0; ; n++ {
			var err error
			if buf, err = r.next(buf[:0]); errors.Is(err, io.EOF) && n == benchPods {
				break
			}
			if err == nil {
				_, err = c.decode(Raw{e, buf})
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkList decodes a list of pods, and beside it the same by the codecs that
// client-go uses.
func BenchmarkList(b *testing.B) {
	codecs := serializer.NewCodecFactory(kinds.Scheme())
	theirs := func(b *testing.B, e Encoding, into func() runtime.Object) {
		data := benchList(b, e)
		media := mediaJSON
		if e == Protobuf {
			media = mediaProto
		}
		info, _ := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), media)
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := info.Serializer.Decode(data, nil, into()); err != nil {
				b.Fatal(err)
			}
		}
	}
	typed := func() runtime.Object { return &corev1.PodList{} }
	b.Run("json/client-go", func(b *testing.B) { theirs(b, JSON, typed) })
	b.Run("json/ours", func(b *testing.B) { benchOurs[*corev1.Pod](b, JSON) })
	b.Run("protobuf/client-go", func(b *testing.B) { theirs(b, Protobuf, typed) })
	b.Run("protobuf/ours", func(b *testing.B) { benchOurs[*corev1.Pod](b, Protobuf) })
	b.Run("unstructured/client-go", func(b *testing.B) {
		data := benchList(b, JSON)
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := unstructured.UnstructuredJSONScheme.Decode(data, nil, &unstructured.UnstructuredList{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("unstructured/ours", func(b *testing.B) { benchOurs[*unstructured.Unstructured](b, JSON) })
	b.Run("split/json", func(b *testing.B) { benchSplit(b, JSON) })
	b.Run("split/protobuf", func(b *testing.B) { benchSplit(b, Protobuf) })
}

// benchSplit only takes lists apart: what one goroutine has to do, if others decode.
func benchSplit(b *testing.B, e Encoding) {
	data := benchList(b, e)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, _, err := readList(e, bytes.NewReader(data)); err != nil {
			b.Fatal(err)
		}
	}
}
