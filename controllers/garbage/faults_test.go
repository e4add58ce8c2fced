package garbage_test

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/explore"
)

func TestNoFaultChangesTheEnd(t *testing.T) {
	explore.Run(t, explore.Scenario{
		Server:     func(t *testing.T) *rest.Config { return evenkeeltest.Start(t, evenkeeltest.Bubble()).Config() },
		Controller: collect,
		Steps: []explore.Step{
			family("a"), disown("a", metav1.DeletePropagationBackground),
			family("b"), disown("b", metav1.DeletePropagationForeground),
			family("c"), disown("c", metav1.DeletePropagationOrphan),
		},
		Max: 60,
	})
}

// family makes an owner, two dependents, and a dependent of one.
func family(name string) explore.Step {
	return func(ctx context.Context, conn *client.Conn) error {
		maps, secrets := client.Of[*object](conn, client.Kind(configMap)), client.Of[*object](conn, client.Kind(secret))
		owner, err := maps.Create(ctx, newObject(configMap, name))
		if err != nil {
			return err
		}
		child, err := secrets.Create(ctx, newObject(secret, name+"-child", ownedBy(owner)))
		if err != nil {
			return err
		}
		if _, err := maps.Create(ctx, newObject(configMap, name+"-grandchild", ownedBy(child))); err != nil {
			return err
		}
		_, err = secrets.Create(ctx, newObject(secret, name+"-loose", ownedBy(owner), notBlocking))
		return err
	}
}

func disown(name string, policy metav1.DeletionPropagation) explore.Step {
	return func(ctx context.Context, conn *client.Conn) error {
		key := client.Key{Namespace: "default", Name: name}
		return client.Of[*object](conn, client.Kind(configMap)).Delete(ctx, key, client.Propagation(policy))
	}
}
