package kinds

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
)

// TestWorkloadDefaults compares all but metadata, and the pod templates, which
// are tested elsewhere.
func TestWorkloadDefaults(t *testing.T) {
	for name, c := range map[string]struct{ resource, doc, want string }{
		"deployment that is made anew": {"deployments", `{"spec":{"strategy":{"type":"Recreate"},"template":{}}}`,
			`{"spec":{"progressDeadlineSeconds":600,"replicas":1,"revisionHistoryLimit":10,"selector":null,"strategy":{"type":"Recreate"}},"status":{}}`},
		"replica set": {"replicasets", `{"spec":{}}`, `{"spec":{"replicas":1,"selector":null},"status":{"replicas":0}}`},
		"stateful set updated by hand": {"statefulsets", `{"spec":{"updateStrategy":{"type":"OnDelete"}}}`,
			`{"spec":{"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Retain","whenScaled":"Retain"},"podManagementPolicy":"OrderedReady","replicas":1,"revisionHistoryLimit":10,"selector":null,"serviceName":"","updateStrategy":{"type":"OnDelete"}},"status":{"availableReplicas":0,"replicas":0}}`},
		"stateful set loses a field whose feature is off": {"statefulsets", `{"spec":{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":2}}}}`,
			`{"spec":{"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Retain","whenScaled":"Retain"},"podManagementPolicy":"OrderedReady","replicas":1,"revisionHistoryLimit":10,"selector":null,"serviceName":"","updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":0}}},"status":{"availableReplicas":0,"replicas":0}}`},
		"daemon set updated by hand": {"daemonsets", `{"spec":{"updateStrategy":{"type":"OnDelete"}}}`,
			`{"spec":{"revisionHistoryLimit":10,"selector":null,"updateStrategy":{"type":"OnDelete"}},"status":{"currentNumberScheduled":0,"desiredNumberScheduled":0,"numberMisscheduled":0,"numberReady":0}}`},
		"work queue job": {"jobs", `{"spec":{"parallelism":3,"manualSelector":true,"selector":{}}}`,
			`{"spec":{"backoffLimit":6,"completionMode":"NonIndexed","manualSelector":true,"parallelism":3,"podReplacementPolicy":"TerminatingOrFailed","selector":{},"suspend":false},"status":{}}`},
		"job with policies": {"jobs", `{"spec":{"completions":2,"backoffLimitPerIndex":1,"completionMode":"Indexed","manualSelector":true,"podFailurePolicy":{"rules":[{"action":"Ignore","onPodConditions":[{"type":"X"}]}]}}}`,
			`{"spec":{"backoffLimit":2147483647,"backoffLimitPerIndex":1,"completionMode":"Indexed","completions":2,"manualSelector":true,"parallelism":1,"podFailurePolicy":{"rules":[{"action":"Ignore","onPodConditions":[{"status":"True","type":"X"}]}]},"podReplacementPolicy":"Failed","suspend":false},"status":{}}`},
		"autoscaler with a behavior": {"horizontalpodautoscalers", `{"spec":{"maxReplicas":3,"metrics":[{"type":"Pods"}],"behavior":{"scaleDown":{"selectPolicy":"Min"}}}}`,
			`{"spec":{"behavior":{"scaleDown":{"policies":[{"periodSeconds":15,"type":"Percent","value":100}],"selectPolicy":"Min"},"scaleUp":{"policies":[{"periodSeconds":15,"type":"Pods","value":4},{"periodSeconds":15,"type":"Percent","value":100}],"selectPolicy":"Max","stabilizationWindowSeconds":0}},"maxReplicas":3,"metrics":[{"type":"Pods"}],"minReplicas":1,"scaleTargetRef":{"kind":"","name":""}},"status":{"currentMetrics":null,"desiredReplicas":0}}`},
		"service with affinity": {"services", `{"spec":{"type":"LoadBalancer","sessionAffinity":"ClientIP","ports":[{"port":80,"targetPort":"http"}]}}`,
			`{"spec":{"allocateLoadBalancerNodePorts":true,"clusterIP":"<ip>","clusterIPs":["<ip>"],"externalTrafficPolicy":"Cluster","internalTrafficPolicy":"Cluster","ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack","ports":[{"nodePort":"<nodeport>","port":80,"protocol":"TCP","targetPort":"http"}],"sessionAffinity":"ClientIP","sessionAffinityConfig":{"clientIP":{"timeoutSeconds":10800}},"type":"LoadBalancer"},"status":{"loadBalancer":{}}}`},
		"external name": {"services", `{"spec":{"type":"ExternalName","externalName":"a.b"}}`,
			`{"spec":{"externalName":"a.b","sessionAffinity":"None","type":"ExternalName"},"status":{"loadBalancer":{}}}`},
		"endpoints": {"endpoints", `{"subsets":[{"addresses":[{"ip":"10.0.0.1"}],"ports":[{"port":80}]}]}`,
			`{"subsets":[{"addresses":[{"ip":"10.0.0.1"}],"ports":[{"port":80,"protocol":"TCP"}]}]}`},
		"endpoint slice": {"endpointslices", `{"addressType":"IPv4","endpoints":[{"addresses":["10.0.0.1"],"deprecatedTopology":{"a":"b"}}],"ports":[{"port":80}]}`,
			`{"addressType":"IPv4","endpoints":[{"addresses":["10.0.0.1"],"conditions":{}}],"ports":[{"name":"","port":80,"protocol":"TCP"}]}`},
		"volume": {"persistentvolumes", `{"spec":{"capacity":{"storage":"1024Mi"},"hostPath":{"path":"/x"}}}`,
			`{"spec":{"capacity":{"storage":"1Gi"},"hostPath":{"path":"/x","type":""},"persistentVolumeReclaimPolicy":"Retain","volumeMode":"Filesystem"},"status":{"lastPhaseTransitionTime":"2021-02-03T04:05:06Z","phase":"Pending"}}`},
		"claim from a snapshot": {"persistentvolumeclaims", `{"spec":{"resources":{"requests":{"storage":"0.1m"}},"dataSource":{"apiGroup":"snapshot.storage.k8s.io","kind":"VolumeSnapshot","name":"s"}}}`,
			`{"spec":{"dataSource":{"apiGroup":"snapshot.storage.k8s.io","kind":"VolumeSnapshot","name":"s"},"dataSourceRef":{"apiGroup":"snapshot.storage.k8s.io","kind":"VolumeSnapshot","name":"s"},"resources":{"requests":{"storage":"1m"}},"volumeMode":"Filesystem"},"status":{"phase":"Pending"}}`},
		"claim from something odd": {"persistentvolumeclaims", `{"spec":{"dataSource":{"kind":"Pod","name":"s"},"resources":{}}}`,
			`{"spec":{"resources":{},"volumeMode":"Filesystem"},"status":{"phase":"Pending"}}`},
		"limits of containers": {"limitranges", `{"spec":{"limits":[{"type":"Container","max":{"cpu":"2"},"min":{"cpu":"1","memory":"1Gi"}}]}}`,
			`{"spec":{"limits":[{"default":{"cpu":"2"},"defaultRequest":{"cpu":"2","memory":"1Gi"},"max":{"cpu":"2"},"min":{"cpu":"1","memory":"1Gi"},"type":"Container"}]}}`},
		"limits of pods": {"limitranges", `{"spec":{"limits":[{"type":"Pod","max":{"cpu":"2"}}]}}`, `{"spec":{"limits":[{"max":{"cpu":"2"},"type":"Pod"}]}}`},
		"storage class":  {"storageclasses", `{"provisioner":"a.b/c"}`, `{"provisioner":"a.b/c","reclaimPolicy":"Delete","volumeBindingMode":"Immediate"}`},
		"csi driver": {"csidrivers", `{"spec":{"preventPodSchedulingIfMissing":true}}`,
			`{"spec":{"attachRequired":true,"fsGroupPolicy":"ReadWriteOnceWithFSType","podInfoOnMount":false,"requiresRepublish":false,"seLinuxMount":false,"storageCapacity":false,"volumeLifecycleModes":["Persistent"]}}`},
		"replication controller": {"replicationcontrollers", `{"spec":{"template":{"metadata":{"labels":{"a":"b"}}}}}`, `{"spec":{"replicas":1,"selector":{"a":"b"}},"status":{"replicas":0}}`},
	} {
		t.Run(name, func(t *testing.T) {
			obj, err := workloadCreated(t, workloadKindOf(t, c.resource), c.doc)
			if err != nil {
				t.Fatal(err)
			}
			got, want := coreJSON(t, obj), map[string]any{}
			if err := json.Unmarshal([]byte(c.want), &want); err != nil {
				t.Fatal(err)
			}
			delete(got, "metadata")
			if spec, ok := got["spec"].(map[string]any); ok {
				delete(spec, "template")
			}
			if d := cmp.Diff(want, hideRandom(got)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestJobLabels(t *testing.T) {
	made := map[string]string{
		"batch.kubernetes.io/controller-uid": workloadUID, "batch.kubernetes.io/job-name": "j", "controller-uid": workloadUID, "job-name": "j",
	}
	with := func(more ...string) map[string]string {
		all := map[string]string{}
		for k, v := range made {
			all[k] = v
		}
		for i := 0; i < len(more); i += 2 {
			all[more[i]] = more[i+1]
		}
		return all
	}
	for name, c := range map[string]struct {
		doc           string
		job, template map[string]string
		selector      map[string]string
	}{
		"none given": {`{"metadata":{"name":"j"}}`, made, made, map[string]string{"batch.kubernetes.io/controller-uid": workloadUID}},
		"labels of the template are the job's, too": {`{"metadata":{"name":"j"},"spec":{"template":{"metadata":{"labels":{"a":"b"}}}}}`,
			with("a", "b"), with("a", "b"), map[string]string{"batch.kubernetes.io/controller-uid": workloadUID}},
		"labels of the job are its own": {`{"metadata":{"name":"j","labels":{"c":"d"}},"spec":{"template":{"metadata":{"labels":{"a":"b"}}}}}`,
			map[string]string{"c": "d"}, with("a", "b"), map[string]string{"batch.kubernetes.io/controller-uid": workloadUID}},
		"a selector by hand": {`{"metadata":{"name":"j"},"spec":{"manualSelector":true,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}}}}}`,
			map[string]string{"a": "b"}, map[string]string{"a": "b"}, map[string]string{"a": "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			obj, err := workloadCreated(t, jobKind(), c.doc)
			if err != nil {
				t.Fatal(err)
			}
			j := obj.(*batchv1.Job)
			if d := cmp.Diff([]map[string]string{c.job, c.template, c.selector}, []map[string]string{j.Labels, j.Spec.Template.Labels, j.Spec.Selector.MatchLabels}); d != "" {
				t.Error(d)
			}
			j.Labels["mine"] = ""
			if _, shared := j.Spec.Template.Labels["mine"]; shared {
				t.Error("job and template still share their labels")
			}
		})
	}
}

func TestTemplateGeneration(t *testing.T) {
	const doc = `{"metadata":{"name":"d","annotations":{"a":"b"}},"spec":{"template":{"spec":{"nodeName":"x"}}}}`
	k := daemonSetKind()
	old, err := workloadCreated(t, k, doc)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ doc, want string }{
		"unchanged":         {doc, "1"},
		"set by the user":   {`{"metadata":{"annotations":{"deprecated.daemonset.template.generation":"7"}},"spec":{"template":{"spec":{"nodeName":"x"}}}}`, "1"},
		"template changed":  {`{"spec":{"template":{"spec":{"nodeName":"y"}}}}`, "2"},
		"elsewhere changed": {`{"spec":{"minReadySeconds":3,"template":{"spec":{"nodeName":"x"}}}}`, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			obj := coreObject(t, k, c.doc)
			k.PrepareUpdate(obj, old)
			if got := at(coreJSON(t, obj), []string{"metadata", "annotations", "deprecated.daemonset.template.generation"}); got != c.want {
				t.Errorf("got %v, want %s", got, c.want)
			}
		})
	}
}
