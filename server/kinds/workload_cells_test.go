package kinds

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWorkloadCells(t *testing.T) {
	const template = `"template":{"spec":{"nodeSelector":{"x":"y"},"containers":[{"name":"a","image":"i"},{"name":"b","image":"j"}]}}`
	const selector = `"selector":{"matchLabels":{"k":"v"}}`
	for name, c := range map[string]struct {
		resource, doc string
		want          []any
	}{
		"replica set": {"replicasets", `{"spec":{"replicas":3,` + selector + `,` + template + `},"status":{"replicas":2,"readyReplicas":1}}`,
			[]any{"x", int64(3), int64(2), int64(1), "90s", "a,b", "i,j", "k=v"}},
		"stateful set": {"statefulsets", `{"spec":{"replicas":3,` + template + `},"status":{"readyReplicas":1}}`, []any{"x", "1/3", "90s", "a,b", "i,j"}},
		"daemon set": {"daemonsets", `{"spec":{` + selector + `,` + template + `},"status":{"desiredNumberScheduled":5,"currentNumberScheduled":4,"numberReady":3,"updatedNumberScheduled":2,"numberAvailable":1}}`,
			[]any{"x", int64(5), int64(4), int64(3), int64(2), int64(1), "x=y", "90s", "a,b", "i,j", "k=v"}},
		"revision": {"controllerrevisions", `{"revision":3,"ownerReferences":[]}`, []any{"x", "<none>", int64(3), "90s"}},
		"job": {"jobs", `{"spec":{"completions":3,` + template + `},"status":{"succeeded":1,"startTime":"` + coreAgo(time.Minute) + `"}}`,
			[]any{"x", "Running", "1/3", "60s", "90s", "a,b", "i,j", "<none>"}},
		"failed job":     {"jobs", `{"spec":{"parallelism":2},"status":{"conditions":[{"type":"Failed","status":"True"}]}}`, []any{"x", "Failed", "0/1 of 2", "", "90s", "", "", "<none>"}},
		"suspended job":  {"jobs", `{"spec":{"completions":1},"status":{"conditions":[{"type":"Suspended","status":"True"}]}}`, []any{"x", "Suspended", "0/1", "", "90s", "", "", "<none>"}},
		"cron job":       {"cronjobs", `{"spec":{"schedule":"@daily","jobTemplate":{"spec":{` + template + `}}},"status":{"active":[{}],"lastScheduleTime":"` + coreAgo(time.Hour) + `"}}`, []any{"x", "@daily", "<none>", "False", int64(1), "60m", "90s", "a,b", "i,j", "<none>"}},
		"autoscaler":     {"horizontalpodautoscalers", autoscalerDoc(`,"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"averageUtilization":50}}},{"type":"Pods","pods":{"target":{"averageValue":"3"}}},{"type":"External"}]`), []any{"x", "Deployment/d", "cpu: <unknown>/50%, <unknown>/3 + 1 more...", "1", int64(3), int64(0), "90s"}},
		"node port":      {"services", `{"spec":{"type":"NodePort","clusterIPs":["10.0.0.1"],"ports":[{"port":80,"nodePort":30000},{"port":53,"protocol":"UDP"}],"selector":{"a":"b"}}}`, []any{"x", "NodePort", "10.0.0.1", "<none>", "80:30000/TCP,53/UDP", "90s", "a=b"}},
		"load balancer":  {"services", `{"spec":{"type":"LoadBalancer"},"status":{"loadBalancer":{"ingress":[{"hostname":"h"},{"ip":"1.2.3.4"}]}}}`, []any{"x", "LoadBalancer", "<none>", "1.2.3.4,h", "<none>", "90s", "<none>"}},
		"no balancer":    {"services", `{"spec":{"type":"LoadBalancer"}}`, []any{"x", "LoadBalancer", "<none>", "<pending>", "<none>", "90s", "<none>"}},
		"external name":  {"services", `{"spec":{"type":"ExternalName","externalName":"a.b"}}`, []any{"x", "ExternalName", "<none>", "a.b", "<none>", "90s", "<none>"}},
		"endpoints":      {"endpoints", `{"subsets":[{"addresses":[{"ip":"1.1.1.1"},{"ip":"1.1.1.2"}],"ports":[{"port":80},{"port":81}]}]}`, []any{"x", "1.1.1.1:80,1.1.1.2:80,1.1.1.1:81 + 1 more...", "90s"}},
		"no endpoints":   {"endpoints", `{}`, []any{"x", "<none>", "90s"}},
		"slice":          {"endpointslices", `{"addressType":"IPv4","ports":[{"port":80},{"name":"a"}],"endpoints":[{"addresses":["1.1.1.1"]}]}`, []any{"x", "IPv4", "80,a", "1.1.1.1", "90s"}},
		"empty slice":    {"endpointslices", `{"addressType":"IPv4"}`, []any{"x", "IPv4", "<unset>", "<unset>", "90s"}},
		"volume":         {"persistentvolumes", `{"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteMany","ReadWriteOnce"],"claimRef":{"namespace":"n","name":"c"},"storageClassName":"s"},"status":{"phase":"Bound"}}`, []any{"x", "1Gi", "RWO,RWX", "Retain", "Bound", "n/c", "s", "<unset>", "", "90s", "Filesystem"}},
		"claim":          {"persistentvolumeclaims", `{"spec":{"volumeName":"v","storageClassName":"s"},"status":{"capacity":{"storage":"2Gi"},"accessModes":["ReadWriteOnce"],"phase":"Bound"}}`, []any{"x", "Bound", "v", "2Gi", "RWO", "s", "<unset>", "90s", "Filesystem"}},
		"quota":          {"resourcequotas", `{"status":{"hard":{"pods":"3","limits.cpu":"2","cpu":"1"},"used":{"pods":"1"}}}`, []any{"x", "cpu: 0/1, pods: 1/3", "limits.cpu: 0/2", "90s"}},
		"limits":         {"limitranges", `{}`, []any{"x", coreAgo(90 * time.Second)}},
		"storage class":  {"storageclasses", `{"provisioner":"p","allowVolumeExpansion":true}`, []any{"x", "p", "Delete", "Immediate", true, "90s"}},
		"attachment":     {"volumeattachments", `{"spec":{"attacher":"a","nodeName":"n","source":{"persistentVolumeName":"v"}},"status":{"attached":true}}`, []any{"x", "a", "v", "n", true, "90s"}},
		"csi driver":     {"csidrivers", `{"spec":{"tokenRequests":[{"audience":"a"}]}}`, []any{"x", true, false, false, "a", false, "Persistent", "90s"}},
		"csi node":       {"csinodes", `{"spec":{"drivers":[{}]}}`, []any{"x", int64(1), "90s"}},
		"csi capacity":   {"csistoragecapacities", `{"storageClassName":"s","capacity":"1Gi"}`, []any{"x", "s", "1Gi"}},
		"replica legacy": {"replicationcontrollers", `{"spec":{"selector":{"a":"b"}},"status":{"replicas":2}}`, []any{"x", int64(1), int64(2), int64(0), "90s", "", "", "a=b"}},
	} {
		t.Run(name, func(t *testing.T) {
			k := workloadKindOf(t, c.resource)
			obj := coreObject(t, k, c.doc)
			if err := json.Unmarshal([]byte(`{"metadata":{"name":"x","creationTimestamp":"`+coreAgo(90*time.Second)+`"}}`), obj); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, k.Cells(obj, coreNow)); d != "" {
				t.Error(d)
			}
		})
	}
}
