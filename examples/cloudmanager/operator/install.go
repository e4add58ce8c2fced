package operator

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/examples/cloudmanager/manifests"
)

// Install applies the definition of CloudManager. The operator begins to work when the
// server serves it.
func Install(ctx context.Context, conn *client.Conn) error {
	crd := &unstructured.Unstructured{}
	err := yaml.Unmarshal(manifests.Definition, &crd.Object)
	if err == nil {
		_, err = client.Of[*unstructured.Unstructured](conn, client.Kind(crd.GroupVersionKind())).Apply(ctx, crd, client.FieldManager("cloudmanager"), client.Force())
	}
	if err != nil {
		return fmt.Errorf("install the definition of CloudManager: %w", err)
	}
	return nil
}
