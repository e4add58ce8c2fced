package patch

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestStrategic(t *testing.T) {
	doc := `{"metadata":{"finalizers":["a","b"],"labels":{"x":"1"}},"spec":{"terminationGracePeriodSeconds":30,
		"containers":[{"name":"c","image":"i:1","ports":[{"containerPort":80}],"args":["a","b"]}]}}`
	tests := map[string]struct{ patch, want string }{
		"lists of objects are merged by key": {
			`{"spec":{"containers":[{"name":"c","image":"i:2"},{"name":"d","image":"j"}]}}`,
			`{"metadata":{"finalizers":["a","b"],"labels":{"x":"1"}},"spec":{"terminationGracePeriodSeconds":30,
			"containers":[{"name":"c","image":"i:2","ports":[{"containerPort":80}],"args":["a","b"]},{"name":"d","image":"j"}]}}`,
		},
		"other lists are replaced": {
			`{"spec":{"containers":[{"name":"c","args":["z"]}]},"metadata":null}`,
			`{"spec":{"terminationGracePeriodSeconds":30,"containers":[{"name":"c","image":"i:1","ports":[{"containerPort":80}],"args":["z"]}]}}`,
		},
		"sets are joined": {
			`{"metadata":{"finalizers":["c"],"labels":null},"spec":{"containers":null,"terminationGracePeriodSeconds":1}}`,
			`{"metadata":{"finalizers":["c","a","b"]},"spec":{"terminationGracePeriodSeconds":1}}`,
		},
		"nothing": {`{}`, doc},
		"null":    {`null`, doc},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Strategic([]byte(doc), []byte(test.patch), &corev1.Pod{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(decoded(t, []byte(test.want)), decoded(t, got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
