package kinds

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// testPool hands out addresses from 10.0.0.10 and ports from 30000 on.
type testPool struct {
	ips   map[string]bool
	ports map[int32]bool
	full  bool
}

func newTestPool() *testPool { return &testPool{ips: map[string]bool{}, ports: map[int32]bool{}} }

func (p *testPool) pool() ServicePool {
	return ServicePool{Family: corev1.IPv4Protocol, IP: p.ip, Port: p.port}
}

func (p *testPool) ip(want string) (string, error) {
	for n := 10; want == "" && n < 255; n++ {
		if ip := fmt.Sprintf("10.0.0.%d", n); !p.full && !p.ips[ip] {
			want = ip
		}
	}
	switch {
	case want == "":
		return "", ErrServiceRangeFull
	case len(want) < 7 || want[:7] != "10.0.0.":
		return "", ErrServiceIPOutside(want, "10.0.0.0/24")
	case p.ips[want]:
		return "", ErrServiceIPTaken
	}
	p.ips[want] = true
	return want, nil
}

func (p *testPool) port(want int32) (int32, error) {
	for n := int32(30000); want == 0 && !p.full; n++ {
		if !p.ports[n] {
			want = n
		}
	}
	switch {
	case want == 0:
		return 0, ErrServiceRangeFull
	case want < 30000 || want > 32767:
		return 0, ErrServicePortOutside("30000-32767")
	case p.ports[want]:
		return 0, ErrServicePortTaken
	}
	p.ports[want] = true
	return want, nil
}

// statusCauses are the causes of a Status, or its message.
func statusCauses(t *testing.T, err error) []string {
	t.Helper()
	var status *apierrors.StatusError
	if !errors.As(err, &status) {
		t.Fatalf("%v is not a Status", err)
	}
	if status.ErrStatus.Details == nil || status.ErrStatus.Code == 500 {
		return []string{status.ErrStatus.Message}
	}
	var out []string
	for _, c := range status.ErrStatus.Details.Causes {
		out = append(out, string(c.Type)+" "+c.Field+": "+c.Message)
	}
	slices.Sort(out)
	return out
}

func TestServiceAllocation(t *testing.T) {
	const ports = `"ports":[{"port":80}]`
	type shown struct {
		IP, Policy string
		IPs        []string
		Families   []corev1.IPFamily
		Ports      []int32
		Health     int32
	}
	v4 := []corev1.IPFamily{corev1.IPv4Protocol}
	for name, c := range map[string]struct {
		old, doc string
		taken    []string
		want     shown
		failed   []string
		released ServiceClaims
	}{
		"any address": {doc: `{"spec":{` + ports + `}}`,
			want: shown{IP: "10.0.0.10", Policy: "SingleStack", IPs: []string{"10.0.0.10"}, Families: v4}},
		"the address asked for": {doc: `{"spec":{"clusterIP":"10.0.0.77",` + ports + `}}`,
			want: shown{IP: "10.0.0.77", Policy: "SingleStack", IPs: []string{"10.0.0.77"}, Families: v4}},
		"an address outside": {doc: `{"spec":{"clusterIP":"192.168.0.1",` + ports + `}}`,
			failed: []string{`FieldValueInvalid spec.clusterIPs: Invalid value: ["192.168.0.1"]: failed to allocate IP 192.168.0.1: the provided IP (192.168.0.1) is not in the valid range. The range of valid IPs is 10.0.0.0/24`}},
		"a taken address": {doc: `{"spec":{"clusterIP":"10.0.0.5",` + ports + `}}`, taken: []string{"10.0.0.5"},
			failed: []string{`FieldValueInvalid spec.clusterIPs: Invalid value: ["10.0.0.5"]: failed to allocate IP 10.0.0.5: provided IP is already allocated`}},
		"no address": {doc: `{"spec":{"clusterIP":"x",` + ports + `}}`,
			failed: []string{`FieldValueInvalid spec.clusterIPs[0]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)`}},
		"an address of the other family": {doc: `{"spec":{"clusterIP":"fd00::1",` + ports + `}}`,
			failed: []string{`FieldValueInvalid spec.clusterIPs[0]: Invalid value: ["fd00::1"]: IPv6 is not configured on this cluster`}},
		"two families": {doc: `{"spec":{"ipFamilyPolicy":"RequireDualStack",` + ports + `}}`,
			failed: []string{`FieldValueInvalid spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not configured for dual-stack services`}},
		"two families if there are": {doc: `{"spec":{"ipFamilyPolicy":"PreferDualStack",` + ports + `}}`,
			want: shown{IP: "10.0.0.10", Policy: "PreferDualStack", IPs: []string{"10.0.0.10"}, Families: v4}},
		"headless": {doc: `{"spec":{"clusterIP":"None","selector":{"a":"b"}}}`,
			want: shown{IP: "None", Policy: "SingleStack", IPs: []string{"None"}, Families: v4}},
		"headless without a selector": {doc: `{"spec":{"clusterIP":"None"}}`,
			want: shown{IP: "None", Policy: "RequireDualStack", IPs: []string{"None"}, Families: []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}}},
		"external name": {doc: `{"spec":{"type":"ExternalName","externalName":"x.y"}}`},
		"node ports": {doc: `{"spec":{"type":"NodePort","ports":[{"name":"a","port":80},{"name":"b","port":81,"nodePort":30123},{"name":"c","port":80,"protocol":"UDP"}]}}`,
			want: shown{IP: "10.0.0.10", Policy: "SingleStack", IPs: []string{"10.0.0.10"}, Families: v4, Ports: []int32{30000, 30123, 30000}}},
		"a node port outside": {doc: `{"spec":{"type":"NodePort","ports":[{"port":80,"nodePort":80}]}}`,
			failed: []string{`FieldValueInvalid spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. The range of valid ports is 30000-32767`}},
		"a load balancer that wants to know of nodes": {doc: `{"spec":{"type":"LoadBalancer","externalTrafficPolicy":"Local",` + ports + `}}`,
			want: shown{IP: "10.0.0.10", Policy: "SingleStack", IPs: []string{"10.0.0.10"}, Families: v4, Ports: []int32{30000}, Health: 30001}},
		"a load balancer without node ports": {doc: `{"spec":{"type":"LoadBalancer","allocateLoadBalancerNodePorts":false,` + ports + `}}`,
			want: shown{IP: "10.0.0.10", Policy: "SingleStack", IPs: []string{"10.0.0.10"}, Families: v4}},
		"update that leaves out what was allocated": {
			old:  `{"spec":{"type":"NodePort",` + ports + `}}`,
			doc:  `{"spec":{"type":"NodePort","ports":[{"port":8080}]}}`,
			want: shown{IP: "10.0.0.10", Policy: "SingleStack", IPs: []string{"10.0.0.10"}, Families: v4, Ports: []int32{30000}}},
		"from node port to cluster address": {
			old:      `{"spec":{"type":"NodePort",` + ports + `}}`,
			doc:      `{"spec":{"type":"ClusterIP",` + ports + `}}`,
			want:     shown{IP: "10.0.0.10", Policy: "SingleStack", IPs: []string{"10.0.0.10"}, Families: v4},
			released: ServiceClaims{Ports: []int32{30000}}},
		"from cluster address to external name": {
			old:      `{"spec":{` + ports + `}}`,
			doc:      `{"spec":{"type":"ExternalName","externalName":"x.y"}}`,
			released: ServiceClaims{IPs: []string{"10.0.0.10"}}},
		"from external name to cluster address": {
			old:  `{"spec":{"type":"ExternalName","externalName":"x.y"}}`,
			doc:  `{"spec":{"type":"ClusterIP",` + ports + `}}`,
			want: shown{IP: "10.0.0.10", Policy: "SingleStack", IPs: []string{"10.0.0.10"}, Families: v4}},
		"one port less": {
			old:      `{"spec":{"type":"NodePort","ports":[{"name":"a","port":80},{"name":"b","port":81}]}}`,
			doc:      `{"spec":{"type":"NodePort","ports":[{"name":"b","port":81}]}}`,
			want:     shown{IP: "10.0.0.10", Policy: "SingleStack", IPs: []string{"10.0.0.10"}, Families: v4, Ports: []int32{30001}},
			released: ServiceClaims{Ports: []int32{30000}}},
	} {
		t.Run(name, func(t *testing.T) {
			k, pool := serviceKind(), newTestPool()
			for _, ip := range c.taken {
				pool.ips[ip] = true
			}
			var old *corev1.Service
			if c.old != "" {
				old = coreObject(t, k, c.old).(*corev1.Service)
				if _, err := AllocateService(old, nil, pool.pool()); err != nil {
					t.Fatal(err)
				}
			}
			svc := coreObject(t, k, c.doc).(*corev1.Service)
			svc.Name = "s"
			before := HeldByService(old)
			taken, err := AllocateService(svc, old, pool.pool())
			if c.failed != nil {
				if err == nil {
					t.Fatal("no error")
				}
				if d := cmp.Diff(c.failed, statusCauses(t, err)); d != "" {
					t.Error(d)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if old != nil {
				k.PrepareUpdate(svc, old)
				if errs := coreUpdateErrors(k, svc, old); len(errs) > 0 {
					t.Error(errs)
				}
			} else if errs := coreCreateErrors(k, svc); len(errs) > 0 {
				t.Error(errs)
			}
			got := shown{IP: svc.Spec.ClusterIP, IPs: svc.Spec.ClusterIPs, Families: svc.Spec.IPFamilies, Ports: nodePortsOf(svc), Health: svc.Spec.HealthCheckNodePort}
			if svc.Spec.IPFamilyPolicy != nil {
				got.Policy = string(*svc.Spec.IPFamilyPolicy)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
			var released ServiceClaims
			if old != nil {
				released = ReleaseService(old, svc)
			}
			if !slices.Equal(released.IPs, c.released.IPs) || !slices.Equal(released.Ports, c.released.Ports) {
				t.Errorf("releases %v, want %v", released, c.released)
			}
			checkClaims(t, before, taken, released, HeldByService(svc))
		})
	}
}

// checkClaims: what was held and taken is what is held now and given back.
func checkClaims(t *testing.T, before, taken, released, now ServiceClaims) {
	t.Helper()
	ips := slices.Sorted(slices.Values(slices.Concat(before.IPs, taken.IPs)))
	if got := slices.Sorted(slices.Values(slices.Concat(released.IPs, now.IPs))); !slices.Equal(ips, got) {
		t.Errorf("addresses %v become %v", ips, got)
	}
	ports := slices.Sorted(slices.Values(slices.Concat(before.Ports, taken.Ports)))
	if got := slices.Sorted(slices.Values(slices.Concat(released.Ports, now.Ports))); !slices.Equal(ports, got) {
		t.Errorf("ports %v become %v", ports, got)
	}
}

func TestServiceAllocationFails(t *testing.T) {
	pool := newTestPool()
	pool.full = true
	svc := coreObject(t, serviceKind(), `{"metadata":{"name":"s"},"spec":{"ports":[{"port":80}]}}`).(*corev1.Service)
	_, err := AllocateService(svc, nil, pool.pool())
	if d := cmp.Diff([]string{`Internal error occurred: failed to allocate a serviceIP for Service "s": range is full`}, statusCauses(t, err)); d != "" {
		t.Error(d)
	}
	pool = newTestPool()
	pool.ports[30500] = true
	svc = coreObject(t, serviceKind(), `{"spec":{"type":"NodePort","ports":[{"name":"a","port":1},{"name":"b","port":2,"nodePort":30500}]}}`).(*corev1.Service)
	taken, err := AllocateService(svc, nil, pool.pool())
	if err == nil || len(taken.IPs) != 1 || len(taken.Ports) != 1 {
		t.Errorf("took %v, then %v: what was taken must be given back", taken, err)
	}
}
