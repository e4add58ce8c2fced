package endpointslice

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// One of many pods has changed.
func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{100, 5000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, names := scene(web()), 0
			for i := range n {
				s.pods = append(s.pods, pod(fmt.Sprint(i), func(p *corev1.Pod) { p.Status.PodIPs[0].IP = fmt.Sprintf("10.0.%d.%d", i/256, i%256) }))
			}
			s.slices = apply(nil, decide(s), &names)
			notReady(s.pods[n/2])
			b.ReportAllocs()
			for b.Loop() {
				if do := decide(s); len(do.Update) != 1 || len(do.Create)+len(do.Remove) > 0 {
					b.Fatalf("it does %+v", do)
				}
			}
		})
	}
}
