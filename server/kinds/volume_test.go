package kinds

import (
	"strings"
	"testing"
)

func claimDoc(more string) string {
	return `{"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}` + more + `}}`
}

func volumeDoc(more string) string {
	return `{"metadata":{"name":"v"},"spec":{"accessModes":["ReadWriteOnce"],"capacity":{"storage":"1Gi"}` + more + `}}`
}

func TestVolumeValidation(t *testing.T) {
	const nfs = `,"nfs":{"server":"s","path":"/p"}`
	runWorkloadCases(t, map[string]workloadCase{
		"claim": {resource: "persistentvolumeclaims", doc: claimDoc("")},
		"odd claim": {resource: "persistentvolumeclaims", doc: `{"spec":{"accessModes":["Odd","ReadWriteOncePod","ReadWriteOnce"],"volumeMode":"Odd","storageClassName":"A","dataSourceRef":{"apiGroup":"!","kind":"","name":"x"}}}`, want: []string{
			"FieldValueForbidden spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes",
			`FieldValueInvalid spec.dataSource.apiGroup: Invalid value: "!": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
			`FieldValueInvalid spec.dataSourceRef.apiGroup: Invalid value: "!": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
			`FieldValueInvalid spec.storageClassName: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
			`FieldValueNotSupported spec.accessModes: Unsupported value: "Odd": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"`,
			`FieldValueNotSupported spec.volumeMode: Unsupported value: "Odd": supported values: "Block", "Filesystem"`,
			"FieldValueRequired spec.dataSource.kind: Required value", "FieldValueRequired spec.dataSourceRef.kind: Required value",
			"FieldValueRequired spec.resources[storage]: Required value",
		}},
		"claim is bound":     {resource: "persistentvolumeclaims", old: claimDoc(""), doc: claimDoc(`,"volumeName":"v"`)},
		"claim gets a class": {resource: "persistentvolumeclaims", old: claimDoc(""), doc: claimDoc(`,"storageClassName":"c"`)},
		"volume":             {resource: "persistentvolumes", doc: volumeDoc(nfs)},
		"volume of two kinds": {resource: "persistentvolumes", doc: volumeDoc(nfs + `,"hostPath":{"path":"../x"}`), want: []string{
			"FieldValueForbidden spec.nfs: Forbidden: may not specify more than 1 volume type",
			`FieldValueInvalid spec.hostPath.path: Invalid value: "../x": must not contain '..'`,
		}},
		"volume of nothing": {resource: "persistentvolumes", doc: `{"spec":{"persistentVolumeReclaimPolicy":"Odd"}}`, want: []string{
			`FieldValueNotSupported spec.capacity: Unsupported value: null: supported values: "storage"`,
			`FieldValueNotSupported spec.persistentVolumeReclaimPolicy: Unsupported value: "Odd": supported values: "Delete", "Recycle", "Retain"`,
			"FieldValueRequired spec.accessModes: Required value", "FieldValueRequired spec.capacity: Required value", "FieldValueRequired spec: Required value: must specify a volume type",
		}},
		"local volume anywhere": {resource: "persistentvolumes", doc: volumeDoc(`,"local":{"path":"/x"}`), want: []string{
			"FieldValueRequired spec.nodeAffinity: Required value: Local volume requires node affinity",
		}},
		"csi volume": {resource: "persistentvolumes", doc: volumeDoc(`,"csi":{"driver":"","nodePublishSecretRef":{}},"volumeAttributesClassName":"a"`), want: []string{
			"FieldValueRequired spec.csi.driver: Required value", "FieldValueRequired spec.csi.nodePublishSecretRef.name: Required value",
			"FieldValueRequired spec.csi.nodePublishSecretRef.namespace: Required value", "FieldValueRequired spec.csi.volumeHandle: Required value",
		}},
		"storage class": {resource: "storageclasses", doc: `{"provisioner":"a.b/c"}`},
		"odd storage class": {resource: "storageclasses", doc: `{"parameters":{"":"x"},"reclaimPolicy":"Recycle","volumeBindingMode":"Odd","allowedTopologies":[{"matchLabelExpressions":[{"key":"a","values":["x","x"]},{"key":"a"}]}]}`, want: []string{
			`FieldValueDuplicate allowedTopologies[0].matchLabelExpressions[0].values[1]: Duplicate value: "x"`,
			`FieldValueDuplicate allowedTopologies[0].matchLabelExpressions[1].key: Duplicate value: "a"`,
			`FieldValueInvalid parameters: Invalid value: "": field can not be empty.`,
			`FieldValueNotSupported reclaimPolicy: Unsupported value: "Recycle": supported values: "Delete", "Retain"`,
			`FieldValueNotSupported volumeBindingMode: Unsupported value: "Odd": supported values: "Immediate", "WaitForFirstConsumer"`,
			"FieldValueRequired allowedTopologies[0].matchLabelExpressions[1].values: Required value", "FieldValueRequired provisioner: Required value",
		}},
		"storage class changes": {resource: "storageclasses", old: `{"provisioner":"a"}`, doc: `{"provisioner":"b"}`, want: []string{`FieldValueInvalid provisioner: Invalid value: "b": field is immutable`}},
		"attachment":            {resource: "volumeattachments", doc: `{"spec":{"attacher":"a.b","nodeName":"n","source":{"persistentVolumeName":"v"}}}`},
		"odd attachment": {resource: "volumeattachments", doc: `{"spec":{"nodeName":"n","source":{}}}`, want: []string{
			"FieldValueRequired spec.attacher: Required value", "FieldValueRequired spec.source: Required value: must specify exactly one of inlineVolumeSpec and persistentVolumeName",
		}},
		"csi driver": {resource: "csidrivers", doc: `{"spec":{"fsGroupPolicy":"Odd","tokenRequests":[{"audience":"a","expirationSeconds":1},{"audience":"a"}],"nodeAllocatableUpdatePeriodSeconds":1}}`, want: []string{
			`FieldValueDuplicate spec.tokenRequests[1].audience: Duplicate value: "a"`,
			"FieldValueInvalid spec.nodeAllocatableUpdatePeriodSeconds: Invalid value: 1: must be greater than or equal to 10 seconds",
			"FieldValueInvalid spec.tokenRequests[0].expirationSeconds: Invalid value: 1: may not specify a duration less than 10 minutes",
			`FieldValueNotSupported spec.fsGroupPolicy: Unsupported value: "Odd": supported values: "File", "None", "ReadWriteOnceWithFSType"`,
		}},
		"csi node": {resource: "csinodes", doc: `{"spec":{"drivers":[{"name":"a","nodeID":"n","allocatable":{"count":-1}},{"name":"a"}]}}`, want: []string{
			`FieldValueDuplicate spec.drivers[1].name: Duplicate value: "a"`,
			"FieldValueInvalid spec.drivers[0].allocatable.count: Invalid value: -1: must be greater than or equal to 0",
			"FieldValueRequired spec.drivers[1].nodeID: Required value",
		}},
		"csi node has more":   {resource: "csinodes", old: `{"spec":{"drivers":[{"name":"a","nodeID":"n"}]}}`, doc: `{"spec":{"drivers":[{"name":"a","nodeID":"n","allocatable":{"count":3}}]}}`},
		"capacity elsewhere":  {resource: "csistoragecapacities", old: `{"storageClassName":"a"}`, doc: `{"storageClassName":"b"}`, want: []string{`FieldValueInvalid storageClassName: Invalid value: "b": field is immutable`}},
		"capacity below zero": {resource: "csistoragecapacities", doc: `{"storageClassName":"a","capacity":"-1"}`, want: []string{`FieldValueInvalid capacity: Invalid value: "-1": must be greater than or equal to 0`}},
	})
}

// The messages of these end with a diff, whose form is nobody's business.
func TestVolumesKeepTheirSpec(t *testing.T) {
	for name, c := range map[string]struct {
		workloadCase
		prefixes []string
	}{
		"claim wants less": {workloadCase{resource: "persistentvolumeclaims", old: claimDoc(""), doc: strings.Replace(claimDoc(""), "1Gi", "1Mi", 1)},
			[]string{"FieldValueForbidden spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n"}},
		"volume moves": {workloadCase{resource: "persistentvolumes", old: volumeDoc(`,"hostPath":{"path":"/a"}`), doc: volumeDoc(`,"hostPath":{"path":"/b"}`)},
			[]string{"FieldValueForbidden spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation\n"}},
		"claim changes its mode": {workloadCase{resource: "persistentvolumeclaims", old: claimDoc(""), doc: claimDoc(`,"volumeMode":"Block"`)},
			[]string{"FieldValueForbidden spec: Forbidden: spec is immutable after creation", `FieldValueInvalid volumeMode: Invalid value: "Block": field is immutable`}},
	} {
		t.Run(name, func(t *testing.T) {
			got := workloadCauses(t, c.workloadCase)
			if len(got) != len(c.prefixes) {
				t.Fatalf("got %q", got)
			}
			for i, p := range c.prefixes {
				if !strings.HasPrefix(got[i], p) {
					t.Errorf("got %q, want %q", got[i], p)
				}
			}
		})
	}
}
