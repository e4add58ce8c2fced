package plain_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/even-keel/evenkeel/server/plain"
)

var strict = jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, jsonserializer.SerializerOptions{Strict: true})

// types are what the inputs are read as.
var types = []runtime.Object{&corev1.ConfigMap{}, &corev1.Pod{}, &corev1.Secret{}, &corev1.Service{}, &appsv1.Deployment{}, &rbacv1.ClusterRole{}}

const (
	configMap = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"b","uid":"1","resourceVersion":"7","creationTimestamp":"2026-01-02T03:04:05Z","labels":{"a":"b"},"annotations":{"x/y":"line\nbreak \"quoted\" \u00e9 é","":""},"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"o","uid":"2","controller":true}],"managedFields":[{"manager":"m","operation":"Update","apiVersion":"v1","time":"2026-01-02T03:04:05Z","fieldsType":"FieldsV1","fieldsV1":{"f:data":{".":{},"f:k":{}}}}]},"data":{"k":"v","empty":""},"binaryData":{"b":"AAEC"},"immutable":false}`
	pod       = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "creationTimestamp": null, "generation": 3, "deletionGracePeriodSeconds": 0},
 "spec": {"containers": [{"name": "c", "image": "i", "command": [], "env": [{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
  "ports": [{"containerPort": 80, "hostPort": -1}], "resources": {"requests": {"cpu": "100m", "memory": 1e3, "x": 5}},
  "livenessProbe": {"httpGet": {"port": "http", "path": "/"}, "periodSeconds": 10}, "readinessProbe": {"tcpSocket": {"port": 80}}}],
  "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "projected": {"sources": [{"configMap": {"name": "x"}}], "defaultMode": 420}}],
  "securityContext": null, "nodeSelector": {}, "tolerations": [{"key": "k", "tolerationSeconds": 300}]},
 "status": {"phase": "Running", "startTime": "2026-01-02T03:04:05Z", "conditions": [{"type": "Ready", "status": "True", "lastProbeTime": null}]}}`
	secret     = `{"metadata":{"name":"s"},"data":{"a":"","b":"eHl6"},"stringData":null,"type":"Opaque"}`
	service    = `{"kind":"Service","spec":{"ports":[{"port":80,"targetPort":"web"},{"port":81,"targetPort":8081}],"clusterIPs":["None"]},"status":{"loadBalancer":{}}}`
	deployment = `{"apiVersion":"apps/v1","spec":{"replicas":3,"strategy":{"rollingUpdate":{"maxSurge":"25%","maxUnavailable":1}},"selector":{"matchExpressions":[{"key":"a","operator":"In","values":["b"]}]},"template":{"spec":{"containers":[{"name":"c"}]}}}}`
)

// check compares with the strict decoder and encoding/json, and reports whether the
// input was plain.
func check(t *testing.T, data []byte, as runtime.Object) bool {
	t.Helper()
	fresh := func() runtime.Object { return reflect.New(reflect.TypeOf(as).Elem()).Interface().(runtime.Object) }
	got := fresh()
	if !plain.Decode(data, got) {
		return false
	}
	kinds, _, err := scheme.Scheme.ObjectKinds(as)
	if err != nil {
		t.Fatal(err)
	}
	// An object that says to be of another kind is the caller's to refuse, and it
	// has to look at what is written: as a GroupVersionKind an apiVersion that
	// cannot be parsed is an empty one.
	says := got.GetObjectKind().(*metav1.TypeMeta)
	apiVersion, kind := kinds[0].ToAPIVersionAndKind()
	if (says.Kind == "" || says.Kind == kind) && (says.APIVersion == "" || says.APIVersion == apiVersion) {
		want, _, err := strict.Decode(data, &kinds[0], fresh())
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%s as %T:\n%+v\nnot, as strictly,\n%+v, %v", data, as, got, want, err)
		}
	}
	want := fresh()
	if err := json.Unmarshal(data, want); err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%s as %T:\n%+v\nnot, as by encoding/json,\n%+v, %v", data, as, got, want, err)
	}
	return true
}

func TestPlainObjectsAreReadAsByTheRealDecoders(t *testing.T) {
	for i, data := range []string{configMap, pod, secret, service, deployment} {
		if as := []int{0, 1, 2, 3, 4}[i]; !check(t, []byte(data), types[as]) {
			t.Errorf("not plain: %s", data)
		}
	}
	if as := (&rbacv1.ClusterRole{}); !check(t, []byte(" {\n\t\"rules\" : [ { \"verbs\" : [ \"*\" ] } , { } ] , \"aggregationRule\" : { } } \r\n"), as) {
		t.Error("spaces are not plain")
	}
}

func TestWhatIsRemarkableIsNotPlain(t *testing.T) {
	for name, data := range map[string]string{
		"nothing":                ``,
		"null":                   `null`,
		"a list":                 `[]`,
		"an unknown field":       `{"date":{}}`,
		"another spelling":       `{"Data":{}}`,
		"a field twice":          `{"data":{},"data":{}}`,
		"a key twice":            `{"data":{"a":"","a":""}}`,
		"a key twice, binary":    `{"binaryData":{"a":"","a":""}}`,
		"a key with an escape":   `{"data":{"\u0061":"","a":""}}`,
		"a number for a string":  `{"data":{"a":1}}`,
		"a string for a number":  `{"metadata":{"generation":"1"}}`,
		"a fraction":             `{"metadata":{"generation":1.0}}`,
		"an exponent":            `{"metadata":{"generation":1e1}}`,
		"a leading zero":         `{"metadata":{"generation":01}}`,
		"too large a number":     `{"metadata":{"generation":9223372036854775808}}`,
		"a minus alone":          `{"metadata":{"generation":-}}`,
		"no base64":              `{"binaryData":{"a":"?"}}`,
		"no time":                `{"metadata":{"creationTimestamp":"now"}}`,
		"no boolean":             `{"immutable":truest}`,
		"no end":                 `{"data":{"a":"b"}`,
		"no end of a string":     `{"data":{"a":"b\"}}`,
		"a comma too many":       `{"data":{"a":"b",}}`,
		"a comma in a list":      `{"metadata":{"finalizers":["a",]}}`,
		"something after it":     `{} {}`,
		"a control character":    "{\"data\":{\"a\":\"\n\"}}",
		"broken fields":          `{"metadata":{"managedFields":[{"fieldsV1":{"f:a":{]}}]}}`,
		"a bad escape":           `{"data":{"a":"\x"}}`,
		"a bad escape in a time": `{"metadata":{"creationTimestamp":"\x"}}`,
	} {
		if plain.Decode([]byte(data), &corev1.ConfigMap{}) {
			t.Errorf("%s: %s", name, data)
		}
		check(t, []byte(data), &corev1.ConfigMap{})
	}
}

// mutate changes a few bytes of some JSON.
func mutate(r *rand.Rand, data []byte) []byte {
	out := append([]byte(nil), data...)
	const spice = `{}[]",:\ntrue0123-.eE u`
	for range 1 + r.IntN(3) {
		at := r.IntN(len(out))
		switch r.IntN(4) {
		case 0:
			out[at] = spice[r.IntN(len(spice))]
		case 1:
			out = append(out[:at], out[at+1:]...)
		case 2:
			out = append(out[:at], append([]byte{spice[r.IntN(len(spice))]}, out[at:]...)...)
		default: // a piece again
			end := min(len(out), at+r.IntN(40))
			out = append(out[:end:end], out[at:]...)
		}
	}
	return out
}

func TestMutatedObjects(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	accepted := 0
	for range 20000 {
		n := r.IntN(5)
		data := []byte([]string{configMap, pod, secret, service, deployment}[n])
		if check(t, mutate(r, data), types[n]) {
			accepted++
		}
	}
	if accepted < 500 {
		t.Errorf("only %d were plain", accepted)
	}
	t.Logf("%d were plain", accepted)
}

func FuzzDecode(f *testing.F) {
	for i, data := range []string{configMap, pod, secret, service, deployment} {
		f.Add([]byte(data), uint8(i))
	}
	f.Fuzz(func(t *testing.T, data []byte, as uint8) { check(t, data, types[int(as)%len(types)]) })
}

func TestDecodedObjectsAreEqualToThoseEncoded(t *testing.T) {
	for _, data := range []string{configMap, pod} {
		as := types[map[string]int{configMap: 0, pod: 1}[data]].DeepCopyObject()
		if err := json.Unmarshal([]byte(data), as); err != nil {
			t.Fatal(err)
		}
		encoded, err := json.Marshal(as)
		if err != nil {
			t.Fatal(err)
		}
		again := reflect.New(reflect.TypeOf(as).Elem()).Interface()
		if !plain.Decode(encoded, again) || !equality.Semantic.DeepEqual(as, again) {
			t.Errorf("%s", encoded)
		}
	}
}

func ExampleDecode() {
	var plainly, strangely corev1.ConfigMap
	fmt.Println(plain.Decode([]byte(`{"data": {"a": "b"}}`), &plainly), plainly.Data)
	fmt.Println(plain.Decode([]byte(`{"date": {"a": "b"}}`), &strangely))
	// Output:
	// true map[a:b]
	// false
}

func BenchmarkDecode(b *testing.B) {
	padded := strings.Replace(configMap, `"v"`, `"`+strings.Repeat("x", 850)+`"`, 1)
	for name, c := range map[string]struct {
		data string
		as   runtime.Object
	}{"ConfigMap": {padded, &corev1.ConfigMap{}}, "Pod": {pod, &corev1.Pod{}}} {
		data := []byte(c.data)
		t := reflect.TypeOf(c.as).Elem()
		b.Run(name+"/plain", func(b *testing.B) {
			for b.Loop() {
				if !plain.Decode(data, reflect.New(t).Interface()) {
					b.Fatal("not plain")
				}
			}
		})
		b.Run(name+"/encoding", func(b *testing.B) {
			for b.Loop() {
				_ = json.Unmarshal(data, reflect.New(t).Interface())
			}
		})
		b.Run(name+"/strict", func(b *testing.B) {
			for b.Loop() {
				_, _, _ = strict.Decode(data, nil, reflect.New(t).Interface().(runtime.Object))
			}
		})
	}
}
