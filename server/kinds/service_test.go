package kinds

import (
	"strings"
	"testing"
)

func TestServiceValidation(t *testing.T) {
	runWorkloadCases(t, map[string]workloadCase{
		"service": {resource: "services", doc: `{"metadata":{"name":"s"},"spec":{"ports":[{"port":80}]}}`},
		"no ports": {resource: "services", doc: `{"spec":{}}`, want: []string{
			"FieldValueRequired spec.ports: Required value",
		}},
		"odd ports": {resource: "services", doc: `{"spec":{"ports":[{"name":"A","port":80,"targetPort":"_"},{"name":"b","port":80},{"name":"b","port":81,"nodePort":30001,"appProtocol":"!"}]}}`, want: []string{
			`FieldValueDuplicate spec.ports[1]: Duplicate value: {"Name":"","Protocol":"TCP","AppProtocol":null,"Port":80,"TargetPort":0,"NodePort":0}`,
			`FieldValueDuplicate spec.ports[2].name: Duplicate value: "b"`,
			"FieldValueForbidden spec.ports[2].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'",
			`FieldValueInvalid spec.ports[0].name: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`,
			`FieldValueInvalid spec.ports[0].targetPort: Invalid value: "_": must contain at least one letter (a-z)`,
			`FieldValueInvalid spec.ports[0].targetPort: Invalid value: "_": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)`,
			`FieldValueInvalid spec.ports[2].appProtocol: Invalid value: "!": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
		}},
		"external name of everything": {resource: "services", doc: `{"spec":{"type":"ExternalName","clusterIP":"10.0.0.1","ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack","loadBalancerClass":"a/b"}}`, want: []string{
			"FieldValueForbidden spec.clusterIPs: Forbidden: may not be set for ExternalName services",
			"FieldValueForbidden spec.ipFamilies: Forbidden: may not be set for ExternalName services",
			"FieldValueForbidden spec.ipFamilyPolicy: Forbidden: may not be set for ExternalName services",
			"FieldValueForbidden spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'",
			"FieldValueRequired spec.externalName: Required value",
		}},
		"headless behind node ports": {resource: "services", doc: `{"spec":{"type":"NodePort","clusterIP":"None","selector":{"a":"b"},"ports":[{"port":80}]}}`, want: []string{
			`FieldValueInvalid spec.clusterIPs[0]: Invalid value: "None": may not be set to 'None' for NodePort services`,
		}},
		"odd addresses": {resource: "services", doc: `{"spec":{"externalIPs":["127.0.0.1","010.1.1.1","x"],"loadBalancerSourceRanges":["10.0.0.1/8"],"ports":[{"port":80}]}}`, want: []string{
			"FieldValueForbidden spec.LoadBalancerSourceRanges: Forbidden: may only be used when `type` is 'LoadBalancer'",
			`FieldValueInvalid spec.LoadBalancerSourceRanges[0]: Invalid value: "10.0.0.1/8": must not have bits set beyond the prefix length`,
			`FieldValueInvalid spec.externalIPs[0]: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)`,
			`FieldValueInvalid spec.externalIPs[1]: Invalid value: "010.1.1.1": must not have leading 0s`,
			`FieldValueInvalid spec.externalIPs[2]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)`,
		}},
		"odd policies": {resource: "services", doc: `{"spec":{"sessionAffinity":"Odd","externalTrafficPolicy":"Local","internalTrafficPolicy":"Odd","trafficDistribution":"Odd","healthCheckNodePort":30001,"ports":[{"port":80}]}}`, want: []string{
			`FieldValueInvalid spec.externalTrafficPolicy: Invalid value: "Local": may only be set for externally-accessible services`,
			"FieldValueInvalid spec.healthCheckNodePort: Invalid value: 30001: may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'",
			`FieldValueNotSupported spec.internalTrafficPolicy: Unsupported value: "Odd": supported values: "Cluster", "Local"`,
			`FieldValueNotSupported spec.sessionAffinity: Unsupported value: "Odd": supported values: "ClientIP", "None"`,
			`FieldValueNotSupported spec.trafficDistribution: Unsupported value: "Odd": supported values: "PreferClose", "PreferSameZone", "PreferSameNode"`,
		}},
		"affinity for too long": {resource: "services", doc: `{"spec":{"sessionAffinity":"ClientIP","sessionAffinityConfig":{"clientIP":{"timeoutSeconds":86401}},"ports":[{"port":80}]}}`, want: []string{
			"FieldValueInvalid spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 86401: must be greater than 0 and less than 86400",
		}},
		"another address": {resource: "services", old: `{"spec":{"ports":[{"port":80}]}}`, doc: `{"spec":{"clusterIP":"10.0.0.99","clusterIPs":["10.0.0.99"],"ports":[{"port":80}]}}`, want: []string{
			`FieldValueInvalid spec.clusterIPs[0]: Invalid value: ["10.0.0.99"]: may not change once set`,
		}},
		"another class of load balancer": {resource: "services", old: `{"spec":{"type":"LoadBalancer","ports":[{"port":80}]}}`, doc: `{"spec":{"type":"LoadBalancer","loadBalancerClass":"a/b","ports":[{"port":80}]}}`, want: []string{
			`FieldValueInvalid spec.loadBalancerClass: Invalid value: "a/b": may not change once set`,
		}},
		"load balancer that is none": {resource: "services", status: true, old: `{"spec":{"ports":[{"port":80}]}}`, doc: `{"spec":{"type":"ClusterIP"},"status":{"loadBalancer":{"ingress":[{"ip":"1.2.3.4"}]}}}`, want: []string{
			"FieldValueForbidden status.loadBalancer.ingress: Forbidden: may only be used when `spec.type` is 'LoadBalancer'",
		}},
		"odd load balancer": {resource: "services", status: true, old: `{"spec":{"ports":[{"port":80}]}}`, doc: `{"spec":{"type":"LoadBalancer"},"status":{"loadBalancer":{"ingress":[{"ip":"x","ipMode":"Odd"},{"ipMode":"VIP","hostname":"1.2.3.4"}]}}}`, want: []string{
			"FieldValueForbidden status.loadBalancer.ingress[1].ipMode: Forbidden: may not be specified when `ip` is not set",
			`FieldValueInvalid status.loadBalancer.ingress[0].ip: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)`,
			`FieldValueInvalid status.loadBalancer.ingress[1].hostname: Invalid value: "1.2.3.4": must be a DNS name, not an IP address`,
			`FieldValueNotSupported status.loadBalancer.ingress[0].ipMode: Unsupported value: "Odd": supported values: "Proxy", "VIP"`,
		}},
	})
}

func TestEndpointValidation(t *testing.T) {
	odd := `{"subsets":[{"addresses":[{"ip":"169.254.1.1","hostname":"H"}],"ports":[{"port":0},{"port":1,"name":"a","protocol":"X"}]},{}]}`
	runWorkloadCases(t, map[string]workloadCase{
		"endpoints": {resource: "endpoints", doc: `{"subsets":[{"addresses":[{"ip":"10.0.0.1"}],"ports":[{"port":80}]}]}`},
		"odd endpoints": {resource: "endpoints", doc: odd, want: []string{
			`FieldValueInvalid subsets[0].addresses[0].hostname: Invalid value: "H": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`,
			`FieldValueInvalid subsets[0].addresses[0].ip: Invalid value: "169.254.1.1": may not be in the link-local range (169.254.0.0/16, fe80::/10)`,
			"FieldValueInvalid subsets[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
			`FieldValueNotSupported subsets[0].ports[1].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP"`,
			"FieldValueRequired subsets[0].ports[0].name: Required value",
			"FieldValueRequired subsets[1]: Required value: must specify `addresses` or `notReadyAddresses`",
		}},
		"slice": {resource: "endpointslices", doc: `{"addressType":"IPv6","endpoints":[{"addresses":["fd00::1"]}],"ports":[{"port":80}]}`},
		"odd slice": {resource: "endpointslices", doc: `{"addressType":"IPv4","endpoints":[{},{"addresses":["fd00::1"],"hints":{"forZones":[{"name":"a"},{"name":"a"}]}}],"ports":[{},{"protocol":"X"}]}`, want: []string{
			`FieldValueDuplicate endpoints[1].hints.forZones[1].name: Duplicate value: "a"`,
			`FieldValueDuplicate ports[1].name: Duplicate value: ""`,
			`FieldValueInvalid endpoints[1].addresses: Invalid value: "fd00::1": must be an IPv4 address`,
			`FieldValueNotSupported ports[1].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP"`,
			"FieldValueRequired endpoints[0].addresses: Required value: must contain at least 1 address",
		}},
		"slice of nothing": {resource: "endpointslices", doc: `{}`, want: []string{"FieldValueRequired addressType: Required value"}},
		"slice of others":  {resource: "endpointslices", old: `{"addressType":"IPv4"}`, doc: `{"addressType":"IPv6"}`, want: []string{`FieldValueInvalid addressType: Invalid value: "IPv6": field is immutable`}},
	})
}

func TestServiceWarnings(t *testing.T) {
	k := serviceKind()
	obj := coreObject(t, k, `{"metadata":{"annotations":{"service.kubernetes.io/topology-aware-hints":"Auto"}},"spec":{"externalName":"x","externalIPs":["010.1.1.1"],"trafficDistribution":"PreferClose"}}`)
	got := strings.Join(k.Warnings(obj, nil), "\n")
	want := `annotation service.kubernetes.io/topology-aware-hints is deprecated, please use service.kubernetes.io/topology-mode instead
spec.externalIPs[0]: non-standard IP address "010.1.1.1" is invalid: use "10.1.1.1"
spec.externalIPs is deprecated and may no longer be implemented in some clusters
spec.externalName is ignored when spec.type is not "ExternalName"
spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
