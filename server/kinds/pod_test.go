package kinds

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// podWith is a valid pod with a spec changed by a JSON merge of fields.
func podWith(spec string) string {
	fields := map[string]json.RawMessage{"containers": json.RawMessage(`[{"name":"c","image":"i:1"}]`)}
	if err := json.Unmarshal([]byte(spec), &fields); err != nil {
		panic(err)
	}
	b, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	return `{"metadata":{"name":"p","namespace":"n"},"spec":` + string(b) + `}`
}

func podContainer(container string) string {
	return podWith(`{"containers":[` + strings.Replace(container, "{", `{"name":"c","image":"i:1",`, 1) + `]}`)
}

func TestPodDefaults(t *testing.T) {
	k := coreKindOf(t, "pods")
	for name, tc := range map[string]struct{ doc, path, want string }{
		"probe":             {podContainer(`{"startupProbe":{"grpc":{"port":1}}}`), "containers.0.startupProbe", `{"failureThreshold":3,"grpc":{"port":1,"service":""},"periodSeconds":10,"successThreshold":1,"timeoutSeconds":1}`},
		"preStop":           {podContainer(`{"lifecycle":{"preStop":{"httpGet":{"port":1}}}}`), "containers.0.lifecycle.preStop", `{"httpGet":{"path":"/","port":1,"scheme":"HTTP"}}`},
		"fieldRef":          {podContainer(`{"env":[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}]}`), "containers.0.env", `[{"name":"A","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.name"}}}]`},
		"fileKeyRef":        {podContainer(`{"env":[{"name":"A","valueFrom":{"fileKeyRef":{"key":"k","path":"p","volumeName":"v"}}}]}`), "containers.0.env", `[{"name":"A","valueFrom":{"fileKeyRef":{"key":"k","optional":false,"path":"p","volumeName":"v"}}}]`},
		"limits":            {podContainer(`{"resources":{"limits":{"cpu":"1"},"requests":{"memory":"1Mi"}}}`), "containers.0.resources", `{"limits":{"cpu":"1"},"requests":{"cpu":"1","memory":"1Mi"}}`},
		"rounding":          {podContainer(`{"resources":{"requests":{"cpu":"0.0001"}}}`), "containers.0.resources", `{"requests":{"cpu":"1m"}}`},
		"init limits":       {podWith(`{"initContainers":[{"name":"i","image":"x","resources":{"limits":{"cpu":"2"}}}]}`), "initContainers.0.resources", `{"limits":{"cpu":"2"},"requests":{"cpu":"2"}}`},
		"host ports":        {podWith(`{"hostNetwork":true,"containers":[{"name":"c","image":"i:1","ports":[{"containerPort":80}]}]}`), "containers.0.ports", `[{"containerPort":80,"hostPort":80,"protocol":"TCP"}]`},
		"service account":   {podWith(`{"serviceAccount":"a"}`), "serviceAccountName", `"a"`},
		"and its old name":  {podWith(`{"serviceAccountName":"b","serviceAccount":"a"}`), "serviceAccount", `"b"`},
		"hostPath":          {podWith(`{"volumes":[{"name":"v","hostPath":{"path":"/"}}]}`), "volumes", `[{"hostPath":{"path":"/","type":""},"name":"v"}]`},
		"configMap":         {podWith(`{"volumes":[{"name":"v","configMap":{"name":"c"}}]}`), "volumes", `[{"configMap":{"defaultMode":420,"name":"c"},"name":"v"}]`},
		"downwardAPI":       {podWith(`{"volumes":[{"name":"v","downwardAPI":{"items":[{"path":"a","fieldRef":{"fieldPath":"metadata.labels"}}]}}]}`), "volumes", `[{"downwardAPI":{"defaultMode":420,"items":[{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.labels"},"path":"a"}]},"name":"v"}]`},
		"projected":         {podWith(`{"volumes":[{"name":"v","projected":{"sources":[{"serviceAccountToken":{"path":"t"}}]}}]}`), "volumes", `[{"name":"v","projected":{"defaultMode":420,"sources":[{"serviceAccountToken":{"expirationSeconds":3600,"path":"t"}}]}}]`},
		"image volume":      {podWith(`{"volumes":[{"name":"v","image":{"reference":"x"}}]}`), "volumes", `[{"image":{"pullPolicy":"Always","reference":"x"},"name":"v"}]`},
		"claim template":    {podWith(`{"volumes":[{"name":"v","ephemeral":{"volumeClaimTemplate":{"spec":{}}}}]}`), "volumes.0.ephemeral.volumeClaimTemplate.spec", `{"resources":{},"volumeMode":"Filesystem"}`},
		"iscsi":             {podWith(`{"volumes":[{"name":"v","iscsi":{"targetPortal":"p","iqn":"iqn","lun":0}}]}`), "volumes.0.iscsi.iscsiInterface", `"default"`},
		"pod resources":     {podWith(`{"resources":{"limits":{"cpu":"2"}}}`), "resources", `{"limits":{"cpu":"2"},"requests":{"cpu":"2"}}`},
		"of the containers": {podWith(`{"resources":{"limits":{"cpu":"2"}},"containers":[{"name":"c","image":"i:1","resources":{"requests":{"cpu":"1"}}}]}`), "resources", `{"limits":{"cpu":"2"},"requests":{"cpu":"1"}}`},
		"given tolerations": {podWith(`{"tolerations":[{"operator":"Exists"}]}`), "tolerations", `[{"operator":"Exists"}]`},
		"critical priority": {podWith(`{"priorityClassName":"system-node-critical"}`), "priority", `2000001000`},
		"unknown priority":  {podWith(`{"priorityClassName":"x"}`), "priority", `null`},
		"label keys": {`{"metadata":{"name":"p","labels":{"a":"1"}},"spec":{"containers":[{"name":"c","image":"i:1"}],"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"k","whenUnsatisfiable":"DoNotSchedule","labelSelector":{},"matchLabelKeys":["a","b"]}]}}`,
			"topologySpreadConstraints.0.labelSelector", `{"matchExpressions":[{"key":"a","operator":"In","values":["1"]}]}`},
		"apparmor": {`{"metadata":{"name":"p","annotations":{"container.apparmor.security.beta.kubernetes.io/c":"localhost/x"}},"spec":{"containers":[{"name":"c","image":"i:1"}]}}`,
			"containers.0.securityContext", `{"appArmorProfile":{"localhostProfile":"x","type":"Localhost"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			obj := coreObject(t, k, tc.doc)
			again := obj.DeepCopyObject()
			k.Default(again)
			if !equality.Semantic.DeepEqual(obj, again) {
				t.Error("defaults are not idempotent")
			}
			k.PrepareCreate(obj)
			got, err := json.Marshal(at(coreJSON(t, obj)["spec"], strings.Split(tc.path, ".")))
			if err != nil || string(got) != tc.want {
				t.Errorf("%s is %s, want %s", tc.path, got, tc.want)
			}
		})
	}
}

// at walks down keys and indices.
func at(v any, path []string) any {
	for _, key := range path {
		switch c := v.(type) {
		case map[string]any:
			v = c[key]
		case []any:
			v = c[key[0]-'0']
		}
	}
	return v
}

func TestTemplatesHaveNoDefaultsOfPods(t *testing.T) {
	k := coreKindOf(t, "podtemplates")
	obj := coreObject(t, k, `{"template":{"spec":{"hostNetwork":true,"containers":[{"name":"c","image":"i:1","ports":[{"containerPort":80}],"resources":{"limits":{"cpu":"1"}}}]}}}`)
	spec := obj.(*corev1.PodTemplate).Template.Spec
	if spec.EnableServiceLinks != nil || spec.Containers[0].Resources.Requests != nil || spec.Containers[0].Ports[0].HostPort != 0 {
		t.Errorf("%+v", spec)
	}
	if errs := k.Validate(obj); len(errs) > 0 {
		t.Error(errs)
	}
}

func TestPullPolicy(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("a", 64)
	for image, want := range map[string]corev1.PullPolicy{
		"nginx":                           corev1.PullAlways,
		"nginx:latest":                    corev1.PullAlways,
		"registry:5000/a/b":               corev1.PullAlways,
		"Registry/a":                      corev1.PullAlways,
		"[::1]:5000/a":                    corev1.PullAlways,
		"a_b/c__d.e---f":                  corev1.PullAlways,
		"nginx:latest" + digest:           corev1.PullAlways,
		"nginx:1":                         corev1.PullIfNotPresent,
		"registry:5000/a:v1":              corev1.PullIfNotPresent,
		"nginx" + digest:                  corev1.PullIfNotPresent,
		"":                                corev1.PullIfNotPresent,
		"Nginx":                           corev1.PullIfNotPresent,
		"nginx:":                          corev1.PullIfNotPresent,
		" nginx":                          corev1.PullIfNotPresent,
		strings.Repeat("0123456789ab", 6): corev1.PullAlways,
		strings.Repeat("0123", 16):        corev1.PullIfNotPresent,
	} {
		t.Run(image, func(t *testing.T) {
			if got := pullPolicy(image); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func TestPodQuality(t *testing.T) {
	k := coreKindOf(t, "pods")
	const both = `"cpu":"1","memory":"1Mi"`
	for name, tc := range map[string]struct {
		doc  string
		want corev1.PodQOSClass
	}{
		"nothing said":    {podWith(`{}`), corev1.PodQOSBestEffort},
		"all limited":     {podContainer(`{"resources":{"limits":{` + both + `}}}`), corev1.PodQOSGuaranteed},
		"request below":   {podContainer(`{"resources":{"limits":{` + both + `},"requests":{"cpu":"500m"}}}`), corev1.PodQOSBurstable},
		"cpu only":        {podContainer(`{"resources":{"limits":{"cpu":"1"}}}`), corev1.PodQOSBurstable},
		"one of two":      {podWith(`{"containers":[{"name":"a","image":"i:1","resources":{"limits":{` + both + `}}},{"name":"b","image":"i:1"}]}`), corev1.PodQOSBurstable},
		"other resources": {podContainer(`{"resources":{"limits":{"example.com/x":"1"}}}`), corev1.PodQOSBestEffort},
		"of the pod":      {podWith(`{"resources":{"limits":{` + both + `}}}`), corev1.PodQOSGuaranteed},
		"not initialized": {podWith(`{"initContainers":[{"name":"i","image":"x"}],"containers":[{"name":"a","image":"i:1","resources":{"limits":{` + both + `}}}]}`), corev1.PodQOSBurstable},
	} {
		t.Run(name, func(t *testing.T) {
			if got := coreCreated(t, k, tc.doc).(*corev1.Pod).Status.QOSClass; got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestPodValidation(t *testing.T) {
	k := coreKindOf(t, "pods")
	for name, tc := range map[string]struct {
		doc  string
		want []string
	}{
		"good": {podWith(`{"volumes":[{"name":"v"}],"containers":[{"name":"c","image":"i:1","volumeMounts":[{"name":"v","mountPath":"/v"}],"livenessProbe":{"tcpSocket":{"port":"http"}}}]}`), nil},
		"names twice": {podWith(`{"containers":[{"name":"a","image":"x"},{"name":"a","image":"x"}],"initContainers":[{"name":"a","image":"x"}],"volumes":[{"name":"v"},{"name":"v"}]}`), []string{
			`FieldValueDuplicate spec.containers[1].name: Duplicate value: "a"`,
			`FieldValueDuplicate spec.initContainers[0].name: Duplicate value: "a"`,
			`FieldValueDuplicate spec.volumes[1].name: Duplicate value: "v"`}},
		"ports": {podContainer(`{"ports":[{"containerPort":0},{"containerPort":1,"protocol":"X","name":"a"},{"containerPort":2,"hostPort":70000,"name":"a"},{"containerPort":3,"hostPort":5},{"containerPort":4,"hostPort":5}]}`), []string{
			`FieldValueDuplicate spec.containers[0].ports[2].name: Duplicate value: "a"`,
			`FieldValueDuplicate spec.containers[0].ports[4].hostPort: Duplicate value: "TCP//5"`,
			`FieldValueInvalid spec.containers[0].ports[2].hostPort: Invalid value: 70000: must be between 1 and 65535, inclusive`,
			`FieldValueNotSupported spec.containers[0].ports[1].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP"`,
			`FieldValueRequired spec.containers[0].ports[0].containerPort: Required value`}},
		"env": {podContainer(`{"env":[{"name":""},{"name":"a=b"},{"name":"a","valueFrom":{}},{"name":"b","value":"x","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}},{"name":"c","valueFrom":{"fieldRef":{"fieldPath":"status.phase"}}},{"name":"d","valueFrom":{"fieldRef":{"fieldPath":"spec.x"}}}],"envFrom":[{}]}`), []string{
			"FieldValueInvalid spec.containers[0].env[1].name: Invalid value: \"a=b\": a valid environment variable name must consist only of printable ASCII characters other than '='",
			"FieldValueInvalid spec.containers[0].env[2].valueFrom: Invalid value: \"\": must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
			"FieldValueInvalid spec.containers[0].env[3].valueFrom: Invalid value: \"\": may not be specified when `value` is not empty",
			"FieldValueInvalid spec.containers[0].env[5].valueFrom.fieldRef.fieldPath: Invalid value: \"spec.x\": error converting fieldPath: field label not supported: spec.x",
			"FieldValueInvalid spec.containers[0].envFrom: Invalid value: \"\": must specify one of: `configMapRef` or `secretRef`",
			"FieldValueNotSupported spec.containers[0].env[4].valueFrom.fieldRef.fieldPath: Unsupported value: \"status.phase\": supported values: \"metadata.name\", \"metadata.namespace\", \"metadata.uid\", \"spec.nodeName\", \"spec.serviceAccountName\", \"status.hostIP\", \"status.hostIPs\", \"status.podIP\", \"status.podIPs\"",
			"FieldValueRequired spec.containers[0].env[0].name: Required value"}},
		"mounts": {podWith(`{"volumes":[{"name":"v"}],"containers":[{"name":"c","image":"x","volumeMounts":[{"name":"w","mountPath":""},{"name":"v","mountPath":"/a","subPath":"../b"},{"name":"v","mountPath":"/a"}]}]}`), []string{
			`FieldValueInvalid spec.containers[0].volumeMounts.subPath: Invalid value: "../b": must not contain '..'`,
			`FieldValueInvalid spec.containers[0].volumeMounts[2].mountPath: Invalid value: "/a": must be unique`,
			`FieldValueNotFound spec.containers[0].volumeMounts[0].name: Not found: "w"`,
			`FieldValueRequired spec.containers[0].volumeMounts[0].mountPath: Required value`}},
		"volumes": {podWith(`{"volumes":[{"name":"a","emptyDir":{},"secret":{"secretName":"s"}},{"name":"B","configMap":{"defaultMode":999,"items":[{"key":"k","path":"/x"}]}},{"name":"c","nfs":{"server":"","path":"p"}}]}`), []string{
			`FieldValueForbidden spec.volumes[0].secret: Forbidden: may not specify more than 1 volume type`,
			`FieldValueInvalid spec.volumes[1].configMap.defaultMode: Invalid value: 999: must be a number between 0 and 0777 (octal), both inclusive`,
			`FieldValueInvalid spec.volumes[1].configMap.items[0].path: Invalid value: "/x": must be a relative path`,
			`FieldValueInvalid spec.volumes[1].name: Invalid value: "B": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`,
			`FieldValueInvalid spec.volumes[2].nfs.path: Invalid value: "p": must be an absolute path`,
			`FieldValueRequired spec.volumes[1].configMap.name: Required value`,
			`FieldValueRequired spec.volumes[2].nfs.server: Required value`}},
		"token without account": {podWith(`{"volumes":[{"name":"a","projected":{"sources":[{"serviceAccountToken":{"path":"t","expirationSeconds":5}}]}}]}`), []string{
			`FieldValueForbidden spec.volumes[0].projected.sources[0].serviceAccountToken: Forbidden: must not be specified when serviceAccountName is not set`,
			`FieldValueInvalid spec.volumes[0].projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 5: may not specify a duration less than 10 minutes`}},
		"probes": {podContainer(`{"livenessProbe":{"successThreshold":2,"exec":{},"httpGet":{"port":0}},"readinessProbe":{"periodSeconds":-1,"httpGet":{"port":"","scheme":"X"},"terminationGracePeriodSeconds":1}}`), []string{
			`FieldValueForbidden spec.containers[0].livenessProbe.httpGet: Forbidden: may not specify more than 1 handler type`,
			`FieldValueInvalid spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1`,
			`FieldValueInvalid spec.containers[0].readinessProbe.httpGet.port: Invalid value: "": must contain at least one letter (a-z)`,
			`FieldValueInvalid spec.containers[0].readinessProbe.httpGet.port: Invalid value: "": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)`,
			`FieldValueInvalid spec.containers[0].readinessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0`,
			`FieldValueInvalid spec.containers[0].readinessProbe.terminationGracePeriodSeconds: Invalid value: 1: must not be set for readinessProbes`,
			`FieldValueNotSupported spec.containers[0].readinessProbe.httpGet.scheme: Unsupported value: "X": supported values: "HTTP", "HTTPS"`,
			`FieldValueRequired spec.containers[0].livenessProbe.exec.command: Required value`}},
		"init containers": {podWith(`{"initContainers":[{"name":"i","image":"x","livenessProbe":{"exec":{"command":["a"]}}}]}`), []string{
			`FieldValueForbidden spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers without restartPolicy=Always`}},
		"sidecar": {podWith(`{"initContainers":[{"name":"i","image":"x","restartPolicy":"Always","livenessProbe":{"exec":{"command":["a"]}}}]}`), nil},
		"resources": {podContainer(`{"resources":{"limits":{"cpu":"1","foo":"1","example.com/x":"1500m"},"requests":{"cpu":"2","memory":"-1","example.com/y":"1"},"claims":[{"name":"z"}]}}`), []string{
			`FieldValueInvalid spec.containers[0].resources.limits[example.com/x]: Invalid value: "1500m": must be an integer`,
			`FieldValueInvalid spec.containers[0].resources.limits[foo]: Invalid value: "foo": must be a standard resource for containers`,
			`FieldValueInvalid spec.containers[0].resources.limits[foo]: Invalid value: "foo": must be a standard resource type or fully qualified`,
			`FieldValueInvalid spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1`,
			`FieldValueInvalid spec.containers[0].resources.requests[example.com/x]: Invalid value: "1500m": must be an integer`,
			`FieldValueInvalid spec.containers[0].resources.requests[foo]: Invalid value: "foo": must be a standard resource for containers`,
			`FieldValueInvalid spec.containers[0].resources.requests[foo]: Invalid value: "foo": must be a standard resource type or fully qualified`,
			`FieldValueInvalid spec.containers[0].resources.requests[memory]: Invalid value: "-1": must be greater than or equal to 0`,
			`FieldValueNotFound spec.containers[0].resources.claims[0]: Not found: "z": must be one of the names in pod.spec.resourceClaims which is empty`,
			`FieldValueRequired spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources`}},
		"tolerations": {podWith(`{"tolerations":[{"key":"a","operator":"X"},{"value":"b","effect":"NoSchedule"},{"key":"a","tolerationSeconds":1},{"key":"a","operator":"Exists","value":"v","effect":"Y"}]}`), []string{
			`FieldValueInvalid spec.tolerations[1].operator: Invalid value: "": operator must be Exists when ` + "`key`" + ` is empty, which means "match all values and all keys"`,
			`FieldValueInvalid spec.tolerations[2].effect: Invalid value: "": effect must be 'NoExecute' when ` + "`tolerationSeconds`" + ` is set`,
			`FieldValueInvalid spec.tolerations[3].operator: Invalid value: "v": value must be empty when ` + "`operator`" + ` is 'Exists'`,
			`FieldValueNotSupported spec.tolerations[0].operator: Unsupported value: "X": supported values: "Equal", "Exists"`,
			`FieldValueNotSupported spec.tolerations[3].effect: Unsupported value: "Y": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"`}},
		"affinity": {podWith(`{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[]},"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":0,"preference":{"matchExpressions":[{"key":"a","operator":"In"}]}}]},"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"a","namespaces":["X"]}]}}}`), []string{
			`FieldValueInvalid spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 0: must be in the range 1-100`,
			`FieldValueInvalid spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].namespace: Invalid value: "X": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`,
			"FieldValueRequired spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
			`FieldValueRequired spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Required value: must have at least one node selector term`}},
		"spread": {podWith(`{"topologySpreadConstraints":[{"maxSkew":0,"topologyKey":"","whenUnsatisfiable":"X","minDomains":1}]}`), []string{
			`FieldValueInvalid spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero`,
			`FieldValueInvalid spec.topologySpreadConstraints[0].minDomains: Invalid value: 1: can only use minDomains if whenUnsatisfiable=DoNotSchedule, not X`,
			`FieldValueNotSupported spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: "X": supported values: "DoNotSchedule", "ScheduleAnyway"`,
			`FieldValueRequired spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty`}},
		"host": {podWith(`{"hostAliases":[{"ip":"x","hostnames":["A"]}],"hostUsers":false,"hostPID":true,"hostname":"A","dnsPolicy":"None"}`), []string{
			"FieldValueForbidden spec.HostPID: Forbidden: when `hostUsers` is false",
			`FieldValueInvalid spec.hostAliases[0].hostnames[0]: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
			`FieldValueInvalid spec.hostAliases[0].ip: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)`,
			`FieldValueInvalid spec.hostname: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`,
			"FieldValueRequired spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"}},
		"security": {podWith(`{"securityContext":{"runAsUser":-1,"seccompProfile":{"type":"Localhost"},"sysctls":[{"name":"A"}]},"containers":[{"name":"c","image":"x","securityContext":{"procMount":"Unmasked"}}]}`), []string{
			"FieldValueInvalid spec.containers[0].securityContext.procMount: Invalid value: \"Unmasked\": `hostUsers` must be false to use `Unmasked`",
			`FieldValueInvalid spec.securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive`,
			`FieldValueInvalid spec.securityContext.sysctls[0].name: Invalid value: "A": must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$`,
			`FieldValueRequired spec.securityContext.seccompProfile.localhostProfile: Required value: must be set when seccomp type is Localhost`}},
		"only of pods": {podWith(`{"terminationGracePeriodSeconds":-1,"nodeName":"n","schedulingGates":[{"name":"g"}],"ephemeralContainers":[{"name":"e","image":"x","ports":[{"containerPort":1}]}],"containers":[{"name":"c","image":" x"}]}`), []string{
			`FieldValueForbidden spec.ephemeralContainers: Forbidden: cannot be set on create`,
			`FieldValueForbidden spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container`,
			`FieldValueForbidden spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared`,
			`FieldValueInvalid spec.containers[0].image: Invalid value: " x": must not have leading or trailing whitespace`,
			`FieldValueInvalid spec.terminationGracePeriodSeconds: Invalid value: -1: must be greater than or equal to 0`}},
		"windows": {podWith(`{"os":{"name":"windows"},"hostPID":true,"securityContext":{"runAsUser":1}}`), []string{
			`FieldValueForbidden spec.hostPID: Forbidden: cannot be set for a windows pod`,
			`FieldValueForbidden spec.securityContext.runAsUser: Forbidden: cannot be set for a windows pod`}},
	} {
		t.Run(name, func(t *testing.T) {
			got := coreCauses(coreCreateErrors(k, coreCreated(t, k, tc.doc)))
			slices.Sort(tc.want)
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestPodTemplateValidation(t *testing.T) {
	tpl := &corev1.PodTemplateSpec{}
	if err := json.Unmarshal([]byte(`{"metadata":{"labels":{"a":"!"}},"spec":{"containers":[{"name":"c","image":" "}],"ephemeralContainers":[{"name":"e","image":"x"}]}}`), tpl); err != nil {
		t.Fatal(err)
	}
	defaultPodSpec(&tpl.Spec)
	var fields []string
	for _, e := range validatePodTemplate(tpl, field.NewPath("spec", "template")) {
		fields = append(fields, string(e.Type)+" "+e.Field)
	}
	want := []string{"FieldValueInvalid spec.template.labels", "FieldValueForbidden spec.template.spec.ephemeralContainers"}
	if d := cmp.Diff(want, fields); d != "" {
		t.Error(d)
	}
}

func TestPodUpdates(t *testing.T) {
	k := coreKindOf(t, "pods")
	for name, tc := range map[string]struct {
		old, now string
		want     []string // the beginnings of the causes
	}{
		"nothing":           {podWith(`{}`), podWith(`{}`), nil},
		"image":             {podWith(`{}`), podWith(`{"containers":[{"name":"c","image":"i:2"}]}`), nil},
		"no image":          {podWith(`{}`), podWith(`{"containers":[{"name":"c","image":"","imagePullPolicy":"IfNotPresent"}]}`), []string{"FieldValueRequired spec.containers[0].image: Required value", "FieldValueRequired spec.containers[0].image: Required value"}},
		"a container more":  {podWith(`{}`), podWith(`{"containers":[{"name":"c","image":"i:1"},{"name":"d","image":"i:1"}]}`), []string{"FieldValueForbidden spec.containers: Forbidden: pod updates may not add or remove containers"}},
		"a toleration more": {podWith(`{}`), podWith(`{"tolerations":[{"key":"a","operator":"Exists"}]}`), nil},
		"one less":          {podWith(`{"tolerations":[{"key":"a","operator":"Exists"}]}`), podWith(`{}`), []string{"FieldValueForbidden spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"}},
		"env":               {podWith(`{}`), podContainer(`{"env":[{"name":"A"}]}`), []string{"FieldValueForbidden spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n"}},
		"deadline":          {podWith(`{"activeDeadlineSeconds":5}`), podWith(`{"activeDeadlineSeconds":6}`), []string{"FieldValueInvalid spec.activeDeadlineSeconds: Invalid value: 6: must be less than or equal to previous value"}},
		"earlier":           {podWith(`{"activeDeadlineSeconds":5}`), podWith(`{"activeDeadlineSeconds":4}`), nil},
		"gate opened":       {podWith(`{"schedulingGates":[{"name":"g"}]}`), podWith(`{"nodeSelector":{"a":"b"}}`), nil},
		"gate added":        {podWith(`{}`), podWith(`{"schedulingGates":[{"name":"g"}]}`), []string{"FieldValueForbidden spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'g'"}},
		"ungated selector":  {podWith(`{}`), podWith(`{"nodeSelector":{"a":"b"}}`), []string{"FieldValueForbidden spec: Forbidden: pod updates may not change fields other than"}},
		"gated affinity": {podWith(`{"schedulingGates":[{"name":"g"}]}`),
			podWith(`{"schedulingGates":[{"name":"g"}],"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"Exists"}]}]}}}}`), nil},
	} {
		t.Run(name, func(t *testing.T) {
			old := coreCreated(t, k, tc.old)
			now := coreObject(t, k, tc.now)
			k.PrepareUpdate(now, old)
			got := coreCauses(coreUpdateErrors(k, now, old))
			if len(got) != len(tc.want) {
				t.Fatalf("got %q, want %q", got, tc.want)
			}
			for i := range got {
				if !strings.HasPrefix(got[i], tc.want[i]) {
					t.Errorf("got %q, want %q", got[i], tc.want[i])
				}
			}
		})
	}
}

func TestPodStatusUpdates(t *testing.T) {
	k := coreKindOf(t, "pods")
	ended := `{"containerStatuses":[{"name":"c","state":{"terminated":{"exitCode":1}}}]}`
	for name, tc := range map[string]struct {
		spec, old, now string
		want           []string
	}{
		"restarted":    {`{}`, ended, `{"containerStatuses":[{"name":"c","state":{"running":{}}}]}`, nil},
		"resurrected":  {`{"restartPolicy":"Never"}`, ended, `{"containerStatuses":[{"name":"c","state":{"running":{}}}]}`, []string{`FieldValueForbidden status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state`}},
		"two v4":       {`{}`, `{}`, `{"podIPs":[{"ip":"10.0.0.1"},{"ip":"10.0.0.2"}]}`, []string{`FieldValueInvalid status.podIPs: Invalid value: [{"ip":"10.0.0.1"},{"ip":"10.0.0.2"}]: may specify no more than one IP for each IP family`}},
		"one of each":  {`{}`, `{}`, `{"podIPs":[{"ip":"10.0.0.1"},{"ip":"fd00::1"}]}`, nil},
		"quality":      {`{}`, `{}`, `{"qosClass":"Guaranteed"}`, []string{`FieldValueInvalid status.qosClass: Invalid value: "Guaranteed": field is immutable`}},
		"no quality":   {`{}`, `{}`, `{"qosClass":""}`, nil},
		"host address": {`{}`, `{}`, `{"hostIP":"10.0.0.1","hostIPs":[{"ip":"10.0.0.2"}]}`, []string{"FieldValueInvalid status.hostIPs[0].ip: Invalid value: \"10.0.0.2\": must be equal to `hostIP`"}},
		"condition":    {`{}`, `{}`, `{"conditions":[{"type":"Ready","status":"True"},{"type":"x/y/z","status":"True"}]}`, []string{`FieldValueInvalid status.conditions[1].Type: Invalid value: "x/y/z": a valid label key must consist of`}},
	} {
		t.Run(name, func(t *testing.T) {
			old := coreCreated(t, k, podWith(tc.spec)).(*corev1.Pod)
			now := old.DeepCopy()
			for pod, doc := range map[*corev1.Pod]string{old: tc.old, now: tc.now} {
				if err := json.Unmarshal([]byte(doc), &pod.Status); err != nil {
					t.Fatal(err)
				}
				k.Default(pod)
			}
			k.PrepareStatus(now, old)
			got := coreCauses(k.ValidateStatus(now, old))
			if len(got) != len(tc.want) {
				t.Fatalf("got %q, want %q", got, tc.want)
			}
			for i := range got {
				if !strings.HasPrefix(got[i], tc.want[i]) {
					t.Errorf("got %q, want %q", got[i], tc.want[i])
				}
			}
		})
	}
}

func TestPodAddressesStayInStep(t *testing.T) {
	for name, tc := range map[string]struct{ doc, want string }{
		"from one":   {`{"podIP":"10.1.2.3"}`, `{"podIP":"10.1.2.3","podIPs":[{"ip":"10.1.2.3"}]}`},
		"from many":  {`{"podIPs":[{"ip":"10.1.2.3"}]}`, `{"podIP":"10.1.2.3","podIPs":[{"ip":"10.1.2.3"}]}`},
		"differing":  {`{"podIP":"10.1.2.3","podIPs":[{"ip":"10.9.9.9"},{"ip":"::1"}]}`, `{"podIP":"10.1.2.3","podIPs":[{"ip":"10.1.2.3"}]}`},
		"no address": {`{}`, `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			var s corev1.PodStatus
			if err := json.Unmarshal([]byte(tc.doc), &s); err != nil {
				t.Fatal(err)
			}
			defaultPodStatus(&s)
			if got, _ := json.Marshal(s); string(got) != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func coreSubresource(t *testing.T, k *Kind, name string) Subresource {
	t.Helper()
	for _, s := range k.Subresources {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("%s has no subresource %s", k.Resource, name)
	return Subresource{}
}

func TestPodSubresources(t *testing.T) {
	k := coreKindOf(t, "pods")
	limits := func(cpu string) string {
		return podContainer(`{"resources":{"limits":{"cpu":"` + cpu + `","memory":"1Mi"}}}`)
	}
	for name, tc := range map[string]struct {
		sub, old, now string
		want          []string
	}{
		"a container to debug": {"ephemeralcontainers", podWith(`{}`), podWith(`{"nodeName":"ignored","ephemeralContainers":[{"name":"e","image":"x","targetContainerName":"c"}]}`), nil},
		"removed":              {"ephemeralcontainers", podWith(`{"ephemeralContainers":[{"name":"e","image":"x"}]}`), podWith(`{}`), []string{"FieldValueForbidden spec.ephemeralContainers: Forbidden: existing ephemeral containers \"e\" may not be removed\n"}},
		"no target":            {"ephemeralcontainers", podWith(`{}`), podWith(`{"ephemeralContainers":[{"name":"e","image":"x","targetContainerName":"d"}]}`), []string{`FieldValueNotFound spec.ephemeralContainers[0].targetContainerName: Not found: "d"`}},
		"more cpu":             {"resize", limits("1"), limits("2"), nil},
		"other quality":        {"resize", limits("1"), podContainer(`{"resources":{"requests":{"cpu":"1","memory":"1Mi"},"limits":{"cpu":"2","memory":"1Mi"}}}`), []string{`FieldValueInvalid spec: Invalid value: "Guaranteed": Pod QOS Class may not change as a result of resizing`}},
		"another container":    {"resize", limits("1"), strings.Replace(limits("1"), `"name":"c"`, `"name":"d"`, 1), []string{`FieldValueForbidden spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize`}},
		"cpu removed":          {"resize", podContainer(`{"resources":{"requests":{"cpu":"1","memory":"1Mi"}}}`), podContainer(`{"resources":{"requests":{"memory":"1Mi"}}}`), []string{`FieldValueForbidden spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed`}},
	} {
		t.Run(name, func(t *testing.T) {
			s := coreSubresource(t, k, tc.sub)
			old := coreCreated(t, k, tc.old).(*corev1.Pod)
			now := coreObject(t, k, tc.now).(*corev1.Pod)
			s.Prepare(now, old)
			if now.Spec.NodeName != old.Spec.NodeName {
				t.Error("the node changed")
			}
			if d := cmp.Diff(tc.want, coreCauses(s.Validate(now, old))); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestPodCells(t *testing.T) {
	k := coreKindOf(t, "pods")
	for name, tc := range map[string]struct {
		spec, status string
		deleted      bool
		want         string
	}{
		"running":     {`{"nodeName":"n"}`, `{"phase":"Running","podIP":"10.0.0.1","containerStatuses":[{"name":"c","ready":true,"restartCount":2,"state":{"running":{}},"lastState":{"terminated":{"exitCode":1,"finishedAt":"` + coreAgo(90*time.Second) + `"}}}]}`, false, "p 1/1 Running 2 (90s ago) 5m 10.0.0.1 n <none> <none>"},
		"crashing":    {`{}`, `{"phase":"Running","containerStatuses":[{"name":"c","state":{"waiting":{"reason":"CrashLoopBackOff"}}}]}`, false, "p 0/1 CrashLoopBackOff 0 5m <none> <none> <none> <none>"},
		"ended":       {`{}`, `{"phase":"Succeeded","containerStatuses":[{"name":"c","state":{"terminated":{"exitCode":0,"reason":"Completed"}}}]}`, false, "p 0/1 Completed 0 5m <none> <none> <none> <none>"},
		"signal":      {`{}`, `{"phase":"Failed","containerStatuses":[{"name":"c","state":{"terminated":{"exitCode":137,"signal":9}}}]}`, false, "p 0/1 Signal:9 0 5m <none> <none> <none> <none>"},
		"terminating": {`{}`, `{"phase":"Running"}`, true, "p 0/1 Terminating 0 5m <none> <none> <none> <none>"},
		"lost":        {`{}`, `{"phase":"Running","reason":"NodeLost"}`, true, "p 0/1 Unknown 0 5m <none> <none> <none> <none>"},
		"init":        {`{"initContainers":[{"name":"a","image":"x"},{"name":"b","image":"x"}]}`, `{"phase":"Pending","initContainerStatuses":[{"name":"a","state":{"terminated":{"exitCode":0}}},{"name":"b","state":{"running":{}}}]}`, false, "p 0/1 Init:1/2 0 5m <none> <none> <none> <none>"},
		"init failed": {`{"initContainers":[{"name":"a","image":"x"}]}`, `{"phase":"Pending","initContainerStatuses":[{"name":"a","restartCount":3,"state":{"terminated":{"exitCode":2}}}]}`, false, "p 0/1 Init:ExitCode:2 3 5m <none> <none> <none> <none>"},
		"sidecar":     {`{"initContainers":[{"name":"a","image":"x","restartPolicy":"Always"}]}`, `{"phase":"Running","initContainerStatuses":[{"name":"a","ready":true,"started":true,"restartCount":1,"state":{"running":{}}}],"containerStatuses":[{"name":"c","ready":true,"state":{"running":{}}}]}`, false, "p 2/2 Running 1 5m <none> <none> <none> <none>"},
		"gates":       {`{"readinessGates":[{"conditionType":"a"},{"conditionType":"b"}]}`, `{"phase":"Pending","nominatedNodeName":"m","conditions":[{"type":"a","status":"True"}]}`, false, "p 0/1 Pending 0 5m <none> <none> m 1/2"},
		"gated":       {`{"schedulingGates":[{"name":"g"}]}`, `{}`, false, "p 0/1 SchedulingGated 0 5m <none> <none> <none> <none>"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := coreCreated(t, k, podWith(tc.spec)).(*corev1.Pod)
			if err := json.Unmarshal([]byte(tc.status), &pod.Status); err != nil {
				t.Fatal(err)
			}
			k.Default(pod)
			pod.CreationTimestamp.Time = coreNow.Add(-5 * time.Minute)
			if tc.deleted {
				pod.DeletionTimestamp = &coreNow
			}
			if got := strings.TrimSuffix(fmt.Sprintln(k.Cells(pod, coreNow)...), "\n"); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

func TestPodWarnings(t *testing.T) {
	k := coreKindOf(t, "pods")
	for name, tc := range map[string]struct {
		doc  string
		want []string
	}{
		"none":     {podWith(`{}`), nil},
		"env":      {podContainer(`{"env":[{"name":"A","value":"1"},{"name":"A","value":"2"},{"name":"A","value":"$(A)3"}]}`), []string{`spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply`}},
		"ports":    {podContainer(`{"ports":[{"containerPort":80,"name":"a"},{"containerPort":80}]}`), []string{`spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]`}},
		"gitRepo":  {podWith(`{"volumes":[{"name":"v","gitRepo":{"repository":"r"}}]}`), []string{`spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+`}},
		"label":    {podWith(`{"nodeSelector":{"beta.kubernetes.io/os":"linux"}}`), []string{`spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead`}},
		"fraction": {podContainer(`{"resources":{"limits":{"memory":"1500m"}}}`), []string{`spec.containers[0].resources.limits[memory]: fractional byte value "1500m" is invalid, must be an integer`, `spec.containers[0].resources.requests[memory]: fractional byte value "1500m" is invalid, must be an integer`}},
	} {
		t.Run(name, func(t *testing.T) {
			pod := coreCreated(t, k, tc.doc)
			if d := cmp.Diff(tc.want, k.Warnings(pod, nil)); d != "" {
				t.Error(d)
			}
			if w := k.Warnings(pod, pod); w != nil {
				t.Errorf("warned of an update: %q", w)
			}
		})
	}
}
