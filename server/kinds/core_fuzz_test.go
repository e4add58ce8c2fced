package kinds

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
)

// FuzzCoreKinds feeds any document to any kind of this share: nothing may panic,
// and defaults must not change what has them.
func FuzzCoreKinds(f *testing.F) {
	all := core()
	for i := range all {
		for _, doc := range []string{
			`{"metadata":{"name":"x"}}`,
			`{"metadata":{"annotations":{"scheduler.alpha.kubernetes.io/taints":"[{}]","kubernetes.io/config.mirror":""}},"spec":{"taints":[{}],"podCIDRs":["x","y"],"finalizers":[""]},"status":{"capacity":{"cpu":"1e99"},"addresses":[{},{}]}}`,
			podContainer(`{"livenessProbe":{},"lifecycle":{"preStop":{"sleep":{"seconds":1}}},"env":[{"valueFrom":{"fieldRef":{"fieldPath":"metadata.labels['a']"},"resourceFieldRef":{"resource":"limits.cpu","divisor":"2"}}}],"resources":{"limits":{"hugepages-2Mi":"3Mi","hugepages-x":"1","":"1"},"claims":[{"name":"a"},{"name":"a","request":"b"}]},"securityContext":{"procMount":"x","windowsOptions":{"hostProcess":true,"runAsUserName":"\\"}}}`),
			podWith(`{"volumes":[{"name":"a","projected":{"sources":[{"clusterTrustBundle":{"path":"x"}},{"podCertificate":{}},{}]}},{"name":"b","ephemeral":{}},{"name":"c","fc":{"targetWWNs":["x"]}},{"name":"d","flexVolume":{"options":{"k8s.io/x":""}}}],"affinity":{"nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{}]},"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{}]}},"topologySpreadConstraints":[{"matchLabelKeys":["a"]},{}]}`),
			podWith(`{"initContainers":[{"restartPolicy":"Always"},{"restartPolicyRules":[{}]}],"ephemeralContainers":[{"name":"c"}],"resources":{"limits":{"cpu":"1"},"claims":[{}]},"os":{"name":"linux"},"dnsConfig":{"searches":["."],"nameservers":["x"]},"schedulingGates":[{}]}`),
			`{"status":{"podIPs":[{"ip":"x"},{}],"containerStatuses":[{"state":{"terminated":{}},"user":{"linux":{}}}],"initContainerStatuses":[{"name":"a","state":{"terminated":{"signal":1}}}],"conditions":[{}]},"spec":{"containers":[{"restartPolicy":"Never","restartPolicyRules":[{"exitCodes":{"operator":"In","values":[0]}}]}],"readinessGates":[{}]}}`,
			`{"type":"kubernetes.io/dockercfg","data":{".dockercfg":"e30="},"stringData":{"a":"b"},"immutable":true,"eventTime":"2020-01-02T03:04:05.000000Z","series":{},"target":{},"template":{"spec":{"containers":[{}]}}}`,
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
		if k.PrepareCreate != nil {
			k.PrepareCreate(fresh)
		}
		if len(coreCreateErrors(k, fresh)) == 0 && k.Warnings != nil {
			k.Warnings(fresh, nil)
			k.Warnings(fresh, old)
		}
		if k.Cells != nil {
			k.Cells(fresh, coreNow)
		}
		if k.RowConditions != nil {
			k.RowConditions(obj)
		}
		if k.FieldSet != nil {
			k.FieldSet(obj)
		}
		for _, v := range k.Also {
			other, err := v.FromStored(obj)
			if err != nil {
				t.Fatal(err)
			}
			stored, err := v.ToStored(other)
			if err != nil {
				t.Fatal(err)
			}
			v.Validate(stored)
			v.ValidateCreate(stored)
			v.ValidateUpdate(stored, old)
		}
		status := obj.DeepCopyObject()
		if k.PrepareStatus != nil {
			k.PrepareStatus(status, old)
		}
		if k.ValidateStatus != nil {
			k.ValidateStatus(status, old)
		}
		for _, s := range k.Subresources {
			if s.Prepare != nil {
				sub := obj.DeepCopyObject()
				s.Prepare(sub, old)
				s.Validate(sub, old)
			}
		}
		if k.PrepareUpdate != nil {
			k.PrepareUpdate(obj, old)
		}
		coreUpdateErrors(k, obj, old)
	})
}
