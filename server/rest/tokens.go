package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/server/auth"
)

// lookWithin bounds how long a token waits for another server's writes.
const lookWithin = 5 * time.Second

// TokenHolds returns an error if the service account of a token has gone, or
// what the token is bound to.
func (a *API) TokenHolds(c auth.Claims) error {
	ctx, cancel := context.WithTimeout(context.Background(), lookWithin)
	defer cancel()
	k := c.Private
	if err := a.refHolds(ctx, "serviceaccounts", k.Namespace, &k.ServiceAccount); err != nil {
		return err
	}
	if err := a.refHolds(ctx, "secrets", k.Namespace, k.Secret); err != nil {
		return err
	}
	if k.Pod != nil { // its node is only named, and may have gone before it
		return a.refHolds(ctx, "pods", k.Namespace, k.Pod)
	}
	return a.refHolds(ctx, "nodes", "", k.Node)
}

func (a *API) refHolds(ctx context.Context, resource, namespace string, ref *auth.Ref) error {
	if ref == nil {
		return nil
	}
	objects := a.registry.stored("", resource).objects
	o := objects.Get(namespace, ref.Name)
	if o == nil { // or another server has just made it
		if err := a.hub.Sync(ctx); err != nil {
			return err
		}
		o = objects.Get(namespace, ref.Name)
	}
	if o == nil {
		return fmt.Errorf("its %s %s/%s has been deleted", resource, namespace, ref.Name)
	}
	var is metav1.PartialObjectMetadata
	if err := json.Unmarshal(o.AppendJSON(nil), &is); err != nil {
		return err
	}
	if ref.UID != "" && string(is.UID) != ref.UID {
		return fmt.Errorf("its %s %s/%s has been deleted and made anew", resource, namespace, ref.Name)
	}
	return nil
}
