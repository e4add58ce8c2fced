package kinds

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestIngresses(t *testing.T) {
	runPolicyCases(t, map[string]policyCase{
		"empty": {resource: "ingresses", doc: `{}`, want: []string{
			"spec: Invalid value: null: either `defaultBackend` or `rules` must be specified",
		}},
		"backends": {resource: "ingresses", doc: `{"spec":{"defaultBackend":{"service":{"name":"1a","port":{"name":"p","number":1}}},"rules":[{"host":"1.2.3.4","http":{"paths":[
			{"pathType":"Prefix","path":"/a//b/..","backend":{"resource":{"apiGroup":"A"}}},
			{"pathType":"Other","backend":{"service":{"name":"A.b"}}},
			{"backend":{}}]}}]}}`, want: []string{
			`spec.defaultBackend: Invalid value: "": cannot set both port name & port number`,
			`spec.rules[0].host: Invalid value: "1.2.3.4": must be a DNS name, not an IP address`,
			`spec.rules[0].http.paths[0].path: Invalid value: "/a//b/..": must not contain '//'`,
			`spec.rules[0].http.paths[0].path: Invalid value: "/a//b/..": cannot end with '/..'`,
			`spec.rules[0].http.paths[0].backend.resource.apiGroup: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
			`spec.rules[0].http.paths[0].backend.resource.kind: Required value`,
			`spec.rules[0].http.paths[0].backend.resource.name: Required value`,
			`spec.rules[0].http.paths[1].pathType: Unsupported value: "Other": supported values: "Exact", "ImplementationSpecific", "Prefix"`,
			`spec.rules[0].http.paths[1].backend.service.name: Invalid value: "A.b": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`,
			`spec.rules[0].http.paths[1].backend: Required value: port name or number is required`,
			`spec.rules[0].http.paths[2].pathType: Required value: pathType must be specified`,
		}},
		"no paths": {resource: "ingresses", doc: `{"spec":{"rules":[{"http":{"paths":[]}}]}}`, want: []string{
			`spec.rules[0].http.paths: Required value`,
		}},
		"two classes": {resource: "ingresses", doc: `{"metadata":{"annotations":{"kubernetes.io/ingress.class":"a"}},"spec":{"ingressClassName":"b","rules":[{}]}}`, want: []string{
			"annotations.kubernetes.io/ingress.class: Invalid value: \"a\": must match `ingressClassName` when both are specified",
		}},
		"two classes, later": {
			resource: "ingresses", doc: `{"metadata":{"annotations":{"kubernetes.io/ingress.class":"a"}},"spec":{"ingressClassName":"b","rules":[{}]}}`,
			old: `{"spec":{"rules":[{}]}}`,
		},
	})
}

func TestIngressStatusAndWarnings(t *testing.T) {
	k := policyKindOf(t, "ingresses")
	status := policyObject(t, k, `{"status":{"loadBalancer":{"ingress":[{"ip":"1.2.3.04"},{"hostname":"1.2.3.4"},{"ip":"5.6.7.08"}]}}}`)
	old := policyObject(t, k, `{"status":{"loadBalancer":{"ingress":[{"ip":"5.6.7.08"}]}}}`)
	want := []string{
		`status.loadBalancer.ingress[0].ip: Invalid value: "1.2.3.04": must not have leading 0s`,
		`status.loadBalancer.ingress[1].hostname: Invalid value: "1.2.3.4": must be a DNS name, not an IP address`,
	}
	if d := cmp.Diff(want, policyCauses(k.ValidateStatus(status, old))); d != "" {
		t.Error(d)
	}
	former := policyObject(t, k, `{"metadata":{"annotations":{"kubernetes.io/ingress.class":"a"}}}`)
	want = []string{`annotation "kubernetes.io/ingress.class" is deprecated, please use 'spec.ingressClassName' instead`}
	if d := cmp.Diff(want, k.Warnings(former, nil)); d != "" {
		t.Error(d)
	}
	if got := k.Warnings(former, old); len(got) > 0 {
		t.Errorf("warned of an update: %v", got)
	}
}

func TestIngressClasses(t *testing.T) {
	runPolicyCases(t, map[string]policyCase{
		"empty": {resource: "ingressclasses", doc: `{}`, want: []string{`spec.controller: Required value`}},
		"parameters": {resource: "ingressclasses", doc: `{"spec":{"controller":"a.b/c","parameters":{"kind":"K","name":"n","scope":"Namespace"}}}`, want: []string{
			"spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'",
		}},
		"parameters of the cluster": {resource: "ingressclasses", doc: `{"spec":{"controller":"a.b/c","parameters":{"kind":"K","name":"n","namespace":"x"}}}`, want: []string{
			"spec.parameters.namespace: Forbidden: `parameters.scope` is set to 'Cluster'",
		}},
		"another controller": {
			resource: "ingressclasses", doc: `{"spec":{"controller":"a.b/c"}}`, old: `{"spec":{"controller":"a.b/d"}}`,
			want: []string{`spec.controller: Invalid value: "a.b/c": field is immutable`},
		},
	})
}

func TestNetworkPolicies(t *testing.T) {
	runPolicyCases(t, map[string]policyCase{
		"empty": {resource: "networkpolicies", doc: `{}`},
		"peers": {resource: "networkpolicies", doc: `{"spec":{"ingress":[{"from":[{},{"podSelector":{},"ipBlock":{"cidr":"10.0.0.0/8","except":["10.1.0.0/16","11.0.0.0/16","10.0.0.0/8","x"]}},{"ipBlock":{}}]}],"policyTypes":["X"]}}`, want: []string{
			`spec.ingress[0].from[0]: Required value: must specify a peer`,
			`spec.ingress[0].from[1]: Forbidden: may not specify both ipBlock and another peer`,
			"spec.ingress[0].from[1].ipBlock.except[1]: Invalid value: \"11.0.0.0/16\": must be a strict subset of `cidr`",
			"spec.ingress[0].from[1].ipBlock.except[2]: Invalid value: \"10.0.0.0/8\": must be a strict subset of `cidr`",
			`spec.ingress[0].from[1].ipBlock.except[3]: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)`,
			`spec.ingress[0].from[2].ipBlock.cidr: Required value`,
			`spec.policyTypes[0]: Unsupported value: "X": supported values: "Ingress", "Egress"`,
		}},
		"ports": {resource: "networkpolicies", doc: `{"spec":{"egress":[{"ports":[{"endPort":1},{"port":"http","endPort":1},{"port":80,"endPort":8},{"port":0,"protocol":"X"}]}]}}`, want: []string{
			"spec.egress[0].ports[0].endPort: Invalid value: 1: may not be specified when `port` is not specified",
			"spec.egress[0].ports[1].endPort: Invalid value: 1: may not be specified when `port` is non-numeric",
			"spec.egress[0].ports[2].endPort: Invalid value: 80: must be greater than or equal to `port`",
			`spec.egress[0].ports[3].port: Invalid value: 0: must be between 1 and 65535, inclusive`,
			`spec.egress[0].ports[3].protocol: Unsupported value: "X": supported values: "TCP", "UDP", "SCTP"`,
		}},
	})
}

func TestAddressesAndRanges(t *testing.T) {
	runPolicyCases(t, map[string]policyCase{
		"address of nothing": {resource: "ipaddresses", doc: `{}`, want: []string{`spec.parentRef: Required value`}},
		"address moved": {
			resource: "ipaddresses", doc: `{"spec":{"parentRef":{"resource":"services","name":"b","namespace":"n"}}}`,
			old: `{"spec":{"parentRef":{"resource":"services","name":"a","namespace":"n"}}}`, want: []string{
				`spec.parentRef: Invalid value: {"Group":"","Resource":"services","Namespace":"n","Name":"b"}: field is immutable`,
			},
		},
		"no range": {resource: "servicecidrs", doc: `{}`, want: []string{`spec.cidrs: Required value: at least one CIDR required`}},
		"three ranges": {resource: "servicecidrs", doc: `{"spec":{"cidrs":["a","b","c"]}}`, want: []string{
			`spec.cidrs: Invalid value: {"CIDRs":["a","b","c"]}: may only hold up to 2 values`,
		}},
		"two ranges of a family": {resource: "servicecidrs", doc: `{"spec":{"cidrs":["10.0.0.0/24","10.1.0.0/24"]}}`, want: []string{
			`spec.cidrs: Invalid value: ["10.0.0.0/24","10.1.0.0/24"]: may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64`,
		}},
		"a second range": {resource: "servicecidrs", doc: `{"spec":{"cidrs":["10.0.0.0/24","fd00::/64"]}}`, old: `{"spec":{"cidrs":["10.0.0.0/24"]}}`},
		"a range less": {resource: "servicecidrs", doc: `{"spec":{"cidrs":[]}}`, old: `{"spec":{"cidrs":["10.0.0.0/24"]}}`, want: []string{
			`spec.cidrs: Invalid value: []: field is immutable`,
		}},
		"another range": {resource: "servicecidrs", doc: `{"spec":{"cidrs":["10.1.0.0/24"]}}`, old: `{"spec":{"cidrs":["10.0.0.0/24"]}}`, want: []string{
			`spec.cidrs[0]: Invalid value: "10.1.0.0/24": field is immutable`,
		}},
	})
	for name, wrong := range map[string]bool{"10.0.0.1": false, "fd00::1": false, "10.0.0.01": true, "x": true, "FD00::1": true} {
		if got := ipAddressName(name, false); (len(got) > 0) != wrong {
			t.Errorf("%q: %v", name, got)
		}
	}
}
