package kinds

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// FuzzWorkloadKinds feeds any document to any kind of this share: nothing may
// panic, and defaults must not change what has them.
func FuzzWorkloadKinds(f *testing.F) {
	all := workloads()
	for i := range all {
		for _, doc := range []string{
			`{"metadata":{"name":"x"},"spec":{}}`,
			`{"spec":{"selector":{"matchExpressions":[{"key":"a","operator":"Odd"}]},"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":"x%"}},"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":"0%"}},"volumeClaimTemplates":[{},{}],"ordinals":{"start":-1},"template":{"spec":{"containers":[{}]}}}}`,
			`{"spec":{"completionMode":"Indexed","successPolicy":{"rules":[{"succeededIndexes":"0-1,2","succeededCount":1}]},"podFailurePolicy":{"rules":[{"onExitCodes":{"values":[1,0]}}]},"schedule":"*/5 1-2 ? jan mon","timeZone":"x","jobTemplate":{"spec":{"successPolicy":{"rules":[{}]},"completionMode":"Indexed"}}},"status":{"completedIndexes":"0,3-4","failedIndexes":"3","conditions":[{"type":"Complete","status":"True"}],"uncountedTerminatedPods":{"failed":["",""]}}}`,
			`{"metadata":{"annotations":{"autoscaling.alpha.kubernetes.io/metrics":"[{\"type\":\"Object\",\"object\":{}}]","autoscaling.alpha.kubernetes.io/behavior":"{}"}},"spec":{"metrics":[{"type":"Object"},{"type":"External","external":{}},{"object":{},"pods":{}}],"behavior":{"scaleUp":{}},"minReplicas":0}}`,
			`{"spec":{"type":"LoadBalancer","clusterIP":"None","clusterIPs":["None","x"],"ipFamilies":["IPv4","Odd"],"ipFamilyPolicy":"PreferDualStack","externalTrafficPolicy":"Local","ports":[{"port":1,"nodePort":2},{"port":1}],"sessionAffinity":"ClientIP","externalIPs":["::1"]},"status":{"loadBalancer":{"ingress":[{"ip":"1"}]}}}`,
			`{"subsets":[{"addresses":[{"ip":"1.2.3.4"}],"ports":[{}]}],"addressType":"FQDN","endpoints":[{"addresses":["x"],"deprecatedTopology":{"kubernetes.io/hostname":"n"},"hints":{"forZones":[{}]}}],"ports":[{"name":"a"}]}`,
			`{"spec":{"capacity":{"storage":"1e99"},"accessModes":["x"],"csi":{},"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{}]}]}},"dataSourceRef":{"namespace":"x"},"resources":{"requests":{"storage":"1"}},"hard":{"pods":"1m","limits.cpu":"1"},"scopes":["x"],"scopeSelector":{"matchExpressions":[{}]},"limits":[{"type":"Container","max":{"cpu":"1"},"min":{"cpu":"0"},"maxLimitRequestRatio":{"cpu":"1"}}]}}`,
			`{"provisioner":"x","allowedTopologies":[{"matchLabelExpressions":[{}]},{}],"spec":{"source":{"inlineVolumeSpec":{}},"drivers":[{"topologyKeys":["",""]}],"tokenRequests":[{},{}]},"status":{"attachError":{"errorCode":-1}},"data":[]}`,
		} {
			f.Add(uint8(i), []byte(doc), []byte(doc))
			f.Add(uint8(i), []byte(doc), []byte(`{}`))
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, doc, before []byte) {
		k := all[int(which)%len(all)]
		obj, old := k.New(), k.New()
		if json.Unmarshal(doc, obj) != nil || json.Unmarshal(before, old) != nil {
			return
		}
		if k.Default != nil {
			k.Default(obj)
			k.Default(old)
			again := obj.DeepCopyObject()
			k.Default(again)
			if !equality.Semantic.DeepEqual(obj, again) {
				t.Errorf("defaults are not idempotent: %v, then %v", obj, again)
			}
		}
		fresh := obj.DeepCopyObject()
		if svc, ok := fresh.(*corev1.Service); ok {
			pool := newTestPool().pool()
			if _, err := AllocateService(svc, nil, pool); err == nil {
				ReleaseService(svc, nil)
			}
			if _, err := AllocateService(obj.(*corev1.Service), old.(*corev1.Service), pool); err == nil {
				ReleaseService(old.(*corev1.Service), obj.(*corev1.Service))
			}
		}
		if k.PrepareCreate != nil {
			k.PrepareCreate(fresh)
		}
		coreCreateErrors(k, fresh)
		if k.Warnings != nil {
			k.Warnings(fresh, nil)
			k.Warnings(obj, old)
		}
		k.Cells(fresh, coreNow)
		if k.FieldSet != nil {
			k.FieldSet(obj)
		}
		if k.Scale != nil {
			k.Scale.Get(obj)
		}
		for _, v := range k.Also {
			other, err := v.FromStored(obj)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := v.ToStored(other); err != nil {
				t.Fatal(err)
			}
		}
		if k.PrepareStatus != nil {
			k.PrepareStatus(obj.DeepCopyObject(), old)
		}
		if k.ValidateStatus != nil {
			k.ValidateStatus(obj, old)
		}
		if k.PrepareUpdate != nil {
			k.PrepareUpdate(obj, old)
		}
		coreUpdateErrors(k, obj, old)
	})
}

func FuzzSchedule(f *testing.F) {
	for _, s := range []string{"* * * * *", "TZ=UTC 1-2/3 * ? jan sun", "@every 1s", "CRON_TZ="} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { _ = checkSchedule(s) })
}
