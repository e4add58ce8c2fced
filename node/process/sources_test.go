//go:build unix

package process_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/node"
)

// sources is a pod that takes what it can from elsewhere, and tells.
const sources = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: clerk}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: red, size: "3"}
---
apiVersion: v1
kind: Secret
metadata: {name: keys}
stringData: {key: hush}
---
apiVersion: v1
kind: Pod
metadata:
  name: taker
  labels: {app: shop, tier: back}
  annotations: {note: hello}
spec:
  nodeName: n1
  restartPolicy: Never
  serviceAccountName: clerk
  automountServiceAccountToken: false
  initContainers:
  - {name: first, image: none, command: [sh, -c, 'echo made >$EVENKEEL_ROOT/shared/f'], volumeMounts: [{name: shared, mountPath: /shared}]}
  containers:
  - name: app
    image: none
    command: [sh, -c]
    args:
    - |
      env | grep ^T_ | sort
      cat shared/f
      cd conf; for f in one sub/two labels note limit; do echo $f: $$(cat $f); done
      echo $$(cut -c1-2 token) $$(ls -l sub/two | cut -c1-10)
      echo '$(T_NAME)' '$$(T_NAME)'
    resources: {requests: {cpu: 250m, memory: 64Mi}, limits: {memory: 128Mi}}
    envFrom:
    - {prefix: T_, configMapRef: {name: settings}}
    - {prefix: T_NOT_, secretRef: {name: nothing, optional: true}}
    env:
    - {name: T_color, value: blue}
    - {name: T_KEY, valueFrom: {secretKeyRef: {name: keys, key: key}}}
    - {name: T_MISSING, valueFrom: {configMapKeyRef: {name: settings, key: none, optional: true}}}
    - {name: T_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    - {name: T_LABEL, valueFrom: {fieldRef: {fieldPath: "metadata.labels['app']"}}}
    - {name: T_NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
    - {name: T_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
    - {name: T_CPU, valueFrom: {resourceFieldRef: {resource: requests.cpu, divisor: 1m}}}
    - {name: T_MEMORY, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1Mi}}}
    - {name: T_ALL, value: "$(T_NAME)-$(T_KEY)-$(T_UNKNOWN)"}
    volumeMounts:
    - {name: shared, mountPath: /shared}
    - {name: all, mountPath: /conf}
  volumes:
  - {name: shared, emptyDir: {}}
  - name: all
    projected:
      sources:
      - {configMap: {name: settings, items: [{key: color, path: one}]}}
      - {secret: {name: keys, items: [{key: key, path: sub/two, mode: 0400}]}}
      - {serviceAccountToken: {path: token}}
      - downwardAPI:
          items:
          - {path: labels, fieldRef: {fieldPath: metadata.labels}}
          - {path: note, fieldRef: {fieldPath: "metadata.annotations['note']"}}
          - {path: limit, resourceFieldRef: {containerName: app, resource: limits.memory}}
`

const taken = `T_ALL=taker-hush-$(T_UNKNOWN)
T_CPU=250
T_IP=127.0.0.1
T_KEY=hush
T_LABEL=shop
T_MEMORY=128
T_NAME=taker
T_NODE=n1
T_color=blue
T_size=3
made
one: red
sub/two: hush
labels: app="shop" tier="back"
note: hello
limit: 134217728
ey -r--------
taker $(T_NAME)
`

func TestAPodTakesFromElsewhere(t *testing.T) {
	env := evenkeeltest.Start(t)
	r := open(t, t.TempDir())
	env.Run(agent(r, func(http.Handler) {}))
	env.Apply(sources)
	key := client.Key{Namespace: "default", Name: "taker"}
	p := evenkeeltest.Eventually(env, key, func(p *corev1.Pod) error {
		if p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			return fmt.Errorf("it is %s: %+v", p.Status.Phase, p.Status.ContainerStatuses)
		}
		return nil
	})
	var got strings.Builder
	if err := r.Logs(t.Context(), node.PodID{Key: key, UID: p.UID}, "app", node.LogOptions{Tail: -1}, &got); err != nil {
		t.Fatal(err)
	}
	if got.String() != taken {
		t.Errorf("it tells\n%s, want\n%s", got.String(), taken)
	}
}
