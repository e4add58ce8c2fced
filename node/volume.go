package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/even-keel/evenkeel/client"
)

// defaultMode is that of files for which no other is given.
const defaultMode int32 = 0o644

// token is one of a service account that a pod was given.
type token struct {
	text  string
	renew time.Time
}

// changes reports whether volumes of a pod have contents that may change.
func changes(pod *corev1.Pod) bool {
	for _, v := range pod.Spec.Volumes {
		if v.ConfigMap != nil || v.Secret != nil || v.Projected != nil || v.DownwardAPI != nil {
			return true
		}
	}
	return false
}

// volumes are those of a pod, with the files that they are made of.
func (a *Agent) volumes(ctx context.Context, pod *corev1.Pod, r *record) ([]Volume, error) {
	var out []Volume
	for _, v := range pod.Spec.Volumes {
		in := contents{agent: a, pod: pod, record: r, files: map[string]File{}}
		err := in.volume(ctx, v.VolumeSource)
		if f := new(Failure); errors.As(err, &f) {
			err = &Failure{"FailedMount", fmt.Sprintf("MountVolume.SetUp failed for volume %q : %s", v.Name, f.Message)}
		}
		if err != nil {
			return nil, err
		}
		out = append(out, Volume{Name: v.Name, Source: v.VolumeSource, Files: in.files})
	}
	return out, nil
}

// contents are the files of a volume, in the making.
type contents struct {
	agent  *Agent
	pod    *corev1.Pod
	record *record
	files  map[string]File
}

func (c *contents) volume(ctx context.Context, v corev1.VolumeSource) error {
	switch {
	case v.ConfigMap != nil:
		return c.configMap(ctx, v.ConfigMap.Name, v.ConfigMap.Optional, v.ConfigMap.Items, v.ConfigMap.DefaultMode)
	case v.Secret != nil:
		return c.secret(ctx, v.Secret.SecretName, v.Secret.Optional, v.Secret.Items, v.Secret.DefaultMode)
	case v.DownwardAPI != nil:
		return c.downward(v.DownwardAPI.Items, v.DownwardAPI.DefaultMode)
	case v.Projected != nil:
		return c.projected(ctx, v.Projected)
	}
	return nil
}

func (c *contents) projected(ctx context.Context, v *corev1.ProjectedVolumeSource) error {
	for _, s := range v.Sources {
		var err error
		switch {
		case s.ConfigMap != nil:
			err = c.configMap(ctx, s.ConfigMap.Name, s.ConfigMap.Optional, s.ConfigMap.Items, v.DefaultMode)
		case s.Secret != nil:
			err = c.secret(ctx, s.Secret.Name, s.Secret.Optional, s.Secret.Items, v.DefaultMode)
		case s.DownwardAPI != nil:
			err = c.downward(s.DownwardAPI.Items, v.DefaultMode)
		case s.ServiceAccountToken != nil:
			err = c.token(ctx, s.ServiceAccountToken, v.DefaultMode)
		default:
			err = &Failure{ReasonConfig, "the source of a projected volume is of a kind that this node agent does not know"}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *contents) configMap(ctx context.Context, name string, optional *bool, items []corev1.KeyToPath, mode *int32) error {
	data, err := c.agent.fetch.configMap(ctx, c.pod.Namespace, name, optional)
	if err != nil {
		return err
	}
	return c.take(data, items, optional, mode, "configmap references non-existent config key: %s")
}

func (c *contents) secret(ctx context.Context, name string, optional *bool, items []corev1.KeyToPath, mode *int32) error {
	data, err := c.agent.fetch.secret(ctx, c.pod.Namespace, name, optional)
	if err != nil {
		return err
	}
	return c.take(data, items, optional, mode, "references non-existent secret key: %s")
}

// take takes over all data, or the items that are asked for.
func (c *contents) take(data map[string][]byte, items []corev1.KeyToPath, optional *bool, mode *int32, complaint string) error {
	if len(items) == 0 {
		for k, v := range data {
			c.put(k, v, nil, mode)
		}
		return nil
	}
	for _, item := range items {
		v, there := data[item.Key]
		if !there && (optional == nil || !*optional) {
			return &Failure{ReasonConfig, fmt.Sprintf(complaint, item.Key)}
		}
		if there {
			c.put(item.Path, v, item.Mode, mode)
		}
	}
	return nil
}

func (c *contents) put(path string, data []byte, own, mode *int32) {
	f := File{Data: data, Mode: defaultMode}
	if mode != nil {
		f.Mode = *mode
	}
	if own != nil {
		f.Mode = *own
	}
	c.files[path] = f
}

func (c *contents) downward(items []corev1.DownwardAPIVolumeFile, mode *int32) error {
	f := c.agent.facts(c.pod)
	for _, item := range items {
		var text string
		var err error
		if item.FieldRef != nil {
			text, err = f.field(c.pod, item.FieldRef.FieldPath)
		} else if item.ResourceFieldRef != nil {
			text, err = f.resource(c.pod, nil, item.ResourceFieldRef)
		}
		if err != nil {
			return err
		}
		c.put(item.Path, []byte(text), item.Mode, mode)
	}
	return nil
}

// token puts in a token of the pod's service account, which is good for as long as
// the pod is. A new one is asked for when four fifths of its time are over.
func (c *contents) token(ctx context.Context, p *corev1.ServiceAccountTokenProjection, mode *int32) error {
	if !c.agent.runtime.Files() {
		return nil
	}
	now, name := time.Now(), p.Path+" "+p.Audience
	t := c.record.tokens[name]
	if t.text == "" || !now.Before(t.renew) {
		ask := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: p.ExpirationSeconds,
			BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: c.pod.Name, UID: c.pod.UID},
		}}
		if p.Audience != "" {
			ask.Spec.Audiences = []string{p.Audience}
		}
		got, err := c.agent.fetch.tokens.Create(ctx, client.Key{Namespace: c.pod.Namespace, Name: c.pod.Spec.ServiceAccountName}, ask)
		if err != nil {
			return missing(err, fmt.Sprintf("failed to fetch token: serviceaccounts %q not found", c.pod.Spec.ServiceAccountName), nil)
		}
		life := got.Status.ExpirationTimestamp.Sub(now)
		t = token{got.Status.Token, now.Add(life * 4 / 5)}
		setIn(&c.record.tokens, name, t)
	}
	c.put(p.Path, []byte(t.text), nil, mode)
	return nil
}
