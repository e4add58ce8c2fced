package sharing

import (
	"context"
	"fmt"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/even-keel/evenkeel/test/compat/cluster"
)

func service(name, ip string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.ServiceSpec{ClusterIP: ip, Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80}}},
	}
}

func tokenRequest() *authenticationv1.TokenRequest { return &authenticationv1.TokenRequest{} }

// unique checks that no two services share an address or a node port, and that
// each address is claimed.
func unique(t *testing.T, c kubernetes.Interface) {
	t.Helper()
	services := must(c.CoreV1().Services("").List(t.Context(), metav1.ListOptions{}))(t)
	claimed := map[string]bool{}
	for _, ip := range must(c.NetworkingV1().IPAddresses().List(t.Context(), metav1.ListOptions{}))(t).Items {
		claimed[ip.Name] = true
	}
	holder := map[string]string{}
	take := func(what, by string) {
		if other, taken := holder[what]; taken {
			t.Errorf("%s is held by %s and by %s", what, other, by)
		}
		holder[what] = by
	}
	for _, s := range services.Items {
		take(s.Spec.ClusterIP, s.Name)
		if !claimed[s.Spec.ClusterIP] {
			t.Errorf("nobody has claimed %s of %s", s.Spec.ClusterIP, s.Name)
		}
		for _, p := range s.Spec.Ports {
			if p.NodePort != 0 {
				take(fmt.Sprintf("port %d", p.NodePort), s.Name)
			}
		}
	}
	if len(claimed) > len(services.Items) {
		t.Errorf("%d addresses are claimed by %d services", len(claimed), len(services.Items))
	}
}

// TestAddressesAreGivenOutOnce makes and deletes services through both servers
// at once.
func TestAddressesAreGivenOutOnce(t *testing.T) {
	a, b, ns := pair(t, 1)
	ctx := t.Context()
	var all sync.WaitGroup
	for w, c := range []kubernetes.Interface{a, b, a, b} {
		all.Go(func() {
			for i := range 25 {
				name := fmt.Sprintf("s-%d-%d", w, i)
				if _, err := c.CoreV1().Services(ns).Create(ctx, service(name, ""), metav1.CreateOptions{}); err != nil {
					t.Error(err)
					return
				}
				if i%3 == 0 {
					if err := c.CoreV1().Services(ns).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	// All want the same address: one gets it.
	won := make(chan string, 8)
	for i := range cap(won) {
		c := []kubernetes.Interface{a, b}[i%2]
		all.Go(func() {
			if s, err := c.CoreV1().Services(ns).Create(ctx, service(fmt.Sprintf("wants-%d", i), "10.0.0.12"), metav1.CreateOptions{}); err == nil {
				won <- s.Name
			}
		})
	}
	all.Wait()
	if len(won) > 1 {
		t.Errorf("10.0.0.12 was given to %d services", len(won))
	}
	unique(t, a)
	unique(t, b)
}

// TestAddressesSurviveAStartingServer starts a server again and again, which
// looks for addresses that nobody holds, while another gives some out.
func TestAddressesSurviveAStartingServer(t *testing.T) {
	t.Parallel()
	shared := cluster.NewEtcd(t, 1)
	steady, restless := client(t, shared.Start(t)), shared.Start(t)
	ns := newNamespace(t, steady)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			for i := 0; ctx.Err() == nil && i < 50; i++ {
				s := service(fmt.Sprintf("s-%d-%d", w, i), "")
				if _, err := steady.CoreV1().Services(ns).Create(context.WithoutCancel(ctx), s, metav1.CreateOptions{}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 8 {
		restless.Restart()
	}
	stop()
	all.Wait()
	unique(t, steady)
}
